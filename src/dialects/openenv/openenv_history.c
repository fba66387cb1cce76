/*
 * Going back and branching, over an OpenEnv WebSocket: checkpoint, checkpoints, rollback, undo and
 * fork. OpenEnv has none of them, so only who sends such a message gets such an answer. They take
 * the fields of our own API and wait their turn like steps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "base/clock.h"
#include "base/node_id.h"
#include "base/text.h"
#include "dialects/openenv/openenv_socket.h"
#include "json/json_read.h"
#include "json/json_write.h"

enum { NAME_LEN = 26, LEASE_LEAST_S = 60 };

/* A message that waits for its answer. */
struct env_history {
	struct env *env;
	const char *type; /* of the answer */
	char *id;         /* JSON text of the message's, or NULL */
	bool asking;      /* the session has not returned yet: the answer may come before that */
	bool over;
	bool orphaned; /* its connection was lost: nobody waits for the answer */
};

static void free_call(struct env_history *t)
{
	if (t)
		free(t->id);
	free(t);
}

void env_history_free(struct env *e)
{
	free_call(e->history);
	e->history = NULL;
}

void env_history_forget(struct env *e)
{
	struct session *s;
	if (e->history && !session_find(e->home->api->sessions, e->session, NULL, &s))
		session_history_abandon(s, e->history);
	env_history_free(e);
}

void env_history_orphan(struct env *e)
{
	if (e->history)
		e->history->orphaned = true;
}

/* ---- answers --------------------------------------------------------------------- */

/*
 * Where the answer goes, begun; NULL when nobody waits for it or the failure was told. The env is
 * free for the next message from now on.
 */
static struct env_socket *answer_begin(
	struct env_history *t, const struct error *err, struct json_writer *w, struct buffer *b)
{
	struct env *e = t->env;
	struct env_socket *s = t->orphaned ? NULL : e->socket;
	t->over = true;
	e->history = NULL;
	if (s && (s->leaving || !STAILQ_EMPTY(&s->waiting)))
		openenv_resume(e->home);
	if (s && err)
		message_send_failure(s, &(struct message){ .id = t->id }, err);
	if (!s || err)
		return NULL;
	message_begin(w, b, t->type);
	json_open_object(w);
	return s;
}

static void answer_end(
	struct env_history *t, struct env_socket *s, struct json_writer *w, struct buffer *b)
{
	if (s) {
		json_close(w);
		message_finish(s, w, b, t->id);
	}
	if (!t->asking)
		free_call(t);
}

static void on_arrived(
	void *userdata, const struct error *e, const struct checkpoint_result *arrival)
{
	struct env_history *t = userdata;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct env_socket *s = answer_begin(t, e, &w, &b);
	if (s)
		answer_put_checkpoint_result(&w, arrival);
	answer_end(t, s, &w, &b);
}

/* An environment under a name of its own, which somebody is to connect to before the lease ends. */
static struct env *branch(struct env *parent, const struct session *s)
{
	struct session_info info;
	char name[NAME_LEN + 1];
	double lease_s = parent->home->config.lease_s > LEASE_LEAST_S ? parent->home->config.lease_s
								      : LEASE_LEAST_S;

	node_make_id(name, NAME_LEN);
	struct env *e = env_create(parent->home, parent->owner, name);
	if (!e)
		return NULL;
	session_info(s, &info);
	memcpy(e->session, info.id, sizeof(e->session));
	memcpy(e->episode, parent->episode, sizeof(e->episode));
	e->step_count = parent->step_count;
	e->last_exit_code = parent->last_exit_code;
	e->rewards = parent->rewards;
	e->plain = parent->plain;
	e->ran = true;
	e->lease_until_ns = clock_now_ns() + (uint64_t)(lease_s * 1e9);
	return e;
}

static void put_branches(
	struct json_writer *w, struct env *parent, struct session *const *sessions, unsigned n)
{
	json_key(w, "environments");
	json_open_array(w);
	for (unsigned i = 0; i < n; i++) {
		struct env *e = branch(parent, sessions[i]);
		if (!e)
			break; /* its session ends by its idle timeout */
		json_open_object(w);
		json_field_cstr(w, "session", e->name);
		json_field_cstr(w, "id", e->session);
		json_close(w);
	}
	json_close(w);
	json_field_cstr(w, "same_numbers", n ? session_fork_note(sessions[0]) : "");
}

static void on_forked(
	void *userdata, const struct error *e, struct session *const *sessions, unsigned n)
{
	struct env_history *t = userdata;
	struct env *env = t->env;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct env_socket *s = answer_begin(t, e, &w, &b);
	if (s)
		put_branches(&w, env, sessions, n);
	for (unsigned i = 0; !s && !e && i < n; i++) { /* nobody will ever know their names */
		struct session_info info;
		session_info(sessions[i], &info);
		api_end_later(env->home->api, info.id);
	}
	answer_end(t, s, &w, &b);
}

/* ---- messages --------------------------------------------------------------------- */

static void refuse(
	struct env_socket *s, const struct message *m, json_t *data, const struct error *err)
{
	struct pydantic p;
	pydantic_init(&p, NULL, true);
	openenv_add_field_error(&p, data, err);
	message_send_errors(s, m, &p);
	pydantic_finish(&p);
}

/*
 * The members of `data` as our own API's table says; false when they were wrong, which has been
 * answered.
 */
static bool read_data(
	struct env_socket *s, const struct message *m, const struct fields *fields, void *q)
{
	static const char *const known[] = { "type", "data", "id", NULL };
	struct error err = { 0 };
	json_t *data = NULL;
	if (!message_check(s, m, known, false, &data))
		return false;
	_cleanup_json_ json_t *none = data ? NULL : json_object();
	if (fields_decode(fields, data ? data : none, q, &err) == 0)
		return true;
	refuse(s, m, data, &err);
	fields_finish(fields, q);
	return false;
}

/* The session and somebody who waits for it; NULL when that cannot be, which has been answered. */
static struct env_history *prepare(struct env_socket *s, const struct message *m, const char *type,
	unsigned more, struct session **ret)
{
	struct error err = { 0 };
	struct env *e = s->env;
	struct env_history *t = NULL;
	int r = api_check_open(s->home->api, &err);

	if (!r)
		r = session_find(s->home->api->sessions, e->session, &err, ret);
	if (!r && more)
		r = api_check_quota_for(s->home->api, e->owner, more, &err);
	if (!r && (!(t = calloc(1, sizeof(*t))) || (m->id && !(t->id = strdup(m->id))))) {
		free(t);
		r = error_set(&err, -ENOMEM, "out of memory");
	}

	if (r < 0) {
		message_send_failure(s, m, &err);
		return NULL;
	}

	t->env = e;
	t->type = type;
	t->asking = true;
	e->history = t;
	return t;
}

/* After the session was asked: r is what it returned. */
static void begun(struct env_socket *s, const struct message *m, struct env_history *t, int r,
	const struct error *err)
{
	t->asking = false;
	if (r < 0) {
		t->env->history = NULL;
		message_send_failure(s, m, err);
	}
	if (r < 0 || t->over)
		free_call(t);
}

static void go_back(struct env_socket *s, const struct message *m, const char *which)
{
	struct session *session;
	struct error err = { 0 };
	struct env_history *t = prepare(s, m, "rollback", 0, &session);
	if (t)
		begun(s, m, t, session_rollback(session, which, on_arrived, t, &err), &err);
}

void openenv_checkpoint(struct env_socket *s, const struct message *m)
{
	struct checkpoint_request q = { 0 };
	struct session *session;
	struct error err = { 0 };
	if (!read_data(s, m, &checkpoint_fields, &q))
		return;
	struct env_history *t = prepare(s, m, "checkpoint", 0, &session);
	if (t)
		begun(s, m, t, session_checkpoint(session, q.name, on_arrived, t, &err), &err);
	fields_finish(&checkpoint_fields, &q);
}

void openenv_rollback(struct env_socket *s, const struct message *m)
{
	struct checkpoint_request q = { 0 };
	if (!read_data(s, m, &rollback_fields, &q))
		return;
	struct error err = { 0 };
	if (rollback_check(&q, &err) < 0)
		refuse(s, m, NULL, &err);
	else
		go_back(s, m, q.checkpoint);
	fields_finish(&rollback_fields, &q);
}

void openenv_undo(struct env_socket *s, const struct message *m)
{
	if (read_data(s, m, &no_fields, NULL))
		go_back(s, m, NULL);
}

void openenv_fork(struct env_socket *s, const struct message *m)
{
	struct fork_body q = { 0 };
	struct session *session;
	struct error err = { 0 };
	if (!read_data(s, m, &fork_fields, &q))
		return;
	unsigned count = q.count ? (unsigned)q.count : 1;
	struct fork_request request = {
		.at = q.at, .count = count, .same_numbers = q.has_reseed && !q.reseed
	};
	struct env_history *t = prepare(s, m, "fork", count, &session);
	if (t)
		begun(s, m, t, session_fork(session, &request, on_forked, t, &err), &err);
	fields_finish(&fork_fields, &q);
}

void openenv_checkpoints(struct env_socket *s, const struct message *m)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct session *session;
	struct error err = { 0 };

	if (!read_data(s, m, &no_fields, NULL))
		return;
	if (session_find(s->home->api->sessions, s->env->session, &err, &session) < 0) {
		message_send_failure(s, m, &err);
		return;
	}

	message_begin(&w, &b, "checkpoints");
	json_open_object(&w);
	answer_put_checkpoints(&w, session);
	json_close(&w);
	message_finish(s, &w, &b, m->id);
}
