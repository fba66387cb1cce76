#include "api/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_words.h"
#include "api/idempotency.h"
#include "api/routes.h"
#include "api/schema/fields.h"
#include "base/clock.h"
#include "base/deferred.h"
#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* Calls that wait share the time of one turn; the others have theirs in the next one. */
enum { TICK_MS = 1, TURN_NS = 1500 * 1000 };

/* ---- answering ----------------------------------------------------------- */

static void stop_waiting(struct call *c)
{
	if (c->later)
		TAILQ_REMOVE(&c->api->waiting, c, waiting);
	c->later = NULL;
}

void call_release(struct call *c)
{
	stop_waiting(c);
	hold_set(&c->held, 0);
	idempotent_forget(c->idempotent);
	json_reader_destroy(c->reader);
	c->api->in_flight--;
	free(c);
}

void call_respond_as(struct call *c, int status, const char *content_type, struct buffer *body)
{
	struct http_exchange *x = c->x;
	call_keep_answer(c, status, body ? body->data : "", body ? body->len : 0);
	call_release(c);
	http_respond(x, status, content_type, body);
}

void call_respond(struct call *c, int status, const struct json_writer *w, struct buffer *json)
{
	/* so that the next prompt of a terminal is on its own line */
	if (json_writer_end(w) < 0 || buffer_append_char(json, '\n') < 0)
		call_no_memory(c);
	else
		call_respond_as(c, status, "application/json", json);
}

void call_respond_static(
	struct call *c, int status, const char *content_type, const char *body, size_t len)
{
	struct http_exchange *x = c->x;
	call_release(c);
	http_respond_copy(x, status, content_type, body, len);
}

void call_problem(
	struct call *c, int status, const char *code, const char *detail, const char *remedy)
{
	struct http_exchange *x = c->x;
	char expanded[EDGE_TEXT_MAX];
	call_release(c);
	http_respond_problem(x, status, code, detail, api_remedy(remedy, expanded));
}

void call_no_memory(struct call *c)
{
	http_add_header(c->x, "Retry-After", "1");
	call_problem(c, 503, "server_memory",
		"the server has reached its limit on memory held for clients (requests, output, unread answers)",
		"Try again in a second; read answers as they arrive, and request less output at once (limits.output_bytes).");
}

void call_no_interpreter(struct call *c, const char *why)
{
	char detail[256];
	snprintf(detail, sizeof(detail), "no interpreter could be started: %s", why);
	http_add_header(c->x, "Retry-After", "1");
	call_problem(c, 503, "no_resources", detail,
		"Try again in a second; the server's log says more, and `glovebox doctor` checks the machine.");
}

void call_finish_stream(struct call *c)
{
	struct http_exchange *x = c->x;
	call_keep_answer(c, 200, NULL, 0);
	call_release(c);
	http_stream_end(x);
}

void call_cut_stream(struct call *c)
{
	struct http_exchange *x = c->x;
	call_release(c);
	http_stream_abort(x);
}

/* ---- errors -------------------------------------------------------------- */

struct status_row {
	const char *slug;
	int status;
	unsigned retry_s; /* Retry-After; 0: none */
};

static const struct status_row status_rows[] = {
	{ "unauthorized", 401, 0 },
	{ "origin_not_allowed", 403, 0 },
	{ "operator_only", 403, 0 },
	{ "path_refused", 403, 0 },
	{ "network_not_allowed", 403, 0 },
	{ "mount_not_found", 404, 0 },
	{ "volume_not_found", 404, 0 },
	{ "volume_exists", 409, 0 },
	{ "volume_in_use", 409, 1 },
	{ "volume_full", 409, 0 },
	{ "too_many_volumes", 409, 0 },
	{ "invalid_package", 400, 0 },
	{ "package_refused", 403, 0 },
	{ "session_not_found", 404, 0 },
	{ "file_not_found", 404, 0 },
	{ "call_not_found", 404, 0 },
	{ "too_many_pollers", 429, 1 },
	{ "not_a_file", 409, 0 },
	{ "not_a_directory", 409, 0 },
	{ "is_a_directory", 409, 0 },
	{ "no_display", 409, 0 },
	{ "idempotency_busy", 409, 1 },
	{ "idempotency_conflict", 409, 0 },
	{ "queue_timeout", 504, 0 },
	{ "link_expired", 403, 0 },
	{ "read_only", 403, 0 },
	{ "view_only", 403, 0 },
	{ "recording_running", 409, 0 },
	{ "nothing_recorded", 409, 0 },
	{ "ffmpeg_missing", 501, 0 },
	{ "film_failed", 503, 0 },
	{ "session_busy", 409, 0 },
	{ "session_paused", 409, 0 },
	{ "not_paused", 409, 0 },
	{ "cannot_checkpoint", 409, 0 },
	{ "cannot_rollback", 409, 0 },
	{ "cannot_fork", 409, 0 },
	{ "no_loopback", 409, 0 },
	{ "port_leads_out", 403, 0 },
	{ "too_many_connections", 503, 1 },
	{ "too_many_watches", 429, 1 },
	{ "nothing_to_undo", 409, 0 },
	{ "checkpoint_not_found", 404, 0 },
	{ "recording_not_found", 404, 0 },
	{ "too_many_recordings", 429, 0 },
	{ "directory_not_empty", 409, 0 },
	{ "session_gone", 410, 0 },
	{ "node_restarted", 410, 0 },
	{ "file_too_large", 413, 0 },
	{ "unsupported_media_type", 415, 0 },
	{ "unsupported_encoding", 415, 0 },
	{ "host_not_allowed", 421, 0 },
	{ "package_not_found", 422, 0 },
	{ "package_conflict", 422, 0 },
	{ "package_build_failed", 422, 0 },
	{ "package_hash_mismatch", 422, 0 },
	{ "packages_too_large", 422, 0 },
	{ "package_failed", 422, 0 },
	{ "package_in_use", 409, 0 },
	{ "queue_full", 429, 1 },
	{ "too_many_questions", 429, 1 },
	{ "too_many_links", 429, 5 },
	{ "too_many_sessions", 429, 5 },
	{ "server_full", 503, 5 },
	{ "too_many_processes", 429, 1 },
	{ "too_many_contexts", 429, 1 },
	{ "context_not_found", 404, 0 },
	{ "is_context", 409, 0 },
	{ "process_not_found", 404, 0 },
	{ "process_ended", 409, 0 },
	{ "process_gone", 410, 0 },
	{ "no_stdin", 409, 0 },
	{ "no_terminal", 409, 0 },
	{ "stdin_full", 429, 1 },
	{ "exec_not_allowed", 403, 0 },
	{ "policy_process", 403, 0 },
	{ "command_too_long", 413, 0 },
	{ "cannot_start", 422, 0 },
	{ "index_unreachable", 502, 5 },
	{ "display_unavailable", 501, 0 },
	{ "limit_not_enforced", 501, 0 },
	{ "starting", 503, 1 },
	{ "server_memory", 503, 1 },
	{ "no_resources", 503, 1 },
	{ "draining", 503, 10 },
	{ "package_timeout", 504, 0 },
	{ "no_space", 507, 0 },
	{ "store_full", 507, 0 },
};

/* For errors without a word of their own. */
static const struct {
	int err, status;
} errno_rows[] = {
	{ -EINVAL, 400 },
	{ -ERANGE, 400 },
	{ -E2BIG, 413 },
	{ -ENOENT, 404 },
	{ -EIDRM, 410 },
	{ -EBUSY, 429 },
	{ -ENOSPC, 429 },
	{ -ESHUTDOWN, 503 },
	{ -EAGAIN, 503 },
	{ -ENOMEM, 503 },
	{ -EMFILE, 503 },
	{ -ENFILE, 503 },
};

static const struct status_row *find_status(const char *slug)
{
	for (size_t i = 0; i < ARRAY_LEN(status_rows); i++)
		if (text_eq(status_rows[i].slug, slug))
			return &status_rows[i];
	return NULL;
}

int call_status_of(const struct error *e)
{
	const struct status_row *row = find_status(e->slug);
	if (row)
		return row->status;
	for (size_t i = 0; i < ARRAY_LEN(errno_rows); i++)
		if (errno_rows[i].err == e->err)
			return errno_rows[i].status;
	return 500;
}

void call_error(struct call *c, const struct error *e)
{
	const struct status_row *row = find_status(e->slug);
	struct http_exchange *x = c->x;
	char seconds[16];
	if (row && row->retry_s) {
		snprintf(seconds, sizeof(seconds), "%u", row->retry_s);
		http_add_header(x, "Retry-After", seconds);
	}
	char remedy[EDGE_TEXT_MAX];
	call_release(c);
	http_respond_problem(x, call_status_of(e), e->slug, e->text, api_remedy(e->remedy, remedy));
}

/* ---- asking -------------------------------------------------------------- */

static const char *id_of_name(const struct api *a, const char *name, uint64_t owner)
{
	struct session_info info;
	for (struct session *s = sessions_next(a->sessions, NULL); s;
		s = sessions_next(a->sessions, s)) {
		session_info(s, &info);
		if (info.owner == owner && info.name && text_eq(info.name, name))
			return info.id;
	}
	return NULL;
}

static int no_session(const struct api *a, const char *id, uint64_t owner, struct error *e)
{
	const char *meant = id_of_name(a, id, owner);
	error_set(e, -ENOENT, "there is no session %.40s", id);
	if (meant)
		error_remedy(
			e, "This is the name of a session; use its id in the path: %s.", meant);
	else
		error_remedy(e, "{find_session}.");
	error_slug(e, "session_not_found");
	return -ENOENT;
}

int api_session(
	const struct api *a, const char *id, uint64_t owner, struct error *e, struct session **ret)
{
	struct session_info info;
	struct session *s = NULL;
	int r = session_find(a->sessions, id, e, &s);
	bool restarted = r < 0 && e && text_eq(e->slug, "node_restarted");
	if (r == -ENOENT ||
		(r == -EIDRM && !restarted && session_gone_owner(a->sessions, id) != owner))
		return no_session(a, id, owner, e);
	if (r < 0)
		return r;
	session_info(s, &info);
	/* A session of another owner gets the same answer as one that never existed. */
	if (info.owner != owner)
		return no_session(a, id, owner, e);
	*ret = s;
	return 0;
}

int call_session(const struct call *c, struct error *e, struct session **ret)
{
	return api_session(c->api, c->id, c->owner, e, ret);
}

int api_check_open(const struct api *a, struct error *e)
{
	if (!a->draining)
		return 0;
	error_set(e, -ESHUTDOWN, "the server is shutting down and accepts no new work");
	error_remedy(e, "Try again when the server is running again, or use another server.");
	error_slug(e, "draining");
	return -ESHUTDOWN;
}

int call_begin(struct call *c, const struct fields *fields, void *into, struct error *e,
	struct session **ret)
{
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = api_check_open(c->api, e);
	if (r == 0)
		r = call_session(c, e, ret);
	return r == 0 ? fields_decode_text(fields, body, len, into, e) : r;
}

int api_check_quota(const struct api *a, uint64_t owner, struct error *e)
{
	return api_check_quota_for(a, owner, 1, e);
}

int api_check_quota_for(const struct api *a, uint64_t owner, unsigned more, struct error *e)
{
	int r = api_peek_quota(a, owner, more, e);
	if (r < 0)
		sessions_count_refusal(a->sessions, REFUSED_QUOTA);
	return r;
}

int api_peek_quota(const struct api *a, uint64_t owner, unsigned more, struct error *e)
{
	unsigned n = 0;
	if (!a->max_sessions_per_token || !owner)
		return 0;
	for (struct session *s = sessions_next(a->sessions, NULL); s;
		s = sessions_next(a->sessions, s)) {
		struct session_info info;
		session_info(s, &info);
		n += info.owner == owner;
	}

	if (n + more <= a->max_sessions_per_token)
		return 0;
	if (more > 1)
		error_set(e, -ENOSPC,
			"you have %u sessions; with %u more you would exceed the %u sessions that one token may have",
			n, more, a->max_sessions_per_token);
	else
		error_set(e, -ENOSPC, "you have %u sessions, the most that one token may have", n);
	error_remedy(e, "End sessions you do not need with DELETE /v1/sessions/{id}.");
	error_slug(e, "too_many_sessions");
	return -ENOSPC;
}

/* ---- later --------------------------------------------------------------- */

static void end_sessions(struct api *a)
{
	while (!SLIST_EMPTY(&a->endings)) {
		struct ending *ending = SLIST_FIRST(&a->endings);
		struct session *s;
		SLIST_REMOVE_HEAD(&a->endings, next);
		/*
		 * The drain ends every session, and then the table itself: it is not ours to ask
		 * any more.
		 */
		if (!a->draining && !session_find(a->sessions, ending->id, NULL, &s))
			session_end(s, "its run was over");
		free(ending);
	}
}

/* 1: the files are there; 0: not yet; negative: they will not come. */
static int files_are_there(const struct call *c, struct error *e)
{
	struct session *s;
	int r = call_session(c, e, &s);
	if (r < 0)
		return r;
	if (session_workspace_fd(s) >= 0)
		return 1;
	if (clock_now_ns() < c->deadline_ns)
		return 0;
	error_set(e, -EAGAIN, "the session is still starting");
	error_remedy(e, "Try again.");
	error_slug(e, "starting");
	return -EAGAIN;
}

static void poll_call(struct call *c)
{
	struct error e = { 0 };
	void (*fn)(struct call *) = c->later;
	int r = c->needs_files ? files_are_there(c, &e) : 1;
	if (!r)
		return;
	stop_waiting(c);
	if (r > 0) {
		fn(c);
		return;
	}
	if (c->ops && c->ops->on_gone)
		c->ops->on_gone(c);
	call_error(c, &e);
}

static void on_tick(uv_timer_t *timer)
{
	struct api *a = timer->data;
	end_sessions(a);
	struct call *last = TAILQ_LAST(&a->waiting, call_list);
	uint64_t began = clock_now_ns();
	/*
	 * One round over those that wait now: a call that waits again goes to the end and has its
	 * turn in the next tick. poll_call() removes at most its own call, so the successor stays
	 * valid.
	 */
	for (struct call *c = TAILQ_FIRST(&a->waiting), *next; c; c = next) {
		bool is_last = c == last;
		next = TAILQ_NEXT(c, waiting);
		poll_call(c);
		if (is_last || clock_now_ns() - began > TURN_NS)
			break;
	}

	bool more = deferred_run(TURN_NS / 3);
	if (!more && TAILQ_EMPTY(&a->waiting) && SLIST_EMPTY(&a->endings))
		uv_timer_stop(timer);
}

static void start_ticking(struct api *a)
{
	if (!uv_is_active((uv_handle_t *)&a->timer))
		uv_timer_start(&a->timer, on_tick, TICK_MS, TICK_MS);
}

static void on_deferred(void *userdata)
{
	start_ticking(userdata);
}

void api_run_deferred(struct api *a)
{
	deferred_set_wake(a ? on_deferred : NULL, a);
}

static void wait_for(struct call *c, void (*fn)(struct call *c), bool needs_files)
{
	c->later = fn;
	c->needs_files = needs_files;
	TAILQ_INSERT_TAIL(&c->api->waiting, c, waiting);
	start_ticking(c->api);
}

void call_later(struct call *c, void (*fn)(struct call *c))
{
	wait_for(c, fn, false);
}

void call_when_files(struct call *c, void (*fn)(struct call *c))
{
	struct error e = { 0 };
	c->deadline_ns = clock_now_ns() + LIMIT_START_SECONDS * NSEC_PER_SEC;
	int r = files_are_there(c, &e);
	if (r > 0) {
		fn(c);
	} else if (!r) {
		wait_for(c, fn, true);
	} else {
		if (c->ops && c->ops->on_gone)
			c->ops->on_gone(c);
		call_error(c, &e);
	}
}

void api_end_later(struct api *a, const char *id)
{
	struct ending *ending = calloc(1, sizeof(*ending));
	if (!ending)
		return; /* it still ends by its idle timeout */
	snprintf(ending->id, sizeof(ending->id), "%s", id);
	SLIST_INSERT_HEAD(&a->endings, ending, next);
	start_ticking(a);
}
