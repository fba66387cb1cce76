/* SandboxFusion's /run_jupyter: cells, one after another, in one fresh interpreter. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/provision.h"
#include "base/clock.h"
#include "base/text.h"
#include "dialects/trainers/trainers.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define DEFAULT_TOTAL_S 45.0
#define PATIENCE_S 8.0
#define LEAST_TIMEOUT_S 0.1
#define MOST_TIMEOUT_S 3600.0

struct notebook {
	struct call *call;
	struct job *job;
	struct cell *cell;
	json_t *body;
	size_t next;
	struct buffer cells;    /* JSON of those that are done */
	struct json_writer w;   /* into it */
	struct buffer displays; /* JSON texts of the running cell's, with commas between */
	double cell_timeout_s, total_s;
	uint64_t began_ns;
	bool executing, dead;
};

static void destroy(struct notebook *n)
{
	if (n->job)
		job_end(n->job);
	n->job = NULL;
	if (n->executing) {
		n->dead = true;
		return;
	}
	buffer_finish(&n->cells);
	buffer_finish(&n->displays);
	json_decref(n->body);
	free(n);
}

static void on_gone(struct call *c)
{
	struct notebook *n = c->work;
	if (n->cell)
		cell_abandon(n->cell);
	c->work = NULL;
	c->ops = NULL;
	destroy(n);
}

static const struct call_ops notebook_ops = { .on_gone = on_gone };

/* ---- the answer --------------------------------------------------------------------- */

static void put_driver(struct json_writer *w, const struct notebook *n, bool late)
{
	json_key(w, "driver");
	json_open_object(w);
	json_field_cstr(w, "status", late ? "TimeLimitExceeded" : "Finished");
	json_field_double(w, "execution_time", (double)(clock_now_ns() - n->began_ns) / 1e9);
	if (late)
		json_field_null(w, "return_code");
	else
		json_field_int(w, "return_code", 0);
	json_field_cstr(w, "stdout", "");
	json_field_cstr(w, "stderr", "");
	json_close(w);
}

/* status: Success, Failed (it took too long, and the cells are not told) or SandboxError. */
static void answer(struct notebook *n, const char *status, const char *message)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct json_writer w;
	struct call *c = n->call;
	bool good = text_eq(status, "Success");

	json_close(&n->w);
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "status", status);
	json_field_cstr(&w, "message", message);
	put_driver(&w, n, !good);
	json_key(&w, "cells");
	if (good && json_writer_end(&n->w) == 0)
		json_put_raw(&w, n->cells.data, n->cells.len);
	else
		json_put_raw(&w, "[]", 2);
	json_field_null(&w, "executor_pod_name");
	script_put_files(
		&w, json_object_get(n->body, "fetch_files"), n->job ? job_session(n->job) : NULL);
	json_close(&w);
	c->work = NULL;
	c->ops = NULL;
	call_respond(c, 200, &w, &b);
	destroy(n);
}

/* ---- cells ------------------------------------------------------------------------- */

static void run_next(struct notebook *n, struct session *s);

static void note_bundle(struct notebook *n, const struct bundle *bundle)
{
	_cleanup_buffer_ struct buffer one = BUFFER_COUNTED(0);
	struct json_writer w;
	json_writer_init(&w, &one);
	answer_put_bundle(&w, bundle);
	if (json_writer_end(&w) < 0 ||
		(n->displays.len && buffer_append_char(&n->displays, ',') < 0))
		return; /* left out */
	buffer_append(&n->displays, one.data, one.len);
}

static void on_display(void *userdata, const struct bundle *bundle)
{
	note_bundle(userdata, bundle);
}

static void put_traceback(struct json_writer *w, const struct cell_error *e)
{
	const char *at = e->traceback, *end = e->traceback + e->traceback_len;
	json_key(w, "traceback");
	json_open_array(w);
	while (at < end) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((eol ? eol : end) - at);
		json_put_text(w, at, len);
		at += len + 1;
	}
	json_close(w);
}

static void put_cell(struct notebook *n, const struct observation *o)
{
	struct json_writer *w = &n->w;
	json_open_object(w);
	json_key(w, "stdout");
	answer_put_captured(w, &o->out);
	json_key(w, "stderr");
	answer_put_captured(w, &o->err);
	if (o->result)
		note_bundle(n, o->result);
	_cleanup_buffer_ struct buffer list = BUFFER_COUNTED(0);
	int r = buffer_append_char(&list, '[');
	if (r == 0 && n->displays.len)
		r = buffer_append(&list, n->displays.data, n->displays.len);
	if (r == 0)
		r = buffer_append_char(&list, ']');
	json_key(w, "display");
	json_put_raw(w, r < 0 ? "[]" : list.data, r < 0 ? 2 : list.len);
	json_key(w, "error");
	json_open_array(w);
	if (o->error) {
		json_open_object(w);
		json_field_cstr(w, "ename", o->error->type);
		json_field_text(w, "evalue", o->error->message, o->error->message_len);
		put_traceback(w, o->error);
		json_close(w);
	}

	json_close(w);
	json_close(w);
}

static void on_done(void *userdata, const struct observation *o)
{
	struct notebook *n = userdata;
	n->cell = NULL;
	if (script_timed_out(o)) {
		answer(n, "Failed", "");
		return;
	}
	put_cell(n, o);
	n->displays.len = 0;
	struct session *s = job_session(n->job);
	if (s)
		run_next(n, s);
	else
		answer(n, "SandboxError", "the session ended");
}

static void run_next(struct notebook *n, struct session *s)
{
	static const struct cell_observer observer = { .on_display = on_display,
		.on_done = on_done };
	const json_t *cells = json_object_get(n->body, "cells"), *code;
	struct error e = { 0 };
	struct cell *cell = NULL;
	double left = n->total_s - (double)(clock_now_ns() - n->began_ns) / 1e9;

	if (n->next >= json_array_size(cells)) {
		answer(n, "Success", "");
		return;
	}

	if (left < LEAST_TIMEOUT_S) {
		answer(n, "Failed", "");
		return;
	}

	code = json_array_get(cells, n->next++);
	struct cell_request q = { .code = json_string_value(code),
		.code_len = json_string_length(code),
		.timeout_s = n->cell_timeout_s > 0 && n->cell_timeout_s < left ? n->cell_timeout_s
									       : left };
	if (q.timeout_s < LEAST_TIMEOUT_S)
		q.timeout_s = LEAST_TIMEOUT_S;
	bool outer = n->executing;
	n->executing = true;
	int r = session_execute(s, NULL, &q, &observer, n, &e, &cell);
	n->executing = outer;
	if (n->dead) {
		if (!outer)
			destroy(n);
	} else if (r < 0) {
		answer(n, "SandboxError", e.text);
	} else if (n->next && !n->cell) {
		n->cell = cell;
	}
}

static void on_open(void *userdata, struct session *s)
{
	struct notebook *n = userdata;
	n->began_ns = clock_now_ns();
	run_next(n, s);
}

static void on_fail(void *userdata, const struct error *e)
{
	struct notebook *n = userdata;
	struct call *c = n->call;
	n->job = NULL;
	if (!text_eq(e->slug, "queue_timeout")) {
		answer(n, "SandboxError", e->text);
		return;
	}
	c->work = NULL;
	c->ops = NULL;
	destroy(n);
	trainers_detail(c, 504, e->text);
}

/* ---- the request ---------------------------------------------------------------------- */

static bool cells_are_texts(const json_t *cells)
{
	for (size_t i = 0; i < json_array_size(cells); i++)
		if (!json_is_string(json_array_get(cells, i)))
			return false;
	return json_is_array(cells);
}

static double number_of(const json_t *body, const char *key, double fallback)
{
	const json_t *v = json_object_get(body, key);
	double s = json_is_number(v) ? json_number_value(v) : fallback;
	return s > MOST_TIMEOUT_S ? MOST_TIMEOUT_S : s;
}

static void submit(struct notebook *n, struct run_request *run)
{
	static const struct job_ops job_ops = { on_open, on_fail };
	struct call *c = n->call;
	struct error e = { 0 };
	http_drop_body(c->x);
	c->ops = &notebook_ops;
	c->work = n;
	int r = script_take_files(json_object_get(n->body, "files"), &run->files, &e);
	run->session.dialect = "sandboxfusion";
	if (r == 0)
		r = job_submit(c->api->jobs, run, c->owner, PATIENCE_S, &job_ops, n, &e, &n->job);
	provision_finish(run);
	if (r < 0)
		answer(n, "SandboxError", e.text);
}

void handle_run_jupyter(struct call *c)
{
	struct error e = { 0 };
	size_t len;
	_cleanup_json_ json_t *body = script_call_body(c, &len, &e);
	struct run_request run = { 0 };
	struct notebook *n = NULL;

	if (!body)
		trainers_invalid(c, NULL, e.text);
	else if (!cells_are_texts(json_object_get(body, "cells")))
		trainers_invalid(c, "cells", "Field required, a list of strings");
	else if (!(n = calloc(1, sizeof(*n))) || hold_set(&c->held, len) < 0) {
		free(n);
		trainers_detail(
			c, 504, "the server has reached its limit on memory held for clients");
	} else {
		n->call = c;
		n->body = json_incref(body);
		n->cells = n->displays = (struct buffer)BUFFER_COUNTED(0);
		json_writer_init(&n->w, &n->cells);
		json_open_array(&n->w);
		n->began_ns = clock_now_ns();
		n->cell_timeout_s = number_of(body, "cell_timeout", 0);
		n->total_s = number_of(body, "total_timeout", DEFAULT_TOTAL_S);
		submit(n, &run);
	}
}
