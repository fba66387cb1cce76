/* Forks over HTTP: of a session by its address, or as `from` of a new one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/handlers/history_call.h"
#include "api/schema/requests.h"
#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

static void put_forks(struct json_writer *w, struct session *const *sessions, unsigned n)
{
	json_open_object(w);
	json_key(w, "sessions");
	json_open_array(w);
	for (unsigned i = 0; i < n; i++)
		answer_put_session(w, sessions[i]);
	json_close(w);
	json_field_cstr(w, "same_numbers", n ? session_fork_note(sessions[0]) : "");
	json_close(w);
}

static void on_done(
	void *userdata, const struct error *e, struct session *const *sessions, unsigned n)
{
	struct history_call *h = userdata;
	struct call *c = history_call_begin_answer(h);
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	if (e) {
		call_error(c, e);
	} else if (h->answer == ANSWER_NEW_SESSION) {
		answer_created(c, sessions[0]);
	} else {
		json_writer_init(&w, &b);
		put_forks(&w, sessions, n);
		call_respond(c, 201, &w, &b);
	}
	history_call_end_answer(h);
}

static void ask(struct call *c, struct session *s, const struct fork_request *request,
	enum history_answer answer)
{
	struct error e = { 0 };
	struct history_call *h = history_call_new(c, s, answer);
	if (!h)
		return;

	int r = session_fork(s, request, on_done, h, &e);
	history_call_asked(h, r, &e);
}

void handle_fork(struct call *c)
{
	struct error e = { 0 };
	struct fork_body q = { 0 };
	struct session *s;
	int r = call_begin(c, &fork_fields, &q, &e, &s);
	unsigned count = q.count ? (unsigned)q.count : 1;
	if (!r)
		r = api_check_quota_for(c->api, c->owner, count, &e);
	http_drop_body(c->x);

	if (r < 0)
		call_error(c, &e);
	else
		ask(c, s,
			&(struct fork_request){ .at = q.at,
				.count = count,
				.same_numbers = q.has_reseed && !q.reseed },
			ANSWER_FORKS);
	fields_finish(&fork_fields, &q);
}

/* ---- as a new session ---------------------------------------------------- */

int create_check_from(const char *body, size_t len, struct error *e)
{
	static const char *const own[] = { "from", "reseed", "name", "metadata", "ttl_s",
		"idle_timeout_s" };
	_cleanup_json_ json_t *tree = NULL;
	const char *key;
	json_t *value;
	int r = json_read(body, len, e, &tree);

	if (r < 0)
		return r;
	json_object_foreach(tree, key, value)
	{
		bool known = json_is_null(value);
		for (size_t i = 0; i < ARRAY_LEN(own); i++)
			known |= text_eq(key, own[i]);
		if (known)
			continue;
		error_set(e, -EINVAL,
			"$.%.64s: cannot be combined with from: the new session has the value of its source",
			key);
		error_remedy(e,
			"Omit the field. Allowed with from: name, metadata, ttl_s, idle_timeout_s, reseed.");
		return error_slug(e, "invalid_field");
	}

	return 0;
}

void create_from(struct call *c, struct create_request *q)
{
	struct error e = { 0 };
	struct session *s = text_starts(q->from, "k_")
				    ? sessions_find_checkpoint(c->api->sessions, q->from, c->owner)
				    : NULL;
	struct fork_request request = { .at = s ? q->from : NULL,
		.count = 1,
		.same_numbers = q->has_reseed && !q->reseed,
		.own = &q->session };
	int r = 0;

	if (text_starts(q->from, "k_") && !s) {
		error_set(&e, -ENOENT,
			"$.from: there is no checkpoint %.64s in any of your sessions", q->from);
		error_remedy(&e,
			"GET /v1/sessions/ID/checkpoints lists the checkpoints of a session; the least recently used checkpoint is evicted when there are too many.");
		r = error_slug(&e, "checkpoint_not_found");
	} else if (!s) {
		r = api_session(c->api, q->from, c->owner, &e, &s);
	}

	http_drop_body(c->x);
	if (r < 0)
		call_error(c, &e);
	else
		ask(c, s, &request, ANSWER_NEW_SESSION);
}
