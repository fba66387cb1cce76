/*
 * One request on its way through the API (private to src/api).
 *
 * A struct call lives from the request's head until it is answered or its client left. The
 * functions below that answer (call_respond, call_error, call_problem, call_finish_stream …) end
 * the call: it is gone when they return. A handler that does not answer at once sets `ops` and
 * `work`; ops->on_gone then releases the work when the client leaves first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "api/dialect.h"
#include "api/guard.h"
#include "api/handlers/live_links.h"
#include "api/routes.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/memory_account.h"
#include "http/http.h"
#include "session/session.h"

struct api;
struct call;
struct json_writer;
struct metrics;
struct idempotency;
struct idempotent;
struct jobs;
struct packages;
struct cell_packages;
struct event_hub;
struct json_reader;
struct route;

struct call_ops {
	void (*on_body)(struct call *c, const char *data, size_t len); /* streamed bodies */
	void (*on_drained)(struct call *c);                            /* streamed answers */
	/* release the work; the call itself is freed by the caller */
	void (*on_gone)(struct call *c);
};

enum { CALL_ID_BYTES = 64 };

struct call {
	struct api *api;
	struct http_exchange *x;
	const struct route *route;
	uint64_t owner; /* who asks: as session_info.owner */
	/* somebody with a link alone (live_links.h); and whether that gives mouse and keyboard */
	bool by_link, may_control;
	uint64_t link_expires_ns; /* of the monotonic clock */
	const struct call_ops *ops;
	void *work;
	struct hold held;              /* what was decoded of its body and waits with it */
	struct idempotent *idempotent; /* of its Idempotency-Key, until it is answered; or NULL */
	struct json_reader *reader;    /* of a large body, before its handler is called; or NULL */
	/* waiting for another turn of the loop */
	void (*later)(struct call *c);
	bool needs_files;
	uint64_t deadline_ns;
	TAILQ_ENTRY(call) waiting;
	/* from the address */
	char id[CALL_ID_BYTES];
	char path[LIMIT_PATH_BYTES + 2];
};

TAILQ_HEAD(call_list, call);

struct ending {
	SLIST_ENTRY(ending) next;
	char id[SESSION_ID_LEN + 1];
};

struct api {
	struct guard guard;
	struct sessions *sessions;
	struct packages *packages;                /* or NULL */
	const struct profiles *profiles;          /* or NULL: the built-in ones */
	LIST_HEAD(, cell_packages) cell_packages; /* what cells wait for */
	struct http_server *server;               /* or NULL */
	struct metrics *metrics;
	struct event_hub *hub;
	uint64_t max_upload_bytes;
	const struct layer_state *layers;
	unsigned max_sessions_per_token;
	bool log_requests, draining;
	bool installing;       /* the modules that every session may import are not there yet */
	char *packages_failed; /* JSON text: those that could not be had; or NULL */
	bool no_live_control;  /* live views only show */
	struct live_links live_links;
	unsigned in_flight; /* calls */
	struct call_list waiting;
	SLIST_HEAD(, ending) endings; /* sessions to end in the next turn */
	uv_timer_t timer;             /* runs while somebody waits */
	char *openapi, *docs;         /* made at the first request */
	size_t openapi_len, docs_len;
	struct route_table routes;
	const struct dialect *dialects[DIALECTS_MAX]; /* NULL: no more */
	void *dialect_states[DIALECTS_MAX];
	unsigned char port_secret[32]; /* of the keys of ports (ports/port_host.h) */
	struct jobs *jobs;
	struct idempotency *idempotency;
};

/* ---- answering ---------------------------------------------------------- */

/*
 * The JSON a writer made in the buffer (which is empty after); a writer that failed is answered
 * with 503.
 */
void call_respond(struct call *c, int status, const struct json_writer *w, struct buffer *json);
void call_respond_as(struct call *c, int status, const char *content_type, struct buffer *body);
void call_respond_static(
	struct call *c, int status, const char *content_type, const char *body, size_t len);

/* The status follows from the error's slug. */
struct fields;
/*
 * The beginning of a handler that works on a session: the server takes new work, the session is the
 * caller's, and the body has the fields, which go into `into`. fields_finish() is the caller's,
 * also after an error.
 */
int call_begin(struct call *c, const struct fields *fields, void *into, struct error *e,
	struct session **ret);
void call_error(struct call *c, const struct error *e);
void call_problem(
	struct call *c, int status, const char *code, const char *detail, const char *remedy);

/* The first `size` bytes of the file, at the client's pace; takes the descriptor. */
void call_send_file(struct call *c, int fd, uint64_t size, const char *content_type);

/* 503: the server holds so much for others that there is no room for this. */
void call_no_memory(struct call *c);

/* 503: no interpreter could be started, and why. */
void call_no_interpreter(struct call *c, const char *why);

/* Ends a streamed answer: complete, or cut so that the client sees that it is not. */
void call_finish_stream(struct call *c);
void call_cut_stream(struct call *c);

/* The exchange became something else (a WebSocket, an answer the server made): forgets the call. */
void call_release(struct call *c);

/* The status an error is answered with. */
int call_status_of(const struct error *e);

/* ---- asking -------------------------------------------------------------- */

/* The session the address names, when it is the asker's; otherwise it does not exist. */
int call_session(const struct call *c, struct error *e, struct session **ret);
int api_session(
	const struct api *a, const char *id, uint64_t owner, struct error *e, struct session **ret);

/* Refuses when the server is about to end. -ESHUTDOWN. */
int api_check_open(const struct api *a, struct error *e);

/*
 * Refuses a session too many of one token, or `more` of them. -ENOSPC with slug
 * "too_many_sessions".
 */
int api_check_quota(const struct api *a, uint64_t owner, struct error *e);
int api_check_quota_for(const struct api *a, uint64_t owner, unsigned more, struct error *e);
/* The same for a caller that waits and tries again: the refusal is not counted. */
int api_peek_quota(const struct api *a, uint64_t owner, unsigned more, struct error *e);

/*
 * Is this media type among those of the Accept header? (No wildcards: they mean "whatever you
 * like".)
 */
bool call_accepts(const struct call *c, const char *media_type);

/* ---- later --------------------------------------------------------------- */

/* Calls fn in another turn of the loop, unless the client leaves before. */
void call_later(struct call *c, void (*fn)(struct call *c));

/*
 * Calls fn now or as soon as the session's files can be reached; answers with the error when that
 * does not happen.
 */
void call_when_files(struct call *c, void (*fn)(struct call *c));

/* Deferred work (base/deferred.h) is done between requests; NULL: from now on at once. */
void api_run_deferred(struct api *a);

/* Ends a session in another turn of the loop (a cell's own callbacks must not). */
void api_end_later(struct api *a, const char *id);

/* ---- handlers (one per route) ------------------------------------------- */

void handle_health(struct call *c);
void handle_ready(struct call *c);
void handle_node(struct call *c);
void handle_drain(struct call *c);
void handle_drain_cancel(struct call *c);
void handle_version(struct call *c);
void handle_metrics(struct call *c);
void handle_profiles(struct call *c);
void handle_openapi(struct call *c);
void handle_docs(struct call *c);

void handle_session_create(struct call *c);
void handle_session_list(struct call *c);
void handle_session_get(struct call *c);
void handle_session_delete(struct call *c);
void handle_session_interrupt(struct call *c);
void handle_session_reset(struct call *c);
void handle_checkpoint_create(struct call *c);
void handle_checkpoint_list(struct call *c);
void handle_checkpoint_delete(struct call *c);
void handle_rollback(struct call *c);
void handle_fork(struct call *c);
void handle_session_packages(struct call *c);
void handle_logs(struct call *c);
void handle_screenshot(struct call *c);
void handle_windows(struct call *c);
void handle_input(struct call *c);
void handle_live(struct call *c);
void handle_live_link(struct call *c);
void handle_live_socket(struct call *c);
void handle_share(struct call *c);
void handle_network(struct call *c);
void handle_recording(struct call *c);
void handle_recording_list(struct call *c);
void handle_recording_get(struct call *c);
void handle_recording_delete(struct call *c);

void handle_console(struct call *c);
void handle_console_file(struct call *c);
void handle_session_patch(struct call *c);
void handle_session_pause(struct call *c);
void handle_session_resume(struct call *c);
void handle_cells(struct call *c);
void handle_archive_get(struct call *c);
void handle_archive_put(struct call *c);
enum http_body_mode begin_archive_put(struct call *c);
void handle_cell(struct call *c);
void handle_export(struct call *c);
void handle_events(struct call *c);
void handle_volume_create(struct call *c);
void handle_volume_list(struct call *c);
void handle_volume_get(struct call *c);
void handle_volume_delete(struct call *c);
void handle_variables(struct call *c);
void handle_complete(struct call *c);
void handle_inspect(struct call *c);

void handle_execute(struct call *c);
void handle_run(struct call *c);
void handle_batch(struct call *c);
void handle_socket(struct call *c);

void handle_tools_put(struct call *c);
void handle_tools_get(struct call *c);
void handle_tool_calls(struct call *c);
void handle_tool_answer(struct call *c);

void handle_file_list(struct call *c);
void handle_file_get(struct call *c);
void handle_file_delete(struct call *c);
void handle_file_put(struct call *c);
enum http_body_mode begin_file_put(struct call *c);
