/*
 * Pause, fork and snapshots. A snapshot is a fork that is paused at once; a sandbox that is made
 * from it is a fork of that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/schema/requests.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dialects/e2b/e2b_control.h"
#include "session/history/session_history.h"
#include "session/pause.h"
#include "json/json_dump.h"

#define YEAR_SECONDS 31536000.0

enum { FORKS_MAX = 100 };

/* ---- pause -------------------------------------------------------------------------- */

void e2b_pause(struct call *c)
{
	_cleanup_json_ json_t *body = e2b_body(c);
	struct session *s = body ? e2b_named(c) : NULL;
	struct error e = { 0 };
	if (!s)
		return;
	if (session_pause(s, &e) == 0)
		call_respond_as(c, 204, NULL, NULL);
	else if (text_eq(e.slug, "session_paused"))
		e2b_error(c, 409, "the sandbox is paused already");
	else
		e2b_error(c, 400,
			"code runs in the sandbox. Wait until it has ended, and pause the sandbox then");
}

/* ---- forks, which take a moment ----------------------------------------------------- */

enum fork_answer { ANSWER_FORKS, ANSWER_SNAPSHOT, ANSWER_SANDBOX };

struct fork_job {
	struct call *call;
	char session[SESSION_ID_LEN + 1]; /* that is forked */
	enum fork_answer answer;
	json_t *environment; /* of a new sandbox; owned, or NULL */
	bool asking, over;
};

static void job_free(struct fork_job *j)
{
	if (j)
		json_decref(j->environment);
	free(j);
}

static void job_gone(struct call *c)
{
	struct fork_job *j = c->work;
	struct session *s;
	if (!j->over && session_find(c->api->sessions, j->session, NULL, &s) == 0)
		session_history_abandon(s, j);
	c->work = NULL;
	c->ops = NULL;
	job_free(j);
}

static const struct call_ops job_ops = { .on_gone = job_gone };

static void answer_forks(struct call *c, struct session *const *sessions, unsigned n)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	json_writer_init(&w, &b);
	json_open_array(&w);
	for (unsigned i = 0; i < n; i++) {
		struct session_info info;
		session_info(sessions[i], &info);
		json_open_object(&w);
		json_key(&w, "sandbox");
		json_open_object(&w);
		e2b_put_sandbox(c, &w, &info);
		json_close(&w);
		json_close(&w);
	}

	json_close(&w);
	call_respond(c, 201, &w, &b);
}

static void put_snapshot(struct json_writer *w, const struct session_info *i, const json_t *kept)
{
	const char *name = json_string_value(json_object_get(kept, E2B_KEY_SNAPSHOT));
	char when[CLOCK_TEXT_MAX];
	json_open_object(w);
	json_field_cstr(w, "snapshotID", e2b_sandbox_id(i->id));
	json_key(w, "names");
	json_open_array(w);
	if (name && *name)
		json_put_cstr(w, name);
	json_close(w);
	json_field_cstr(w, "createdAt", clock_format(i->created_wall_ns, when));
	json_close(w);
}

static void answer_snapshot(struct call *c, struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	struct session_info i;
	struct json_writer w;

	if (session_pause(s, &e) < 0) {
		session_end(s, "the snapshot could not be paused");
		e2b_fail(c, &e);
		return;
	}

	session_info(s, &i);
	_cleanup_json_ json_t *kept = e2b_kept(&i);
	json_writer_init(&w, &b);
	put_snapshot(&w, &i, kept);
	call_respond(c, 201, &w, &b);
}

static void on_forked(
	void *userdata, const struct error *e, struct session *const *sessions, unsigned n)
{
	struct fork_job *j = userdata;
	struct call *c = j->call;

	j->over = true;
	c->work = NULL;
	c->ops = NULL;
	if (e)
		e2b_fail(c, e);
	else if (j->answer == ANSWER_FORKS)
		answer_forks(c, sessions, n);
	else if (j->answer == ANSWER_SNAPSHOT)
		answer_snapshot(c, sessions[0]);
	else {
		struct session_info i;
		session_info(sessions[0], &i);
		e2b_set_environment(c->api->sessions, i.id, j->environment);
		e2b_answer_sandbox(c, 201, sessions[0]);
	}
	if (!j->asking)
		job_free(j);
}

/* Takes what `own` holds. */
static void ask(struct call *c, struct session *s, unsigned count, struct session_params *own,
	enum fork_answer answer, json_t *environment)
{
	struct fork_request q = { .count = count, .own = own };
	struct error e = { 0 };
	struct session_info i;
	struct fork_job *j = calloc(1, sizeof(*j));
	int r = j ? api_check_open(c->api, &e) : error_set(&e, -ENOMEM, "out of memory");

	if (r == 0)
		r = api_check_quota_for(c->api, c->owner, count, &e);
	if (r == 0) {
		session_info(s, &i);
		*j = (struct fork_job){ .call = c,
			.answer = answer,
			.environment = json_incref(environment),
			.asking = true };
		snprintf(j->session, sizeof(j->session), "%s", i.id);
		c->work = j;
		c->ops = &job_ops;
		r = session_fork(s, &q, on_forked, j, &e);
		j->asking = false;
	}

	fields_finish(&session_fields, own);
	if (r == 0 && !j->over)
		return;
	if (r < 0) {
		c->work = NULL;
		c->ops = NULL;
		e2b_fail(c, &e);
	}

	job_free(j);
}

void e2b_fork(struct call *c)
{
	_cleanup_json_ json_t *body = e2b_body(c);
	struct session *s = body ? e2b_named(c) : NULL;
	const json_t *count = json_object_get(body, "count");
	json_int_t n = json_is_integer(count) ? json_integer_value(count) : 1;
	if (!s)
		return;
	if (n < 1 || n > FORKS_MAX) {
		e2b_error(c, 400, "count: one request makes 1 to 100 forks");
		return;
	}
	struct session_params own = { .ttl_s = e2b_timeout_of(body, E2B_TIMEOUT_S) };
	ask(c, s, (unsigned)n, &own, ANSWER_FORKS, NULL);
}

/* ---- snapshots ---------------------------------------------------------------------- */

void e2b_snapshot(struct call *c)
{
	_cleanup_json_ json_t *body = e2b_body(c);
	struct session *s = body ? e2b_named(c) : NULL;
	const char *name = json_string_value(json_object_get(body, "name"));
	struct session_info i;
	if (!s)
		return;

	session_info(s, &i);
	_cleanup_json_ json_t *kept = e2b_kept(&i);
	if (!kept)
		kept = json_pack("{s:s, s:{}}", E2B_KEY_TEMPLATE, "base", E2B_KEY_METADATA);
	json_object_set_new(kept, E2B_KEY_SNAPSHOT, json_string(name ? name : ""));
	json_object_set_new(kept, E2B_KEY_SNAPSHOT_OF, json_string(e2b_sandbox_id(i.id)));
	struct session_params own = { .ttl_s = YEAR_SECONDS };
	struct error e = { 0 };
	if (e2b_keep(kept, &own, &e) < 0) {
		e2b_fail(c, &e);
		return;
	}
	ask(c, s, 1, &own, ANSWER_SNAPSHOT, NULL);
}

/* 1 when the session is a snapshot of the caller's, and then what is kept of it; else 0. */
static int snapshot_of(
	struct call *c, struct session *s, struct session_info *ret, json_t **ret_kept)
{
	session_info(s, ret);
	json_t *kept = ret->owner == c->owner ? e2b_kept(ret) : NULL;
	if (json_is_string(json_object_get(kept, E2B_KEY_SNAPSHOT))) {
		*ret_kept = kept;
		return 1;
	}
	json_decref(kept);
	return 0;
}

/* Names may end with a tag of E2B's, which is ignored. */
static bool is_called(const json_t *kept, const char *key, const char *name)
{
	const char *has = json_string_value(json_object_get(kept, key));
	size_t len = strcspn(name, ":");
	return has && *has && strlen(has) == len && !strncmp(has, name, len);
}

struct session *e2b_find_snapshot(struct call *c, const char *which)
{
	struct session *found = NULL;
	struct session_info i;
	for (struct session *s = sessions_next(c->api->sessions, NULL); s;
		s = sessions_next(c->api->sessions, s)) {
		json_t *kept = NULL;
		if (snapshot_of(c, s, &i, &kept) &&
			(text_eq(e2b_sandbox_id(i.id), which) ||
				is_called(kept, E2B_KEY_SNAPSHOT, which)))
			found = s; /* the newest of a name */
		json_decref(kept);
	}
	return found;
}

static bool wanted(struct call *c, const json_t *kept)
{
	char of[64] = "", name[LIMIT_NAME_BYTES + 1] = "";
	if (http_query_param(c->x, "sandboxID", of, sizeof(of)) == 1 &&
		!is_called(kept, E2B_KEY_SNAPSHOT_OF, of))
		return false;
	return http_query_param(c->x, "name", name, sizeof(name)) != 1 || !*name ||
	       is_called(kept, E2B_KEY_SNAPSHOT, name);
}

void e2b_list_snapshots(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	uint64_t limit, after, n = 0;
	struct session_info i;
	struct json_writer w;
	char next[24] = "";

	if (e2b_page(c, &limit, &after) < 0)
		return;
	json_writer_init(&w, &b);
	json_open_array(&w);
	for (struct session *s = sessions_next(c->api->sessions, NULL); s;
		s = sessions_next(c->api->sessions, s)) {
		json_t *tree = NULL;
		int is = snapshot_of(c, s, &i, &tree);
		_cleanup_json_ json_t *kept = tree;
		if (!is || i.serial <= after || !wanted(c, kept))
			continue;
		if (n++ == limit) {
			http_add_header(c->x, "x-next-token", next);
			break;
		}
		snprintf(next, sizeof(next), "%llu", (unsigned long long)i.serial);
		put_snapshot(&w, &i, kept);
	}

	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void e2b_delete_template(struct call *c)
{
	struct session *s = e2b_find_snapshot(c, c->id);
	if (!s) {
		e2b_error(c, 404, "there is no snapshot of this id or name");
		return;
	}
	session_end(s, "the snapshot was deleted");
	call_respond_as(c, 204, NULL, NULL);
}

int e2b_keep(const json_t *kept, struct session_params *p, struct error *e)
{
	const size_t max = LIMIT_METADATA_BYTES + LIMIT_KEPT_METADATA_BYTES;
	int r = kept ? json_dump(kept, max, &p->metadata, NULL) : -ENOMEM;
	if (r != -ENOBUFS)
		return r < 0 ? error_set(e, r, "out of memory") : 0;
	error_set(e, -EINVAL, "the metadata and the name must have at most %d bytes as JSON",
		LIMIT_METADATA_BYTES);
	return error_slug(e, "invalid_field"), -EINVAL;
}

void e2b_create_from(struct call *c, struct session *snapshot, const json_t *body)
{
	struct session_info i;
	session_info(snapshot, &i);
	json_t *own = json_object_get(body, "metadata");
	_cleanup_json_ json_t *kept = json_pack("{s:s, s:b}", E2B_KEY_TEMPLATE,
		e2b_sandbox_id(i.id), E2B_KEY_RESUME,
		json_is_true(json_object_get(json_object_get(body, "autoResume"), "enabled")));
	json_object_set_new(
		kept, E2B_KEY_METADATA, json_is_object(own) ? json_incref(own) : json_object());
	_cleanup_(network_policy_finish) struct network_policy network = { 0 };
	json_t *variables = json_object_get(body, "envVars");
	struct error e = { 0 };
	if (e2b_network(body, &network, &e) < 0) {
		e2b_fail(c, &e);
		return;
	}
	if (network.net == JAIL_NET_ALLOW) {
		e2b_error(c, 501,
			"A sandbox that is made from a snapshot reaches no destination outside. Leave network.allowOut out, or create it from a template");
		return;
	}

	e2b_keep_network(kept, body);
	struct session_params p = { .ttl_s = e2b_timeout_of(body, E2B_TIMEOUT_S) };
	int r = e2b_keep(kept, &p, &e);
	if (r == 0 && e2b_environment(variables, NULL, &p) < 0)
		r = error_set(&e, -ENOMEM, "out of memory");
	if (r < 0) {
		fields_finish(&session_fields, &p);
		e2b_fail(c, &e);
		return;
	}
	ask(c, snapshot, 1, &p, ANSWER_SANDBOX, variables);
}
