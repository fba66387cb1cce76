/* Forks over HTTP: of a session by its address, or as `from` of a new one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/schema/requests.h"
#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* Somebody who waits for forks. */
struct asker {
	struct call *call;
	char session[CALL_ID_BYTES];
	bool asking, over;
	bool single; /* POST /v1/sessions: the answer is the one session */
};

static void on_gone(struct call *c)
{
	struct asker *a = c->work;
	struct session *s;
	if (!a->over && session_find(c->api->sessions, a->session, NULL, &s) == 0)
		session_history_abandon(s, a);
	c->work = NULL;
	c->ops = NULL;
	free(a);
}

static const struct call_ops ops = { .on_gone = on_gone };

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

static void on_done(void *userdata, const struct error *e, struct session *const *sessions, unsigned n)
{
	struct asker *a = userdata;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	a->over = true;
	if (e) {
		call_error(a->call, e);
	} else if (a->single) {
		answer_created(a->call, sessions[0]);
	} else {
		json_writer_init(&w, &b);
		put_forks(&w, sessions, n);
		call_respond(a->call, 201, &w, &b);
	}
	if (!a->asking)
		free(a);
}

static void ask(struct call *c, struct session *s, const struct fork_request *request, bool single)
{
	struct error e = { 0 };
	struct session_info info;
	struct asker *a = calloc(1, sizeof(*a));
	if (!a) {
		call_problem(c, 503, "no_memory", "the server is short of memory", "Try again later.");
		return;
	}
	a->call = c;
	a->asking = true;
	a->single = single;
	session_info(s, &info);
	snprintf(a->session, sizeof(a->session), "%s", info.id);
	c->ops = &ops;
	c->work = a;
	int r = session_fork(s, request, on_done, a, &e);
	a->asking = false;
	if (r < 0) {
		a->over = true;
		on_gone(c);
		call_error(c, &e);
	} else if (a->over) {
		free(a);
	}
}

void handle_fork(struct call *c)
{
	struct error e = { 0 };
	struct fork_body q = { 0 };
	struct session *s;
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = api_check_open(c->api, &e);
	if (!r)
		r = call_session(c, &e, &s);
	if (!r)
		r = fields_decode_text(&fork_fields, body, len, &q, &e);
	unsigned count = q.count ? (unsigned)q.count : 1;
	if (!r)
		r = api_check_quota_for(c->api, c->owner, count, &e);
	http_drop_body(c->x);
	if (r < 0)
		call_error(c, &e);
	else
		ask(c, s, &(struct fork_request){ .at = q.at, .count = count, .same_numbers = q.has_reseed && !q.reseed }, false);
	fields_finish(&fork_fields, &q);
}

/* ---- as a new session ---------------------------------------------------- */

int create_check_from(const char *body, size_t len, struct error *e)
{
	static const char *const own[] = { "from", "reseed", "name", "metadata", "ttl_s", "idle_timeout_s" };
	_cleanup_json_ json_t *tree = NULL;
	const char *key;
	json_t *value;
	int r = json_read(body, len, e, &tree);
	if (r < 0)
		return r;
	json_object_foreach(tree, key, value) {
		bool known = json_is_null(value);
		for (size_t i = 0; i < ARRAY_LEN(own); i++)
			known |= text_eq(key, own[i]);
		if (known)
			continue;
		error_set(e, -EINVAL, "$.%.64s: does not go with from: the session has that of the one it comes from", key);
		error_remedy(e, "Leave it out. With from go: name, metadata, ttl_s, idle_timeout_s, reseed.");
		return error_slug(e, "invalid_field");
	}
	return 0;
}

void create_from(struct call *c, struct create_request *q)
{
	struct error e = { 0 };
	struct session *s = text_starts(q->from, "k_") ? sessions_find_checkpoint(c->api->sessions, q->from, c->owner) : NULL;
	struct fork_request request = { .at = s ? q->from : NULL, .count = 1, .same_numbers = q->has_reseed && !q->reseed, .own = &q->session };
	int r = 0;
	if (text_starts(q->from, "k_") && !s) {
		error_set(&e, -ENOENT, "$.from: there is no checkpoint %.64s in any of your sessions", q->from);
		error_remedy(&e, "GET /v1/sessions/ID/checkpoints lists those of a session; the one that was not used for longest goes when there are too many.");
		r = error_slug(&e, "checkpoint_not_found");
	} else if (!s) {
		r = api_session(c->api, q->from, c->owner, &e, &s);
	}
	http_drop_body(c->x);
	if (r < 0)
		call_error(c, &e);
	else
		ask(c, s, &request, true);
}
