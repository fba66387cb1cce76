/* The interpreter: cells as lines of JSON while they run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/outbox.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dialects/e2b/e2b.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define TYPE "application/json"

struct run {
	struct call *call;
	struct cell *cell;
	struct outbox out;
	struct buffer held[2];
	bool executing, dead, done;
	uint64_t lost; /* bytes of lines that the client was too slow for */
	char session[SESSION_ID_LEN + 1];
	char *after; /* code that puts the environment back, or NULL */
};

static void run_free(struct run *r)
{
	if (r->executing) {
		r->dead = true;
		return;
	}
	outbox_finish(&r->out);
	buffer_finish(&r->held[0]);
	buffer_finish(&r->held[1]);
	free(r->after);
	free(r);
}

/* ---- lines -------------------------------------------------------------------------- */

/* One character of valid UTF-8; returns its bytes. */
static size_t decode(const unsigned char *s, size_t len, uint32_t *ret)
{
	size_t n = *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : 2;
	uint32_t c = *s & (0xff >> (n + 1));
	if (n > len)
		n = len;
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	*ret = c;
	return n;
}

int e2b_ascii_line(struct buffer *out, const char *json, size_t len)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < len;) {
		size_t plain = 0;
		uint32_t c;
		while (i + plain < len && (unsigned char)json[i + plain] < 0x80)
			plain++;
		r = buffer_append(out, json + i, plain);
		i += plain;
		if (r < 0 || i == len)
			break;
		i += decode((const unsigned char *)json + i, len - i, &c);
		if (c >= 0x10000)
			r = buffer_printf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
				0xdc00 + ((c - 0x10000) & 0x3ff));
		else
			r = buffer_printf(out, "\\u%04x", c);
	}

	return r < 0 ? r : buffer_append_char(out, '\n');
}

static void send_line(struct run *r, struct json_writer *w, struct buffer *json)
{
	_cleanup_buffer_ struct buffer line = BUFFER_COUNTED(0);
	json_close(w);
	if (json_writer_end(w) < 0 || e2b_ascii_line(&line, json->data, json->len) < 0)
		return;
	size_t len = line.len;
	if (outbox_send(&r->out, &line) == -ENOBUFS)
		r->lost += len;
}

static void begin(struct json_writer *w, struct buffer *b, const char *type)
{
	json_writer_init(w, b);
	json_open_object(w);
	json_field_cstr(w, "type", type);
}

static void send_text(struct run *r, enum stream stream, const char *data, size_t len)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	char when[CLOCK_TEXT_MAX];
	if (!len)
		return;
	begin(&w, &b, stream == STREAM_STDOUT ? "stdout" : "stderr");
	json_field_text(&w, "text", data, len);
	json_field_cstr(&w, "timestamp", clock_format(clock_wall_ns(), when));
	send_line(r, &w, &b);
}

/* The client read so slowly that lines were dropped. */
static void send_lost(struct run *r)
{
	char text[96];
	int n = snprintf(text, sizeof(text),
		"[%llu bytes were left out: the client read them too slowly]\n",
		(unsigned long long)r->lost);
	send_text(r, STREAM_STDERR, text, (size_t)n);
}

/* E2B's names of media types. */
static const struct {
	const char *mime, *name;
} forms[] = { { "text/plain", "text" }, { "text/html", "html" }, { "text/markdown", "markdown" },
	{ "image/svg+xml", "svg" }, { "image/png", "png" }, { "image/jpeg", "jpeg" },
	{ "application/pdf", "pdf" }, { "text/latex", "latex" }, { "application/json", "json" },
	{ "application/javascript", "javascript" },
	{ "application/vnd.glovebox.table+json", "data" },
	{ "application/vnd.glovebox.chart+json", "chart" } };

/* Types without such a name become members of `extra` by themselves, as in their server. */
static const char *form_of(const char *mime)
{
	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (text_eq(forms[i].mime, mime))
			return forms[i].name;
	return mime;
}

/* A text that begins and ends with the same quote loses them, as in their server. */
static void put_form(struct json_writer *w, const char *name, const struct bundle_item *item)
{
	const char *data = item->data;
	size_t len = item->len;
	json_key(w, name);
	if (item->is_json && json_validate(data, len, NULL) == 0) {
		json_put_raw(w, data, len);
		return;
	}
	if (text_eq(name, "text") && len >= 2 && (*data == '\'' || *data == '"') &&
		data[len - 1] == *data) {
		data++;
		len -= 2;
	}
	json_put_text(w, data, len);
}

static void send_bundle(struct run *r, const struct bundle *bundle, bool main)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct json_writer w;
	begin(&w, &b, "result");
	json_field_bool(&w, "is_main_result", main);
	for (unsigned i = 0; i < bundle->n; i++)
		put_form(&w, form_of(bundle->item[i].mime), &bundle->item[i]);
	send_line(r, &w, &b);
}

static void send_error(struct run *r, const struct cell_error *e, bool died)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct json_writer w;
	begin(&w, &b, "error");
	json_field_cstr(&w, "name", died ? "ContextRestarting" : e->type);
	json_field_text(&w, "value", e->message, e->message_len);
	if (e->traceback_len)
		json_field_text(&w, "traceback", e->traceback, e->traceback_len);
	else
		json_field_cstr(&w, "traceback", e->remedy);
	send_line(r, &w, &b);
}

/* ---- the client's side -------------------------------------------------------------- */

static int send_piece(void *target, const char *data, size_t len)
{
	return http_stream_write(target, data, len);
}

static void finish(struct run *r)
{
	struct call *c = r->call;
	if (!r->done || !outbox_empty(&r->out))
		return;
	c->work = NULL;
	c->ops = NULL;
	run_free(r);
	call_finish_stream(c);
}

static void on_drained(struct call *c)
{
	struct run *r = c->work;
	outbox_drained(&r->out);
	finish(r);
}

static void run_silently(struct sessions *t, const char *id, const char *code)
{
	static const struct cell_observer nobody = { 0 };
	struct session *s;
	struct cell *cell;
	struct cell_request q = {
		.code = code, .code_len = code ? strlen(code) : 0, .detach = true
	};
	if (code && session_find(t, id, NULL, &s) == 0)
		session_execute(s, NULL, &q, &nobody, NULL, NULL, &cell);
}

static void on_gone(struct call *c)
{
	struct run *r = c->work;
	if (r->cell)
		cell_abandon(r->cell);
	if (r->cell)
		run_silently(c->api->sessions, r->session, r->after);
	c->work = NULL;
	c->ops = NULL;
	run_free(r);
}

static const struct call_ops run_ops = { .on_drained = on_drained, .on_gone = on_gone };

/* ---- the cell's side ---------------------------------------------------------------- */

static void on_started(void *userdata, unsigned cell)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	begin(&w, &b, "number_of_executions");
	json_field_uint(&w, "execution_count", cell);
	send_line(userdata, &w, &b);
}

static void on_output(void *userdata, enum stream stream, const char *data, size_t len)
{
	struct run *r = userdata;
	struct buffer *held = &r->held[stream];
	if (buffer_append(held, data, len) < 0)
		return;
	size_t whole = json_utf8_whole(held->data, held->len);
	send_text(r, stream, held->data, whole);
	buffer_consume(held, whole);
}

static void on_display(void *userdata, const struct bundle *b)
{
	send_bundle(userdata, b, false);
}

static void on_done(void *userdata, const struct observation *o)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct run *r = userdata;
	struct json_writer w;

	r->cell = NULL;
	for (int i = 0; i < 2; i++)
		send_text(r, (enum stream)i, r->held[i].data, r->held[i].len);
	if (r->lost)
		send_lost(r);
	if (o->result)
		send_bundle(r, o->result, true);
	if (o->error) {
		/* A MemoryError that the code got leaves the interpreter alive. */
		bool survived = text_eq(o->error->type, "MemoryError") && !o->state_lost;
		send_error(r, o->error,
			o->status == CELL_KILLED || (o->status == CELL_OUT_OF_MEMORY && !survived));
	}
	begin(&w, &b, "end_of_execution");
	send_line(r, &w, &b);
	r->done = true;
	finish(r);
}

static const struct cell_observer observer = { .on_started = on_started,
	.on_output = on_output,
	.on_display = on_display,
	.on_done = on_done,
	.streams_all = true };

/* ---- requests ----------------------------------------------------------------------- */

void e2b_plain(struct call *c, int status, const char *text)
{
	call_respond_static(c, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* Code that sets variables, and code that puts them back; both owned. */
static int environment_code(const json_t *variables, char **ret_before, char **ret_after)
{
	_cleanup_free_ char *json = json_dumps(variables, JSON_COMPACT | JSON_ENSURE_ASCII);
	_cleanup_buffer_ struct buffer quoted = BUFFER_INIT(0);
	struct json_writer w;
	char *before = NULL, *after = NULL;

	json_writer_init(&w, &quoted);
	if (!json)
		return -ENOMEM;
	json_put_cstr(&w, json); /* a JSON string is one of Python's too */
	if (json_writer_end(&w) < 0 || !buffer_cstr(&quoted) ||
		asprintf(&before,
			"def _():\n import os, sys, json\n new = json.loads(%s)\n"
			" sys.modules['_glovebox_environ'] = {k: os.environ.get(k) for k in new}\n"
			" os.environ.update(new)\n_()\ndel _\n",
			quoted.data) < 0)
		return -ENOMEM;
	after = strdup("def _():\n import os, sys\n"
		       " for k, v in (sys.modules.pop('_glovebox_environ', None) or {}).items():\n"
		       "  os.environ.pop(k, None) if v is None else os.environ.__setitem__(k, v)\n"
		       "_()\ndel _\n");
	*ret_before = before;
	*ret_after = after;
	return after ? 0 : -ENOMEM;
}

void e2b_set_environment(struct sessions *t, const char *id, const json_t *variables)
{
	_cleanup_free_ char *before = NULL, *after = NULL;
	if (json_object_size(variables) && environment_code(variables, &before, &after) == 0)
		run_silently(t, id, before);
}

static const char *wrong(const json_t *body, int *ret_status)
{
	const char *language = json_string_value(json_object_get(body, "language"));
	const char *context = json_string_value(json_object_get(body, "context_id"));
	*ret_status = 400;
	if (!json_is_string(json_object_get(body, "code")))
		return "code: a text is needed";
	if (language && context)
		return "Only one of context_id or language can be provided";
	if (language && !e2b_is_language(language))
		return E2B_NO_LANGUAGE;
	return NULL;
}

/* A language of the request counts for the default context, else the context's own does. */
static bool is_bash(const struct session *s, const json_t *body)
{
	const char *language = json_string_value(json_object_get(body, "language"));
	return text_eq(language ? language : e2b_language(s), "bash");
}

/* The shell's state is kept by the interpreter that runs the cell. */
static char *shell_cell(const char *code)
{
	char *text = NULL;
	return asprintf(&text, "%%%%shell\n%s", code) < 0 ? NULL : text;
}

static void start(struct call *c, struct session *s, const json_t *body, struct run *r)
{
	const json_t *code = json_object_get(body, "code"),
		     *env = json_object_get(body, "env_vars");
	struct cell_request q = { .code = json_string_value(code),
		.code_len = json_string_length(code),
		.data_forms = true };
	_cleanup_free_ char *script = is_bash(s, body) ? shell_cell(q.code) : NULL;

	if (script) {
		q.code = script;
		q.code_len = strlen(script);
	}

	_cleanup_free_ char *before = NULL;
	struct error e = { 0 };
	struct cell *cell = NULL;
	if (json_is_object(env) && json_object_size(env) &&
		environment_code(env, &before, &r->after) == 0)
		run_silently(c->api->sessions, r->session, before);
	http_stream_begin(c->x, 200, TYPE, -1);
	r->executing = true;
	int err = session_execute(s, http_request_id(c->x), &q, &observer, r, &e, &cell);
	r->executing = false;
	run_silently(c->api->sessions, r->session, r->after);
	if (r->dead) {
		run_free(r);
	} else if (err < 0) {
		struct cell_error told = { .type = "ExecutionRefused",
			.message = e.text,
			.message_len = strlen(e.text),
			.traceback = "",
			.remedy = e.remedy };
		send_error(r, &told, false);
		r->done = true;
		finish(r);
	} else if (!r->done) {
		r->cell = cell;
	}
}

void e2b_execute(struct call *c, struct session *s)
{
	size_t len;
	const char *text = http_body(c->x, &len);
	json_t *tree = NULL;
	int status = 400;

	json_read(text, len, NULL, &tree);
	_cleanup_json_ json_t *body = tree;
	const char *problem = json_is_object(body) ? wrong(body, &status) : "the body is not JSON";
	const char *context = json_string_value(json_object_get(body, "context_id"));
	if (!problem && context && !(s = e2b_find_context(s, context, strlen(context)))) {
		problem = "Context was not found";
		status = 404;
	}

	http_drop_body(c->x);
	struct run *r = problem ? NULL : calloc(1, sizeof(*r));
	if (problem || !r) {
		e2b_plain(c, problem ? status : 503, problem ? problem : "out of memory");
		return;
	}

	r->call = c;
	struct session_info i;
	session_info(s, &i);
	snprintf(r->session, sizeof(r->session), "%s", i.id);
	outbox_init(&r->out, send_piece, c->x);
	c->work = r;
	c->ops = &run_ops;
	start(c, s, body, r);
}
