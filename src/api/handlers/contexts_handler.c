/* Contexts over HTTP: make, list, restart, delete. */
#include <errno.h>

#include "api/call.h"
#include "api/handlers/process_routes.h"
#include "api/schema/requests_processes.h"
#include "session/contexts/contexts.h"
#include "json/json_write.h"

static void put_context(struct json_writer *w, const struct session *s)
{
	struct session_info i;
	session_info(s, &i);
	json_open_object(w);
	json_field_cstr(w, "id", session_is_context(s) ? i.id : CONTEXT_DEFAULT);
	json_field_cstr(w, "state", session_state_name(i.state));
	json_field_cstr(w, "cwd", session_context_cwd(s));
	json_field_uint(w, "cells", i.cells);
	json_field_uint(w, "queued", i.queued);
	json_close(w);
}

static void answer(struct call *c, int status, const struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	put_context(&w, s);
	call_respond(c, status, &w, &b);
}

static void create_now(struct call *c)
{
	struct context_body q = { 0 };
	struct error e = { 0 };
	struct session *s, *made;
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = fields_decode_text(&context_fields, body, len, &q, &e);

	if (r == 0)
		r = call_session(c, &e, &s);
	if (r == 0)
		r = session_context_create(s, q.cwd, &e, &made);
	fields_finish(&context_fields, &q);
	if (r < 0)
		call_error(c, &e);
	else
		answer(c, 201, made);
}

void handle_context_create(struct call *c)
{
	struct error e = { 0 };
	if (api_check_open(c->api, &e) < 0)
		call_error(c, &e);
	else
		call_when_files(c, create_now); /* its jail is there then */
}

void handle_context_list(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	struct json_writer w;
	struct session *s;

	if (call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "contexts");
	json_open_array(&w);
	put_context(&w, s);
	for (struct session *x = session_context_next(s, NULL); x; x = session_context_next(s, x))
		put_context(&w, x);
	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static int find_context(const struct call *c, struct error *e, struct session **ret)
{
	struct session *s;
	int r = call_session(c, e, &s);
	return r < 0 ? r : session_context_find(s, c->path, e, ret);
}

void handle_context_delete(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	int r = find_context(c, &e, &s);

	if (r == 0 && !session_is_context(s)) {
		r = error_set(&e, -EINVAL, "the default context cannot be deleted");
		error_remedy(&e, "Restart it, or delete the session.");
		error_slug(&e, "invalid_parameter");
	}

	if (r < 0) {
		call_error(c, &e);
		return;
	}

	session_end(s, "it was deleted");
	call_respond_as(c, 204, NULL, NULL);
}

void handle_context_restart(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	int r = find_context(c, &e, &s);
	if (r == 0)
		r = session_reset(s, &e);
	if (r < 0)
		call_error(c, &e);
	else
		answer(c, 200, s);
}
