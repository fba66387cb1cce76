/*
 * MCP, the Model Context Protocol: Python sessions as tools of an assistant (private to the mcp_*.c
 * files).
 *
 * One JSON-RPC request is a struct mcp_request. A transport (mcp_http.c: POST /mcp, mcp_stream.c:
 * GET /sse) makes it, gives it a sink, and calls mcp_dispatch(). The request then answers exactly
 * once with mcp_respond() or mcp_fail(), or is cancelled with mcp_cancel(); either way it is freed.
 *
 * Two eras are served at once and told apart per request: modern (2026-07-28: stateless, every
 * request carries its version in `_meta`) and legacy (2025-11-25 and before: `initialize`,
 * Mcp-Session-Id).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "api/api.h"
#include "api/outbox.h"
#include "api/schema/fields.h"
#include "base/buffer.h"
#include "base/edge_words.h"
#include "base/error.h"
#include "base/memory_account.h"
#include "session/session.h"
#include "json/json_write.h"

struct call;
struct mcp_task;
struct mcp_tool;

#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_NEWEST_LEGACY "2025-11-25"
#define MCP_META "io.modelcontextprotocol/"

enum {
	MCP_CLIENT_ID = 32,         /* letters of an Mcp-Session-Id */
	MCP_TEXT_MAX = 30000,       /* bytes of one stream in the text of a result */
	MCP_FIELD_MAX = 100 * 1024, /* bytes of one stream in structuredContent */
	/* bytes as JSON; with the pictures a result stays below 1 MB */
	MCP_TEXT_JSON = 100 * 1000,
	MCP_STRUCTURED_JSON = 260 * 1000,
	MCP_CONTENT_JSON = 900 * 1000, /* of a result without pictures, such as a page of a file */
	/*
	 * base64 characters of all pictures of a result, which must stay below 1 MB with its text
	 */
	MCP_IMAGES_MAX = 600 * 1024,
	MCP_IMAGE_SIDE = 1568, /* pixels; models scale larger pictures down themselves */
	MCP_RESULT_IMAGES = 8,
	MCP_PROGRESS_BYTES = 4096, /* of output in one progress message */
	/* handshakes of one token that are remembered; its least recently used one is evicted */
	MCP_CLIENTS_MAX = 256,
	/* tasks of one token, ended ones included; its oldest ended one is evicted */
	MCP_TASKS_MAX = 32,
};

/* Codes of JSON-RPC errors. */
enum {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_UNKNOWN_METHOD = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_INTERNAL = -32603,
	MCP_RESOURCE_NOT_FOUND = -32002, /* legacy */
	MCP_HEADER_MISMATCH = -32020,
	MCP_MISSING_CAPABILITY = -32021,
	MCP_UNKNOWN_VERSION = -32022,
};

struct mcp_request;

/* Where the messages of a request go. */
struct mcp_sink {
	/*
	 * One JSON-RPC message; the buffer is empty after. `last`: it is the response, with this
	 * HTTP status.
	 */
	void (*send)(struct mcp_request *r, struct buffer *message, bool last, int status);
	/* The request was cancelled and has no response. May be NULL. */
	void (*cancelled)(struct mcp_request *r);
	/* Called every MCP tick with the request's age; may be NULL. */
	void (*tick)(struct mcp_request *r, uint64_t age_ms);
};

/* A session that ends with the client that made it. */
struct mcp_owned {
	LIST_ENTRY(mcp_owned) link;
	char id[SESSION_ID_LEN + 1];
};

TAILQ_HEAD(mcp_request_list, mcp_request);

/* A client that introduced itself with `initialize`, GET /sse or GET /mcp/lease. */
struct mcp_client {
	TAILQ_ENTRY(mcp_client) link;
	struct mcp *home;
	char id[MCP_CLIENT_ID + 1];
	uint64_t owner, used_ns;
	struct call *stream; /* of GET /sse or GET /mcp/lease; NULL for none */
	struct outbox out;
	bool python_tool; /* GET /sse: the one tool `python` in a session of the client's own */
	bool lease;       /* sessions that it makes end with its stream */
	char session[SESSION_ID_LEN + 1]; /* of the tool `python` */
	LIST_HEAD(, mcp_owned) sessions;
};

struct mcp_request {
	TAILQ_ENTRY(mcp_request) link; /* in mcp.requests */
	struct mcp *home;
	struct mcp_client *client; /* or NULL */
	uint64_t owner;            /* whose token it came with */
	bool modern;
	const struct mcp_sink *sink;
	void *target;    /* the sink's */
	json_t *message; /* owned; the next four point into it */
	const json_t *id, *params, *meta, *progress_token;
	uint64_t started_ns, files_ns; /* since when it waits for files */
	struct hold held;              /* bytes of the message */

	/* progress */
	uint64_t progress, told_ns;
	struct buffer output; /* not told yet; at most one message */

	/* a tool at work */
	const struct mcp_tool *tool;
	struct mcp_arguments *arguments;
	bool new_session, executing, over;
	bool done; /* the cell has ended */
	char session[SESSION_ID_LEN + 1];
	struct cell *cell;
	struct reset_packages *packages; /* that the new session waits for */
	/* once the session's files can be reached */
	void (*then)(struct mcp_request *r, struct session *s);
	void (*release)(struct mcp_request *r); /* undoes `work`; NULL for none */
	void *work;
	struct mcp_task *task; /* that the result belongs to; NULL for none */
};

TAILQ_HEAD(mcp_client_list, mcp_client);
TAILQ_HEAD(mcp_task_list, mcp_task);

struct mcp {
	struct api *api;
	const struct mcp_config *configs; /* see struct api_config */
	unsigned n_configs;
	struct mcp_client_list clients; /* least recently used first */
	struct mcp_request_list requests;
	struct mcp_task_list tasks; /* oldest first */
	uv_timer_t tick;            /* runs while requests are under way */
};

/* ---- requests (mcp.c) ---------------------------------------------------------------- */

struct mcp *mcp_home(const struct api *a);

/* The settings that hold for the request's token. */
const struct mcp_config *mcp_config_of(const struct mcp_request *r);

/* Takes the message over. NULL without memory. */
struct mcp_request *mcp_request_create(
	struct mcp *home, json_t *message, const struct mcp_sink *sink, void *target);

/* Starts the request; it may be answered and gone when this returns. */
void mcp_dispatch(struct mcp_request *r);

/* Frees a request that ended while its `executing` was set: for the function that had set it. */
void mcp_request_finish(struct mcp_request *r);

/* Undoes what the request does: interrupts its cell. The sink hears `cancelled`. */
void mcp_cancel(struct mcp_request *r);

/* Cancels the client's request with that id, when it is under way. */
void mcp_cancel_id(struct mcp *home, const struct mcp_client *c, const json_t *id);

/*
 * Writes the beginning of a response: the result's object is open after. End it with mcp_respond().
 */
void mcp_begin_result(const struct mcp_request *r, struct json_writer *w, struct buffer *b);
void mcp_respond(struct mcp_request *r, struct json_writer *w, struct buffer *b);

/*
 * Answers with a JSON-RPC error. `status` is the HTTP status of the modern era; `data` is JSON text
 * or NULL.
 */
void mcp_fail(struct mcp_request *r, int code, int status, const char *text, const char *data);

/* Writes such an error for a message that never became a request; id may be NULL. */
void mcp_put_error(
	struct json_writer *w, const json_t *id, int code, const char *text, const char *data);
/* Answers a POST with such an error. */
void mcp_answer_error(struct call *c, int status, const json_t *id, int code, const char *text);
void mcp_put_value(struct json_writer *w, const json_t *value); /* NULL: null */

/* Adds output to the request's progress, told with the next tick. */
void mcp_tell_output(struct mcp_request *r, const char *data, size_t len);

/*
 * Sends progress when there is something to say. For requests with a progress token, at every tick.
 */
void mcp_tell_progress(struct mcp_request *r, uint64_t now_ns);

/* ---- checks (mcp_checks.c): they return what is wrong with a message, or NULL ---------------- */

const char *mcp_check_shape(const json_t *message); /* as JSON-RPC: MCP_INVALID_REQUEST */
const char *mcp_check_batch(const struct call *c, const json_t *batch);
/* the version that the header names; with the error's code */
const char *mcp_check_version(const struct call *c, const json_t *message, int *ret_code);

/* Also a response: nothing was asked, so there is nothing to do with it. */
bool mcp_is_notification(const json_t *message);
bool mcp_is_modern(const json_t *message);

/* Do the headers repeat what the request of the modern era says? False: it was answered. */
bool mcp_headers_match(struct mcp_request *r, const struct call *c);

/* ---- clients (mcp_clients.c) ----------------------------------------------------------- */

struct mcp_client *mcp_client_create(struct mcp *home, uint64_t owner); /* NULL without memory */
struct mcp_client *mcp_client_find(struct mcp *home, uint64_t owner, const char *id);
/* Cancels its requests and ends the sessions of a lease. */
void mcp_client_destroy(struct mcp_client *c);
/* the session ends with the lease */
void mcp_client_own(struct mcp_client *c, const char *session);
/*
 * Ends the streams of clients that wait for no answer, since the server waits for open streams
 * before it ends.
 */
void mcp_clients_drain(struct mcp *home);
void handle_mcp_lease(struct call *c);

/* ---- tools ---------------------------------------------------------------------------- */

/* What the tools take, decoded; each tool's table fills its own part. */
struct mcp_arguments {
	char *session_id;
	struct field_text code, command, content;
	double timeout_s;
	char *cwd, *path, *to;
	char **packages;
	bool screenshot, has_recursive, recursive, detach;
	int encoding; /* 0: UTF-8 text, 1: base64 */
	uint64_t offset, limit, count, window;
};

enum {
	MCP_READ_ONLY = 1 << 0,
	MCP_DESTRUCTIVE = 1 << 1,
	MCP_IDEMPOTENT = 1 << 2,
	MCP_NEEDS_DISPLAY = 1 << 3, /* offered only where sessions made by MCP have a display */
	MCP_NEEDS_SESSION = 1 << 4, /* session_id is required */
	MCP_RUNS_CODE = 1 << 5,     /* the description also says the limits */
};

struct mcp_tool {
	const char *name, *title, *description;
	const char *about_windows;  /* further sentences, where sessions have a screen; or NULL */
	const struct fields *input; /* NULL: see input_schema */
	const char *input_schema;   /* JSON text, for arguments that the tool reads itself */
	const char *output_schema;  /* JSON text */
	unsigned flags;
	/*
	 * The arguments are decoded. With MCP_NEEDS_SESSION `s` is the session, else NULL. Answers
	 * now or later.
	 */
	void (*call)(struct mcp_request *r, struct session *s);
};

extern const struct mcp_tool mcp_tools[];
extern const size_t mcp_tools_count;
extern const struct mcp_tool mcp_python_tool; /* for GET /sse */
extern const struct fields mcp_all_fields;    /* frees what any tool's table filled in */

bool mcp_tool_offered(const struct mcp_config *c, const struct mcp_tool *t);
void mcp_tools_list(struct mcp_request *r);
void mcp_tools_call(struct mcp_request *r);

/*
 * What a model can do about an error with the tools alone, "" when nothing is known. `code` is the
 * error's code, `type` that of a Python error (either may be NULL), `remedy` the one for clients of
 * the native API. Valid until the next call.
 */
const char *mcp_remedy(const struct mcp_request *r, const char *code, const char *type,
	const char *message, const char *remedy);

/* Answers a tool call with `isError`: a sentence that says how to repair the call. */
extern const struct edge mcp_words; /* mcp_words.c */
void mcp_tool_error(struct mcp_request *r, const char *text, const char *remedy);
void mcp_tool_error_of(struct mcp_request *r, const struct error *e);

/*
 * The result of a tool: `text` is the one text content, `structured` the JSON text of
 * structuredContent.
 */
void mcp_tool_done(struct mcp_request *r, const struct buffer *text,
	const struct buffer *structured, bool is_error);

/*
 * Ends the request of a tool with the content array's and the structuredContent's text already
 * written.
 */
void mcp_send_result(
	struct mcp_request *r, struct buffer *content, struct buffer *structured, bool is_error);

/* How many bytes of the text, whole characters, take at most `max` bytes as a JSON string. */
size_t mcp_json_fit(const char *text, size_t len, size_t max);

/* Appends one content item to a writer inside the content array. */
void mcp_put_text(struct json_writer *w, const char *text, size_t len);
void mcp_put_image(struct json_writer *w, const char *mime, const char *base64, size_t len);

/*
 * Finds the session that the arguments name, or makes one, and calls `then` as soon as it can take
 * cells (files: as soon as its files can be reached). Errors are answered here.
 */
void mcp_with_session(
	struct mcp_request *r, bool files, void (*then)(struct mcp_request *r, struct session *s));

/* mcp_run.c */
void mcp_call_run_python(struct mcp_request *r, struct session *s);
void mcp_call_run_shell(struct mcp_request *r, struct session *s);
void mcp_call_python(struct mcp_request *r, struct session *s);
/* mcp_result.c: the observation of a cell as the result of a tool */
void mcp_run_done(struct mcp_request *r, const struct observation *o);
/* mcp_files.c */
void mcp_call_write_file(struct mcp_request *r, struct session *s);
void mcp_call_read_file(struct mcp_request *r, struct session *s);
void mcp_call_list_files(struct mcp_request *r, struct session *s);
/* mcp_history.c */
void mcp_call_rollback(struct mcp_request *r, struct session *s);
void mcp_call_fork(struct mcp_request *r, struct session *s);
void mcp_call_close(struct mcp_request *r, struct session *s);
/* mcp_screen.c */
void mcp_call_screenshot(struct mcp_request *r, struct session *s);
void mcp_call_computer(struct mcp_request *r, struct session *s);

/* ---- resources (mcp_resources.c) and tasks (mcp_tasks.c) --------------------------------- */

void mcp_resources_list(struct mcp_request *r);
void mcp_resources_templates(struct mcp_request *r);
void mcp_resources_read(struct mcp_request *r);

/* Does the client of this request take a task for an answer? */
bool mcp_wants_task(const struct mcp_request *r);
/*
 * Answers with a task; the request lives on without a client. False: without memory, and it was
 * answered.
 */
bool mcp_task_begin(struct mcp_request *r);
void mcp_task_take(struct mcp_request *r, struct buffer *result); /* its result object's text */
void mcp_tasks_get(struct mcp_request *r);
void mcp_tasks_cancel(struct mcp_request *r);
void mcp_tasks_update(struct mcp_request *r); /* acknowledged: no task asks its client for input */
void mcp_tasks_free(struct mcp *home);
