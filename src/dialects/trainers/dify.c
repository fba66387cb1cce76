/* Dify's code nodes: /v1/sandbox/run and /v1/sandbox/dependencies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/provision.h"
#include "base/text.h"
#include "dialects/trainers/trainers.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define TIMEOUT_S 15.0
#define PATIENCE_S 30.0

/* dify-sandbox answers all of its own errors with 200. */
enum dify_code { DIFY_OK = 0, DIFY_BAD_REQUEST = -400, DIFY_FAILED = -500 };

static void answer_error(struct call *c, enum dify_code code, const char *message)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_int(&w, "code", code);
	json_field_cstr(&w, "message", message);
	json_field_null(&w, "data");
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static void open_data(struct json_writer *w)
{
	json_open_object(w);
	json_field_int(w, "code", DIFY_OK);
	json_field_cstr(w, "message", "success");
	json_key(w, "data");
	json_open_object(w);
}

/* A node fails when `error` is not empty, so warnings of a program that succeeds are not told. */
static void put_error(struct json_writer *w, const struct observation *o)
{
	_cleanup_buffer_ struct buffer err = BUFFER_COUNTED(0);
	if (o->status == CELL_OK) {
		json_field_cstr(w, "error", "");
		return;
	}
	script_stderr(o, &err);
	if (script_timed_out(o))
		buffer_append_str(&err, "error: timeout");
	else if (!err.len)
		buffer_printf(&err, "error: exit status %d", o->exit_code);
	json_field_text(w, "error", err.data ? err.data : "", err.len);
}

static void answer_run(struct call *c, void *extra, const struct job_outcome *outcome)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0), out = BUFFER_COUNTED(0);
	struct json_writer w;

	(void)extra;
	if (!outcome->o) {
		answer_error(c, DIFY_FAILED, outcome->error->text);
		return;
	}

	script_stdout(outcome->o, &out);
	json_writer_init(&w, &b);
	open_data(&w);
	json_field_text(&w, "stdout", out.data ? out.data : "", out.len);
	put_error(&w, outcome->o);
	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static int join_code(const json_t *body, struct field_text *ret)
{
	const json_t *code = json_object_get(body, "code"),
		     *preload = json_object_get(body, "preload");
	struct buffer b = BUFFER_INIT(0);
	int r = 0;

	if (json_string_length(preload)) {
		r = buffer_append(&b, json_string_value(preload), json_string_length(preload));
		if (r == 0)
			r = buffer_append_char(&b, '\n');
	}

	if (r == 0)
		r = buffer_append(&b, json_string_value(code), json_string_length(code));
	if (r == 0)
		r = buffer_append_char(&b, '\0');
	size_t len = b.len;
	if (r < 0)
		buffer_finish(&b);
	else
		*ret = (struct field_text){ buffer_take(&b, NULL), len - 1 };
	return r;
}

void handle_dify_run(struct call *c)
{
	static const struct script_ops ops = { answer_run, NULL };
	struct run_request run = { .session.dialect = "dify", .execute.timeout_s = TIMEOUT_S };
	struct error e = { 0 };
	size_t len;
	_cleanup_json_ json_t *body = script_call_body(c, &len, &e);
	const char *language = json_string_value(json_object_get(body, "language"));

	if (!body || !json_is_string(json_object_get(body, "code")))
		answer_error(c, DIFY_BAD_REQUEST, body ? "code is required" : e.text);
	else if (!language || (!text_eq(language, "python3") && !text_eq(language, "python")))
		answer_error(
			c, DIFY_BAD_REQUEST, "unsupported language: only python3 is available");
	else if (join_code(body, &run.execute.code) < 0)
		call_no_memory(c);
	else
		script_call_start(c, &run, len, PATIENCE_S, &ops, NULL);
}

/* ---- dependencies ------------------------------------------------------------------------ */

static void answer_dependencies(struct call *c, void *extra, const struct job_outcome *outcome)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0), out = BUFFER_COUNTED(0);
	struct json_writer w;

	(void)extra;
	if (!outcome->o || outcome->o->status != CELL_OK || script_stdout(outcome->o, &out) < 0 ||
		json_validate(out.data, out.len, NULL) < 0) {
		answer_error(c, DIFY_FAILED,
			outcome->error ? outcome->error->text : "the packages cannot be listed");
		return;
	}

	json_writer_init(&w, &b);
	open_data(&w);
	json_field_raw(&w, "dependencies", out.data, out.len);
	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void handle_dify_dependencies(struct call *c)
{
	static const struct script_ops ops = { answer_dependencies, NULL };
	static const char code[] =
		"import importlib.metadata as m, json\n"
		"found = {d.metadata['Name']: d.version for d in m.distributions() if d.metadata['Name']}\n"
		"print(json.dumps([{'name': n, 'version': found[n]} for n in sorted(found)]), end='')\n";
	char language[32];
	struct run_request run = { .session.dialect = "dify", .execute.timeout_s = TIMEOUT_S };

	if (http_query_param(c->x, "language", language, sizeof(language)) == 1 &&
		!text_eq(language, "python3"))
		answer_error(
			c, DIFY_BAD_REQUEST, "unsupported language: only python3 is available");
	else if (script_set_text(&run.execute.code, code, sizeof(code) - 1) < 0)
		call_no_memory(c);
	else
		script_call_start(c, &run, 0, PATIENCE_S, &ops, NULL);
}
