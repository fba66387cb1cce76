/*
 * PATCH /v1/sessions/{id}, …/pause and …/resume: what a client may change of a session that lives.
 */
#include <stdlib.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/schema/requests_console.h"
#include "session/pause.h"
#include "json/json_write.h"

static void answer_session(struct call *c, struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	answer_put_session(&w, s);
	call_respond(c, 200, &w, &b);
}

void handle_session_patch(struct call *c)
{
	struct session_update u = { 0 };
	struct error e = { 0 };
	struct session *s;
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = call_session(c, &e, &s);

	if (!r)
		r = fields_decode_text(&session_update_fields, body, len, &u, &e);
	if (r < 0) {
		fields_finish(&session_update_fields, &u);
		call_error(c, &e);
		return;
	}

	if (u.name && !*u.name) {
		free(u.name);
		u.name = NULL;
	}

	session_update(s, &u);
	fields_finish(&session_update_fields, &u);
	answer_session(c, s);
}

void handle_session_pause(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	int r = call_session(c, &e, &s);
	if (!r)
		r = session_pause(s, &e);
	if (r < 0)
		call_error(c, &e);
	else
		answer_session(c, s);
}

void handle_session_resume(struct call *c)
{
	struct resume_request q = { 0 };
	struct error e = { 0 };
	struct session *s;
	int r = call_begin(c, &resume_fields, &q, &e, &s);
	if (!r)
		r = session_resume(s, q.ttl_s, &e);
	fields_finish(&resume_fields, &q);
	if (r < 0)
		call_error(c, &e);
	else
		answer_session(c, s);
}
