/*
 * Variables, completion and inspection: questions that the session's interpreter answers between
 * cells.
 */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/schema/requests_console.h"
#include "session/cells/introspect.h"
#include "json/json_read.h"
#include "json/json_write.h"

static void no_answer(struct call *c)
{
	call_problem(c, 503, "no_answer", "the interpreter did not answer in time",
		"Ask again when the session is idle.");
}

/* What comes from the guest is hostile: it must be JSON, or it is not passed on. */
static void on_answer(void *userdata, const char *json, size_t len)
{
	struct call *c = userdata;
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	c->ops = NULL;
	c->work = NULL;
	if (!json || len < 2 || json[0] != '{' || json_validate(json, len, NULL) < 0)
		no_answer(c);
	else if (buffer_append(&b, json, len) < 0)
		call_no_memory(c);
	else
		call_respond_as(c, 200, "application/json", &b);
}

static void on_gone(struct call *c)
{
	struct session *s;
	if (call_session(c, NULL, &s) == 0)
		session_introspect_forget(s, c);
	c->ops = NULL;
}

static const struct call_ops ops = { .on_gone = on_gone };

static void ask(struct call *c, struct session *s, const struct buffer *request)
{
	struct error e = { 0 };
	int r = session_introspect(s, request->data, request->len, on_answer, c, &e);
	if (r < 0)
		call_error(c, &e);
	else
		c->ops = &ops;
}

void handle_variables(struct call *c)
{
	static char text[] = "{\"what\":\"variables\"}";
	const struct buffer request = { .data = text, .len = sizeof(text) - 1 };
	struct error e = { 0 };
	struct session *s;
	if (call_session(c, &e, &s) < 0)
		call_error(c, &e);
	else
		ask(c, s, &request);
}

static void ask_about_code(struct call *c, const char *what)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct introspect_request q = { 0 };
	struct error e = { 0 };
	struct json_writer w;
	struct session *s;
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = call_session(c, &e, &s);

	if (!r)
		r = fields_decode_text(&introspect_fields, body, len, &q, &e);
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "what", what);
	json_field_text(&w, "code", q.code.data ? q.code.data : "", q.code.len);
	if (q.has_cursor)
		json_field_uint(&w, "cursor", q.cursor);
	json_close(&w);
	fields_finish(&introspect_fields, &q);
	if (r < 0)
		call_error(c, &e);
	else if (json_writer_end(&w) < 0)
		call_no_memory(c);
	else
		ask(c, s, &b);
}

void handle_complete(struct call *c)
{
	ask_about_code(c, "complete");
}

void handle_inspect(struct call *c)
{
	ask_about_code(c, "inspect");
}
