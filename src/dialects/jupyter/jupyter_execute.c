/* Requests that run: execute_request as a cell, is_complete_request as a question to the guest. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "base/clock.h"
#include "base/text.h"
#include "dialects/jupyter/jupyter.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* ---- life ------------------------------------------------------------------------ */

struct kernel_request *kernel_request_create(
	struct kernel *k, struct channels *asker, const char *parent, const char *channel)
{
	struct kernel_request *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->parent = strdup(parent);
	if (!r->parent) {
		free(r);
		return NULL;
	}
	r->kernel = k;
	r->asker = asker;
	snprintf(r->channel, sizeof(r->channel), "%s", channel);
	TAILQ_INSERT_TAIL(&k->requests, r, link);
	return r;
}

void kernel_request_destroy(struct kernel_request *r)
{
	if (r->executing) {
		r->dead = true;
		return;
	}

	if (r->cell)
		cell_abandon(r->cell);
	if (r->kernel->check == r)
		r->kernel->check = NULL;
	if (r->kernel->question == r)
		kernel_forget_question(r->kernel);
	TAILQ_REMOVE(&r->kernel->requests, r, link);
	if (r->asker)
		channels_settle(r->asker);
	json_decref(r->code);
	hold_set(&r->held, 0);
	free(r->parent);
	free(r);
}

/* ---- messages ---------------------------------------------------------------------- */

/* Content in the making. */
struct draft {
	struct buffer b;
	struct json_writer w;
};

static void draft_init(struct draft *d)
{
	*d = (struct draft){ .b = BUFFER_INIT(0) };
	json_writer_init(&d->w, &d->b);
	json_open_object(&d->w);
}

static void publish(struct kernel_request *r, const char *type, struct draft *d)
{
	json_close(&d->w);
	if (json_writer_end(&d->w) >= 0)
		kernel_publish(r->kernel, r->parent, type, &d->b);
	buffer_finish(&d->b);
}

static void reply(struct kernel_request *r, const char *type, struct draft *d)
{
	json_close(&d->w);
	if (r->asker && json_writer_end(&d->w) >= 0)
		channels_reply(r->asker, r->kernel, r->channel, r->parent, type, &d->b);
	buffer_finish(&d->b);
}

static void put_bundle(struct draft *d, const struct bundle *b)
{
	struct bundle shown;
	bundle_for_notebooks(b, &shown);
	json_key(&d->w, "data");
	answer_put_bundle(&d->w, &shown);
	json_field_raw(&d->w, "metadata", "{}", 2);
}

/* "f.<locals>.FinalAnswerException" is called by its last name. */
static const char *last_name(const char *type)
{
	const char *dot = strrchr(type, '.');
	return dot ? dot + 1 : type;
}

/* The traceback as a list of lines. */
static void put_lines(struct json_writer *w, const struct cell_error *e)
{
	const char *at = e->traceback, *end = at + e->traceback_len;
	json_open_array(w);
	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((line_end ? line_end : end) - at);
		json_put_text(w, at, n);
		at += n + 1;
	}

	/* What the server decided (a time limit, a kill) is in no traceback. */
	if (!memmem(e->traceback, e->traceback_len, e->message, e->message_len) ||
		!e->traceback_len) {
		json_string_begin(w);
		json_string_append(w, e->type, strlen(e->type));
		json_string_append(w, ": ", 2);
		json_string_append(w, e->message, e->message_len);
		json_string_end(w);
	}

	json_close(w);
}

static void put_error(struct draft *d, const struct cell_error *e)
{
	json_field_cstr(&d->w, "ename", last_name(e->type));
	json_field_text(&d->w, "evalue", e->message, e->message_len);
	json_key(&d->w, "traceback");
	put_lines(&d->w, e);
}

/* ---- cells --------------------------------------------------------------------------- */

static void on_started(void *userdata, unsigned cell)
{
	struct kernel_request *r = userdata;
	struct draft d;

	r->started = true;
	kernel_publish_status(r->kernel, r->parent, "busy");
	if (r->silent)
		return;
	r->count = ++r->kernel->execution_count;
	if (r->stores)
		kernel_note_input(r->kernel, r->count, json_string_value(r->code),
			json_string_length(r->code));
	draft_init(&d);
	json_field_text(&d.w, "code", json_string_value(r->code), json_string_length(r->code));
	json_field_uint(&d.w, "execution_count", r->count);
	publish(r, "execute_input", &d);
}

static void on_output(void *userdata, enum stream stream, const char *data, size_t len)
{
	struct draft d;
	draft_init(&d);
	json_field_cstr(&d.w, "name", stream == STREAM_STDOUT ? "stdout" : "stderr");
	json_field_text(&d.w, "text", data, len);
	publish(userdata, "stream", &d);
}

/* The notebook shows it above what the cell prints. */
static void on_died(void *userdata, const struct session_death *died)
{
	char line[DEATH_LINE_MAX];
	answer_death_line(died, line);
	on_output(userdata, STREAM_STDERR, line, strlen(line));
}

static void publish_clear(struct kernel_request *r, const json_t *control)
{
	struct draft d;
	draft_init(&d);
	json_field_bool(&d.w, "wait", json_is_true(json_object_get(control, "wait")));
	publish(r, "clear_output", &d);
}

static void on_display(void *userdata, const struct bundle *b)
{
	_cleanup_json_ json_t *control = bundle_control(b);
	const char *id = json_string_value(json_object_get(control, "display_id"));
	struct draft d;

	if (json_is_true(json_object_get(control, "clear"))) {
		publish_clear(userdata, control);
		return;
	}

	draft_init(&d);
	put_bundle(&d, b);
	json_key(&d.w, "transient");
	json_open_object(&d.w);
	if (id)
		json_field_cstr(&d.w, "display_id", id);
	json_close(&d.w);
	publish(userdata,
		json_is_true(json_object_get(control, "update")) ? "update_display_data"
								 : "display_data",
		&d);
}

static void publish_result(struct kernel_request *r, const struct bundle *result)
{
	struct draft d;
	draft_init(&d);
	json_field_uint(&d.w, "execution_count", r->count);
	put_bundle(&d, result);
	publish(r, "execute_result", &d);
}

static void publish_error(struct kernel_request *r, const struct cell_error *e)
{
	struct draft d;
	draft_init(&d);
	put_error(&d, e);
	publish(r, "error", &d);
}

static void reply_executed(struct kernel_request *r, const char *status, const struct cell_error *e)
{
	struct draft d;
	draft_init(&d);
	json_field_cstr(&d.w, "status", status);
	json_field_uint(&d.w, "execution_count", r->count ? r->count : r->kernel->execution_count);
	json_field_raw(&d.w, "user_expressions", "{}", 2);
	json_field_raw(&d.w, "payload", "[]", 2);
	if (e)
		put_error(&d, e);
	reply(r, "execute_reply", &d);
}

/*
 * After an error the requests that wait are not run, unless they said so. Their cells leave the
 * session's queue here, in the callback of the one that failed: its successor would start when we
 * return.
 */
static void abort_waiting(struct kernel_request *failed)
{
	struct kernel_request *next, *r;
	for (r = TAILQ_NEXT(failed, link); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (!r->cell || r->started || !r->stop_on_error)
			continue;
		kernel_publish_status(r->kernel, r->parent, "busy");
		reply_executed(r, "aborted", NULL);
		kernel_publish_status(r->kernel, r->parent, "idle");
		kernel_request_destroy(r);
	}
}

static void on_done(void *userdata, const struct observation *o)
{
	struct kernel_request *r = userdata;
	struct kernel *k = r->kernel;
	bool failed = o->status != CELL_OK && o->error;

	r->cell = NULL;
	k->used_wall_ns = clock_wall_ns();
	if (!r->started) /* its session ended before it could run */
		kernel_publish_status(k, r->parent, "busy");
	if (o->result && !r->silent)
		publish_result(r, o->result);
	if (failed)
		publish_error(r, o->error);
	reply_executed(r, failed ? "error" : "ok", failed ? o->error : NULL);
	/* that one was told when it happened */
	if (o->state_lost && !(o->died && o->died->state_lost))
		kernel_publish_status(k, NULL, "restarting");
	kernel_publish_status(k, r->parent, "idle");
	if (failed && r->stop_on_error)
		abort_waiting(r);
	kernel_request_destroy(r);
}

/* A request that cannot be run is answered as one that failed. */
static void fail(struct kernel_request *r, const struct error *e)
{
	const struct cell_error error = {
		.type = "RuntimeError",
		.message = e->text,
		.message_len = strlen(e->text),
		.traceback = "",
		.code = e->slug,
		.remedy = e->remedy,
	};
	kernel_publish_status(r->kernel, r->parent, "busy");
	publish_error(r, &error);
	reply_executed(r, "error", &error);
	kernel_publish_status(r->kernel, r->parent, "idle");
	kernel_request_destroy(r);
}

static int start(struct kernel_request *r, struct error *e)
{
	static const struct cell_observer observer = { .on_started = on_started,
		.on_output = on_output,
		.on_display = on_display,
		.on_done = on_done,
		.on_died = on_died };
	const char *code = json_string_value(r->code);
	size_t len = json_string_length(r->code);
	struct session *s;

	if (!code || len > LIMIT_CODE_BYTES)
		return error_set(e, -EINVAL, "content.code must be text of at most %d bytes",
			LIMIT_CODE_BYTES);
	int result = api_check_open(r->kernel->home->api, e);
	if (!result && hold_set(&r->held, len) < 0) {
		error_set(e, -ENOBUFS,
			"the server has reached its limit on memory held for clients; try again in a second");
		result = error_slug(e, "server_memory");
	}

	if (!result)
		result = kernel_session(r->kernel, e, &s);
	if (!result && r->allows_stdin)
		result = kernel_serve_input(r->kernel, s, e);
	if (result < 0)
		return result;
	struct cell_request request = { .code = code,
		.code_len = len,
		.timeout_s = r->kernel->home->timeout_s,
		.dialect = "jupyter" };
	r->executing = true;
	result = session_execute(s, NULL, &request, &observer, r, e, &r->cell);
	r->executing = false;
	if (r->dead) {
		r->cell = NULL;
		kernel_request_destroy(r);
	}

	return result;
}

void kernel_execute(struct kernel_request *r, json_t *content)
{
	struct error e = { 0 };
	r->code = json_incref(json_object_get(content, "code"));
	r->silent = json_is_true(json_object_get(content, "silent"));
	r->stores = !r->silent && !json_is_false(json_object_get(content, "store_history"));
	r->allows_stdin = json_is_true(json_object_get(content, "allow_stdin"));
	r->stop_on_error = !json_is_false(json_object_get(content, "stop_on_error"));
	r->kernel->used_wall_ns = clock_wall_ns();
	if (start(r, &e) < 0)
		fail(r, &e);
}

/* ---- is it complete? --------------------------------------------------------------------- */

static void reply_complete(struct kernel_request *r, const char *verdict)
{
	struct draft d;
	kernel_publish_status(r->kernel, r->parent, "busy");
	draft_init(&d);
	json_field_cstr(&d.w, "status", verdict);
	json_field_cstr(&d.w, "indent", "");
	reply(r, "is_complete_reply", &d);
	kernel_publish_status(r->kernel, r->parent, "idle");
	kernel_request_destroy(r);
}

static void on_verdict(void *userdata, const char *verdict)
{
	struct kernel *k = userdata;
	if (k->check)
		reply_complete(k->check, verdict);
}

void kernel_check(struct kernel_request *r, json_t *content)
{
	json_t *code = json_object_get(content, "code");
	struct kernel *k = r->kernel;
	struct session *s;
	if (!json_is_string(code) || k->check || kernel_session(k, NULL, &s) < 0) {
		reply_complete(r, "unknown");
		return;
	}
	k->check = r;
	if (session_check(
		    s, json_string_value(code), json_string_length(code), on_verdict, k, NULL) < 0)
		reply_complete(r, "unknown"); /* a cell runs: nobody can say now */
}
