/*
 * POST …/input: actions are given to the session's screen one after another; then the screen
 * settles, and is shown when that was asked for. The screen works, the daemon only goes from one
 * answer to the next question.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/handlers/display_handler.h"
#include "api/schema/requests_input.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "session/display/session_display.h"
#include "json/json_write.h"

enum { ANSWER_SECONDS = 10, SETTLE_SECONDS = 3 };

struct input_call {
	struct input_plan *plan;
	unsigned at; /* the step that is asked about; plan->n: the screen settles */
	uint32_t question;
	uint64_t start_ns, acted_ns;
	struct buffer json;
	struct json_writer w;
};

static void destroy(struct input_call *i)
{
	input_plan_destroy(i->plan);
	buffer_finish(&i->json);
	free(i);
}

static void release(struct call *c)
{
	destroy(c->work);
	c->work = NULL;
	c->ops = NULL;
}

static void on_gone(struct call *c)
{
	struct input_call *i = c->work;
	struct session *s;
	if (call_session(c, NULL, &s) == 0)
		session_display_forget(s, i->question);
	else
		sessions_display_forget(c->api->sessions, c);
	release(c);
}

static const struct call_ops input_ops = { .on_gone = on_gone };

/* ---- the answer ------------------------------------------------------------------------- */

static void put_picture(struct json_writer *w, const struct display_reply *r)
{
	struct screenshot s = { .data = r->data,
		.len = r->len,
		.info = r->info,
		.windows = r->windows,
		.n_windows = r->n_windows,
		.no_window = !r->info.n_windows };
	json_key(w, "screenshot");
	answer_put_screenshot(w, &s, NULL);
}

static void put_result(
	struct input_call *i, const struct input_step *step, const struct display_reply *r)
{
	json_open_object(&i->w);
	json_field_cstr(&i->w, "action", step->name);
	if (step->answer == INPUT_TELLS_POINTER) {
		json_field_uint(&i->w, "x", INPUT_POINTER_X(r->count));
		json_field_uint(&i->w, "y", INPUT_POINTER_Y(r->count));
	} else if (step->answer == INPUT_SHOWS) {
		put_picture(&i->w, r);
	}
	json_close(&i->w);
}

/*
 * After the last action, and the screen's settling unless nobody asked for that (r is NULL then).
 */
static void finish(struct call *c, const struct display_reply *r)
{
	struct input_call *i = c->work;
	struct json_writer *w = &i->w;

	json_field_double(w, "acted_ms", round((double)(i->acted_ns - i->start_ns) / 1e4) / 100);
	if (r) {
		json_field_bool(w, "settled", r->info.settled);
		json_field_double(w, "after_ms", round(r->info.after_ms * 100) / 100);
	} else {
		json_field_null(w, "settled");
		json_field_null(w, "after_ms");
	}

	if (r && i->plan->screenshot)
		put_picture(w, r);
	else
		json_field_null(w, "screenshot");
	json_close(w);
	c->work = NULL;
	c->ops = NULL;
	call_respond(c, 200, w, &i->json);
	destroy(i);
}

/* ---- asking ------------------------------------------------------------------------------- */

static void go_on(struct call *c);

static bool check(struct call *c, const struct display_reply *r, unsigned wanted)
{
	if (r->type == wanted)
		return true;
	release(c);
	if (r->type == DISPLAY_SAY_TROUBLE)
		call_problem(c, display_status_of(r->code), r->code, r->text, r->remedy);
	else
		call_problem(c, 503, "display_failed", "the display returned an invalid response",
			"Try again.");
	return false;
}

static void on_step(void *userdata, const struct display_reply *r)
{
	struct call *c = userdata;
	struct input_call *i = c->work;
	const struct input_step *step = &i->plan->step[i->at];
	if (!check(c, r, step->answer == INPUT_SHOWS ? DISPLAY_SAY_PICTURE : DISPLAY_SAY_DONE))
		return;
	put_result(i, step, r);
	i->at++;
	go_on(c);
}

static void on_settled(void *userdata, const struct display_reply *r)
{
	if (check(userdata, r, DISPLAY_SAY_PICTURE))
		finish(userdata, r);
}

static void ask(struct call *c, enum display_ask what, const void *options, size_t len,
	double timeout_s, session_display_answer answer)
{
	struct input_call *i = c->work;
	struct error e = { 0 };
	struct session *s;
	int64_t r = call_session(c, &e, &s);
	if (r == 0)
		r = session_display_ask(s, what, options, len, timeout_s, answer, c, &e);
	if (r < 0) {
		release(c);
		call_error(c, &e);
		return;
	}
	i->question = (uint32_t)r;
}

static double settle_seconds(const struct shot_options *o)
{
	return ANSWER_SECONDS + (o->max_ms ? o->max_ms / 1e3 : SETTLE_SECONDS);
}

static void ask_settled(struct call *c, const struct input_plan *p)
{
	struct shot_options o = p->shot;
	if (!p->screenshot) { /* nobody looks at it */
		o.has_region = true;
		o.x = o.y = 0;
		o.width = o.height = 1;
	}
	ask(c, DISPLAY_ASK_SHOT, &o, sizeof(o), settle_seconds(&o), on_settled);
}

static void go_on(struct call *c)
{
	struct input_call *i = c->work;
	const struct input_plan *p = i->plan;

	if (i->at == p->n) {
		json_close(&i->w);
		i->acted_ns = clock_now_ns();
		if (p->settle || p->screenshot)
			ask_settled(c, p);
		else
			finish(c, NULL);
		return;
	}

	const struct input_step *step = &p->step[i->at];
	if (step->answer == INPUT_SHOWS)
		ask(c, DISPLAY_ASK_SHOT, &step->shot, sizeof(step->shot),
			settle_seconds(&step->shot), on_step);
	else
		ask(c, DISPLAY_ASK_INPUT, step->action, input_action_bytes(step->action),
			ANSWER_SECONDS + step->action->ms / 1e3, on_step);
}

static int begin(struct call *c, struct error *e)
{
	struct session_info info;
	struct session *s;
	struct input_plan *plan;
	size_t len;
	int r = call_session(c, e, &s);

	if (r < 0)
		return r;
	session_info(s, &info);
	const char *body = http_body(c->x, &len);
	r = input_plan_create(body, len,
		info.has_display ? (unsigned)info.display.width : LIMIT_DISPLAY_SIDE,
		info.has_display ? (unsigned)info.display.height : LIMIT_DISPLAY_SIDE, e, &plan);
	if (r < 0)
		return r;
	struct input_call *i = calloc(1, sizeof(*i));
	if (!i) {
		input_plan_destroy(plan);
		return error_set(e, -ENOMEM, "out of memory");
	}

	i->plan = plan;
	i->start_ns = clock_now_ns();
	buffer_init(&i->json, 0);
	json_writer_init(&i->w, &i->json);
	json_open_object(&i->w);
	json_key(&i->w, "results");
	json_open_array(&i->w);
	c->work = i;
	c->ops = &input_ops;
	return 0;
}

void handle_input(struct call *c)
{
	if (c->by_link && !c->may_control) {
		call_problem(c, 403, "view_only", "this link allows viewing only",
			"Ask for a link that was created with \"control\": true.");
		return;
	}
	struct error e = { 0 };
	if (begin(c, &e) < 0)
		call_error(c, &e);
	else
		go_on(c);
}
