/*
 * Displays over HTTP: pictures and windows. What they hold comes from a process that lives with
 * hostile code.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/api_words.h"
#include "api/call.h"
#include "api/handlers/display_handler.h"
#include "api/schema/requests_display.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "session/display/film.h"
#include "session/display/session_display.h"
#include "json/json_write.h"

enum { ANSWER_SECONDS = 10 }; /* beyond the wait that was asked for */

static const char *const format_names[SHOT_FORMAT_COUNT] = { "png", "jpeg" };
static const char *const media_types[SHOT_FORMAT_COUNT] = { "image/png", "image/jpeg" };

/* ---- as JSON ------------------------------------------------------------------------ */

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	/* a title is whatever bytes its program chose */
	json_field_text(w, key, text, strlen(text));
}

void answer_put_windows(struct json_writer *w, const struct window_entry *list, unsigned n)
{
	json_open_array(w);
	for (unsigned i = 0; i < n; i++) {
		json_open_object(w);
		json_field_uint(w, "id", list[i].id);
		put_text(w, "title", list[i].title);
		put_text(w, "class", list[i].class_name);
		json_field_uint(w, "pid", list[i].pid);
		json_field_int(w, "x", list[i].x);
		json_field_int(w, "y", list[i].y);
		json_field_uint(w, "width", list[i].width);
		json_field_uint(w, "height", list[i].height);
		json_field_bool(w, "focused", list[i].focused);
		json_field_bool(w, "dialog", list[i].dialog);
		json_close(w);
	}

	json_close(w);
}

/* Why the picture was taken at that moment, in words that a model can act on. */
const char *screenshot_note(const struct screenshot *s)
{
	if (s->no_window)
		return "No window was on the screen: the code opened no window (matplotlib's Agg backend opens none), closed or hid it "
		       "before the end of the cell, or one of its threads or processes took longer than render_timeout to open a window.";
	if (s->info.reason == SHOT_CAP)
		return "The screen was still changing at the end of the maximum wait; raise wait.max_ms (or "
		       "render_timeout, for code that has ended) to see a later state.";
	if (s->closed)
		return "The code waited in a main loop; after the picture its windows were asked to close, so that the cell could end "
		       "(on_block chooses).";
	return NULL;
}

/* Why there is nothing. */
static void put_trouble(
	struct json_writer *w, const char *code, const char *text, const char *remedy)
{
	json_field_null(w, "data");
	json_key(w, "error");
	json_open_object(w);
	put_text(w, "code", code);
	put_text(w, "message", text);
	char expanded[EDGE_TEXT_MAX];
	put_text(w, "remediation", remedy ? api_remedy(remedy, expanded) : NULL);
	json_close(w);
}

void answer_put_film(struct json_writer *w, const struct film_report *f)
{
	if (!f) {
		json_put_null(w);
		return;
	}

	json_open_object(w);
	json_field_cstr(w, "format", film_names[f->format]);
	json_field_uint(w, "frames", f->frames);
	json_field_uint(w, "duration_ms", f->duration_ms);
	if (f->data) {
		json_field_base64(w, "data", f->data, f->len);
		json_field_null(w, "error");
	} else {
		put_trouble(w, f->error->slug, f->error->text, f->error->remedy);
	}

	json_close(w);
}

static void put_picture(struct json_writer *w, const struct screenshot *s)
{
	if (!s->data) {
		put_trouble(w, s->code, s->text, s->remedy);
		return;
	}

	json_field_cstr(w, "format", format_names[s->info.format]);
	json_field_uint(w, "width", s->info.width);
	json_field_uint(w, "height", s->info.height);
	json_field_bool(w, "settled", s->info.settled);
	json_field_double(w, "after_ms", round(s->info.after_ms * 100) / 100);
	if (s->info.paint_ms >= 0)
		json_field_double(w, "since_paint_ms", round(s->info.paint_ms * 100) / 100);
	else
		json_field_null(w, "since_paint_ms");
	json_key(w, "windows");
	answer_put_windows(w, s->windows, s->n_windows);
	json_field_cstr(w, "note", screenshot_note(s));
	json_field_base64(w, "data", s->data, s->len);
	json_field_null(w, "error");
}

void answer_put_screenshot(
	struct json_writer *w, const struct screenshot *s, const struct screenshot *end)
{
	if (!s && !end) {
		json_put_null(w);
		return;
	}

	json_open_object(w);
	if (s)
		put_picture(w, s);
	if (end) {
		json_key(w, "end");
		json_open_object(w);
		put_picture(w, end);
		json_close(w);
	}

	json_close(w);
}

/* ---- asking the screen ----------------------------------------------------------------- */

/* A client that waits for a display's answer. */
struct look {
	uint32_t question;
	bool json;
};

static void on_gone(struct call *c)
{
	struct look *l = c->work;
	struct session *s;
	if (call_session(c, NULL, &s) == 0)
		session_display_forget(s, l->question);
	else
		sessions_display_forget(c->api->sessions, c);
	free(l);
	c->work = NULL;
}

static const struct call_ops look_ops = { .on_gone = on_gone };

int display_status_of(const char *code)
{
	static const struct {
		const char *code;
		int status;
	} rows[] = { { "window_not_found", 404 }, { "no_window", 404 }, { "region_outside", 400 },
		{ "picture_too_large", 413 }, { "too_many_questions", 429 },
		{ "session_gone", 410 } };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (text_eq(rows[i].code, code))
			return rows[i].status;
	return 503;
}

static struct look take_look(struct call *c)
{
	struct look l = *(struct look *)c->work;
	free(c->work);
	c->work = NULL;
	c->ops = NULL;
	return l;
}

/* True when there is an answer to show; else the call is over. */
static bool check_reply(struct call *c, const struct display_reply *r, unsigned wanted)
{
	if (r->type == wanted)
		return true;
	if (r->type == DISPLAY_SAY_TROUBLE)
		call_problem(c, display_status_of(r->code), r->code, r->text, r->remedy);
	else
		call_problem(c, 503, "display_failed", "the display returned an invalid response",
			"Try again.");
	return false;
}

static void on_picture(void *userdata, const struct display_reply *r)
{
	struct call *c = userdata;
	struct look l = take_look(c);
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);

	if (!check_reply(c, r, DISPLAY_SAY_PICTURE))
		return;
	if (l.json) {
		struct json_writer w;
		struct screenshot s = { .data = r->data,
			.len = r->len,
			.info = r->info,
			.windows = r->windows,
			.n_windows = r->n_windows,
			.no_window = !r->info.n_windows };
		json_writer_init(&w, &b);
		answer_put_screenshot(&w, &s, NULL);
		call_respond(c, 200, &w, &b);
	} else if (!r->data || buffer_append(&b, r->data, r->len) < 0) {
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
	} else {
		http_add_header(c->x, "Cache-Control", "no-store");
		call_respond_as(c, 200, media_types[r->info.format], &b);
	}
}

static void on_windows(void *userdata, const struct display_reply *r)
{
	struct call *c = userdata;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	take_look(c);
	if (!check_reply(c, r, DISPLAY_SAY_WINDOWS))
		return;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "windows");
	answer_put_windows(&w, r->windows, r->n_windows);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static void ask(struct call *c, enum display_ask what, const void *options, size_t len,
	double timeout_s, session_display_answer answer)
{
	struct error e = { 0 };
	struct session *s;
	struct look *l = calloc(1, sizeof(*l));

	if (!l) {
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}

	int64_t r = call_session(c, &e, &s);
	if (r == 0)
		r = session_display_ask(s, what, options, len, timeout_s, answer, c, &e);
	if (r < 0) {
		free(l);
		call_error(c, &e);
		return;
	}

	l->question = (uint32_t)r;
	l->json = call_accepts(c, "application/json");
	c->work = l;
	c->ops = &look_ops;
}

static int read_query(struct call *c, struct shot_options *ret)
{
	struct error e = { 0 };
	struct screenshot_query q = { 0 };
	int r = fields_decode_query(&screenshot_query_fields, http_query(c->x), &q, &e);
	q.shot.format = text_eq(q.format, "jpeg") ? SHOT_JPEG : SHOT_PNG;
	screenshot_options(&q.shot, ret);
	ret->settle = q.settle;
	fields_finish(&screenshot_query_fields, &q);
	if (r < 0)
		call_error(c, &e);
	return r;
}

static void take_picture(struct call *c)
{
	struct shot_options o;
	if (read_query(c, &o) == 0)
		ask(c, DISPLAY_ASK_SHOT, &o, sizeof(o),
			ANSWER_SECONDS + (o.settle ? (o.max_ms ? o.max_ms : 3000) / 1e3 : 0),
			on_picture);
}

void handle_screenshot(struct call *c)
{
	struct shot_options o;
	if (read_query(c, &o) < 0)
		return;
	if (!o.settle || !refresh_windows(c, take_picture))
		take_picture(c);
}

void handle_windows(struct call *c)
{
	ask(c, DISPLAY_ASK_WINDOWS, NULL, 0, ANSWER_SECONDS, on_windows);
}
