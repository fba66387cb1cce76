/* Questions to the interpreter of a local session, which it answers between cells. */
#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "local/local_internal.h"
#include "session/cells/introspect.h"
#include "json/json_write.h"

enum { CHECK_MS = 5000 };

static void on_verdict(void *userdata, const char *verdict)
{
	struct local *l = userdata;
	l->complete = !text_eq(verdict, "incomplete");
}

/* Asks once the guest is there: while it starts, the session is too busy for questions. */
static bool ask(struct local *l, const char *code, size_t len)
{
	for (;;) {
		struct session *s = local_find(l);
		int r = s ? session_check(s, code, len, on_verdict, l, NULL) : -ENOENT;
		if (r != -EBUSY || l->late)
			return r == 0;
		uv_run(&l->loop, UV_RUN_ONCE);
	}
}

int local_is_complete(struct local *l, const char *code, size_t len)
{
	l->complete = -1;
	l->late = false;
	uv_timer_start(&l->patience, local_on_patience, CHECK_MS, 0);
	bool asked = ask(l, code, len);
	while (asked && l->complete < 0 && !l->late)
		uv_run(&l->loop, UV_RUN_ONCE);
	uv_timer_stop(&l->patience);
	return l->complete != 0; /* without an answer: running it will say what is wrong */
}

static void on_matches(void *userdata, const char *json, size_t len)
{
	struct local *l = userdata;
	l->answer = json ? strndup(json, len) : NULL;
	l->complete = 1;
}

char *local_complete(struct local *l, const char *code, size_t len)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct session *s = local_find(l);

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "what", "complete");
	json_field_text(&w, "code", code, len);
	json_close(&w);
	l->complete = -1;
	l->late = false;
	if (!s || json_writer_end(&w) < 0 ||
		session_introspect(s, b.data, b.len, on_matches, l, NULL) < 0)
		return NULL;
	uv_timer_start(&l->patience, local_on_patience, CHECK_MS, 0);
	while (l->complete < 0 && !l->late)
		uv_run(&l->loop, UV_RUN_ONCE);
	uv_timer_stop(&l->patience);
	if (l->complete < 0 && (s = local_find(l)))
		session_introspect_forget(s, l);
	return TAKE_PTR(l->answer);
}
