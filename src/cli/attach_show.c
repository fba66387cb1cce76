#include "cli/attach_show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/fds.h"
#include "base/text.h"
#include "http/sse.h"
#include "json/json_read.h"

enum { TARGET_MAX = 256 };

struct following {
	const struct attach_view *view;
	struct client *details; /* a second connection: the first one carries the events */
	struct sse_reader sse;
	bool line_open; /* the last output did not end its line */
	bool ended;
	json_int_t own; /* number of the own cell that runs; 0: none */
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));
	return s ? s : "";
}

static int put(struct following *f, int fd, const char *text)
{
	size_t len = strlen(text);
	if (len)
		f->line_open = text[len - 1] != '\n';
	return fd_write_waiting(fd, text, len);
}

static int put_line(struct following *f, int fd, const char *text)
{
	int r = *text ? put(f, fd, text) : 0;
	if (r == 0 && f->line_open)
		r = put(f, fd, "\n");
	return r;
}

static int put_code(struct following *f, const char *code)
{
	const char *mark = ">>> ";
	int r = put_line(f, STDOUT_FILENO, "");
	while (r == 0 && *code) {
		_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
		size_t n = strcspn(code, "\n");
		if (buffer_append_str(&b, mark) < 0 || buffer_append(&b, code, n) < 0 ||
			buffer_append_char(&b, '\n') < 0 || !buffer_cstr(&b))
			return -ENOMEM;
		r = put(f, STDOUT_FILENO, b.data);
		code += n + (code[n] == '\n');
		mark = "... ";
	}
	return r;
}

/* A value as text; for one without text, its types. */
static int put_value(struct following *f, const json_t *value)
{
	const char *text = text_of(json_object_get(value, "data"), "text/plain");
	if (*text)
		return put_line(f, STDOUT_FILENO, text);
	const json_t *types = json_object_get(value, "types");
	const char *type = json_object_iter_key(json_object_iter((json_t *)types));
	char line[TARGET_MAX];
	snprintf(line, sizeof(line), "(a value of the type %.80s)\n", type ? type : "?");
	return json_is_object(value) ? put_line(f, STDOUT_FILENO, line) : 0;
}

/* What an entry of the history says at its end: the value, or the error. */
static int put_end(struct following *f, const json_t *cell)
{
	const json_t *error = json_object_get(cell, "error");
	int r = put_value(f, json_object_get(cell, "result"));
	if (r == 0 && json_is_object(error)) {
		const char *traceback = text_of(error, "traceback"),
			   *remedy = text_of(error, "remediation");
		r = put_line(f, STDERR_FILENO, *traceback ? traceback : text_of(error, "message"));
		if (r == 0)
			r = put_line(f, STDERR_FILENO, remedy);
	}
	return r;
}

static int put_entry(struct following *f, const json_t *cell)
{
	const json_t *value;
	size_t i;
	if (!text_eq(text_of(cell, "kind"), "cell")) {
		char line[TARGET_MAX];
		snprintf(line, sizeof(line), "(%.80s)\n", text_of(cell, "kind"));
		return put_line(f, STDOUT_FILENO, line);
	}

	int r = put_code(f, text_of(cell, "code"));
	if (r == 0)
		r = put(f, STDOUT_FILENO, text_of(cell, "stdout"));
	if (r == 0)
		r = put(f, STDERR_FILENO, text_of(cell, "stderr"));
	json_array_foreach(json_object_get(cell, "displays"), i, value)
	{
		if (r == 0)
			r = put_value(f, value);
	}
	return r < 0 || !json_is_true(json_object_get(cell, "done")) ? r : put_end(f, cell);
}

static int put_earlier(struct following *f)
{
	_cleanup_json_ json_t *answer = NULL;
	const json_t *cell;
	char target[TARGET_MAX];
	size_t i;
	int r = 0;
	if (!f->view->last)
		return 0;
	snprintf(target, sizeof(target), "/v1/sessions/%.64s/cells?last=%u", f->view->id,
		f->view->last);
	if (client_call(f->details, "GET", target, NULL, &answer) < 0)
		return 0;
	json_array_foreach(json_object_get(answer, "cells"), i, cell)
	{
		if (r == 0)
			r = put_entry(f, cell);
	}
	return r;
}

static json_int_t number_of(const json_t *event)
{
	return json_integer_value(json_object_get(event, "number"));
}

/* One entry of the history, or one value of it ("" or "/displays/0"). */
static json_t *fetch(struct following *f, const json_t *event, const char *part)
{
	json_t *answer = NULL;
	char target[TARGET_MAX];
	snprintf(target, sizeof(target), "/v1/sessions/%.64s/cells/%lld%.40s", f->view->id,
		(long long)number_of(event), part);
	return client_call(f->details, "GET", target, NULL, &answer) < 0 ? NULL : answer;
}

/* ---- events -------------------------------------------------------------------------- */

static int on_hello(struct following *f, const json_t *event)
{
	(void)event;
	int r = put_earlier(f);
	f->view->shared->ready = true;
	return r;
}

static int on_started(struct following *f, const json_t *event)
{
	struct attach_shared *s = f->view->shared;
	const char *code = text_of(event, "code");
	bool own = s->own_len && s->own_len == strlen(code) && !memcmp(s->own, code, s->own_len);
	if (own) {
		s->own_len = 0;
		f->own = number_of(event);
	}
	return own && !f->view->echo_own ? 0 : put_code(f, code);
}

static int on_output(struct following *f, const json_t *event)
{
	return put(f, text_eq(text_of(event, "stream"), "stderr") ? STDERR_FILENO : STDOUT_FILENO,
		text_of(event, "text"));
}

static int on_display(struct following *f, const json_t *event)
{
	char part[40];
	snprintf(part, sizeof(part), "/displays/%lld",
		(long long)json_integer_value(json_object_get(event, "display")));
	_cleanup_json_ json_t *forms = fetch(f, event, part);
	return put_line(f, STDOUT_FILENO, text_of(forms, "text/plain"));
}

static int on_done(struct following *f, const json_t *event)
{
	_cleanup_json_ json_t *cell = fetch(f, event, "");
	int r = put_line(f, STDOUT_FILENO, "");
	if (r == 0)
		r = cell ? put_end(f, cell) : put_line(f, STDERR_FILENO, text_of(event, "error"));
	if (number_of(event) == f->own)
		f->view->shared->n_done++;
	return r;
}

static int on_note(struct following *f, const json_t *event)
{
	char line[TARGET_MAX];
	snprintf(line, sizeof(line), "(%.80s)\n", text_of(event, "type"));
	return put_line(f, STDOUT_FILENO, line);
}

static int on_died(struct following *f, const json_t *event)
{
	char line[TARGET_MAX];
	snprintf(line, sizeof(line), "(the interpreter died: %.200s)\n", text_of(event, "why"));
	return put_line(f, STDERR_FILENO, line);
}

static int on_ended(struct following *f, const json_t *event)
{
	char line[TARGET_MAX];
	snprintf(line, sizeof(line), "(the session has ended: %.200s)\n", text_of(event, "why"));
	f->ended = true;
	int r = put_line(f, STDERR_FILENO, line);
	return r < 0 ? r : -ECANCELED; /* ends the stream */
}

static const struct {
	const char *type;
	int (*show)(struct following *f, const json_t *event);
} shown[] = {
	{ "hello", on_hello },
	{ "started", on_started },
	{ "output", on_output },
	{ "display", on_display },
	{ "done", on_done },
	{ "checkpoint", on_note },
	{ "rollback", on_note },
	{ "reset", on_note },
	{ "lost", on_note },
	{ "died", on_died },
	{ "ended", on_ended },
};

static int on_event(const char *event, const char *id, const char *data, size_t len, void *userdata)
{
	struct following *f = userdata;
	_cleanup_json_ json_t *tree = NULL;
	(void)id;
	if (json_read(data, len, NULL, &tree) < 0)
		return -EPROTO;
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (text_eq(event, shown[i].type))
			return shown[i].show(f, tree);
	return 0;
}

static int on_data(const char *data, size_t len, void *userdata)
{
	struct following *f = userdata;
	return sse_feed(&f->sse, data, len);
}

int attach_follow(const struct attach_view *view, struct error *e)
{
	_cleanup_(client_cleanup) struct client *events = NULL;
	struct following f = { .view = view };
	char target[TARGET_MAX];
	int r = client_create(view->client, e, &events);

	if (r == 0)
		r = client_create(view->client, e, &f.details);
	if (r < 0)
		return r;
	snprintf(target, sizeof(target), "/v1/events?session=%.64s", view->id);
	sse_reader_init(&f.sse, LIMIT_OUT_QUEUE_BYTES, on_event, &f);
	r = client_stream(
		events, "GET", target, "text/event-stream", &(struct buffer){ 0 }, on_data, &f, e);
	sse_reader_finish(&f.sse);
	client_destroy(f.details);
	return f.ended ? 0 : r < 0 ? r : error_set(e, -ECONNRESET, "the connection was lost");
}
