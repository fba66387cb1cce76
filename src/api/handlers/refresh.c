/*
 * Windows between two cells. Toolkits paint while their program handles events, and between cells
 * the program does not run: a window that the last cell opened without update() or a main loop is
 * not painted. An empty cell with a picture has the toolkits paint it.
 */
#include <stdlib.h>

#include "api/call.h"
#include "api/handlers/display_handler.h"

struct refresh {
	struct cell *cell; /* NULL before session_execute() returns and when it is done */
	bool executing, done;
	void (*then)(struct call *c);
};

/* Neither runs nor waits anything, and there is a screen that something is connected to. */
static bool is_wanted(const struct session *s)
{
	struct session_info info;
	session_info(s, &info);
	return info.state == SESSION_IDLE && !info.queued && !info.left_running && info.display_up;
}

static void on_gone(struct call *c)
{
	struct refresh *r = c->work;
	if (r->cell)
		cell_abandon(r->cell);
	c->work = NULL;
	c->ops = NULL;
	free(r);
}

static const struct call_ops refresh_ops = { .on_gone = on_gone };

static void on_done(void *userdata, const struct observation *o)
{
	struct call *c = userdata;
	struct refresh *r = c->work;
	(void)o; /* whatever became of it, the screen can be looked at */
	r->done = true;
	if (r->executing)
		return;
	c->work = NULL;
	c->ops = NULL;
	call_later(c, r->then);
	free(r);
}

bool refresh_windows(struct call *c, void (*then)(struct call *c))
{
	static const struct cell_observer observer = { .on_done = on_done };
	struct cell_request empty = { .code = "", .no_transaction = true, .has_screenshot = true };
	struct session *s;
	if (call_session(c, NULL, &s) < 0 || !is_wanted(s))
		return false;

	struct refresh *r = calloc(1, sizeof(*r));
	if (!r)
		return false;
	r->then = then;
	c->work = r;
	c->ops = &refresh_ops;

	r->executing = true;
	int result = session_execute(s, NULL, &empty, &observer, c, NULL, &r->cell);
	r->executing = false;
	if (result == 0 && !r->done)
		return true;

	c->work = NULL;
	c->ops = NULL;
	free(r);
	return false;
}
