/*
 * The HTTP/1.1 server on libuv: listens, reads requests, and writes answers, event streams and
 * WebSocket messages.
 *
 * One handler serves all requests. A request and its answer are a `struct http_exchange`. On one
 * connection exchanges come strictly one after another: the next pipelined request is shown to the
 * handler when the answer before it is complete.
 *
 *	on_headers ─► (on_body …) ─► on_request ─► http_respond()               one answer
 *	  └► http_stream_begin(), http_stream_write() …, http_stream_end()      an answer in pieces
 *	  └► http_sse_begin(), http_sse_event() …, http_stream_end()            an event stream
 *	  └► http_upgrade()                                        a WebSocket from here on
 *
 * Life of an exchange: valid from on_headers (or on_request) until the handler ended it
 * (http_respond*(), http_stream_end(), http_stream_abort(), http_upgrade()) or on_gone returned,
 * whichever comes first. Exactly one of the two happens to every exchange that the handler saw. The
 * answering functions may be called from any callback of the loop, never call back into the handler
 * (failures arrive as on_gone in a later turn), and may be called at any time after on_headers: an
 * answer before the body is complete drops the rest of the body.
 *
 * A client that closes its sending side while its answer is pending counts as gone, as in most
 * servers: a close and a half-close look the same from here, and a cell that nobody waits for must
 * not go on. Answers that were already complete are still delivered.
 *
 * The server itself handles: limits on head, target, headers, body, connections and time
 * (base/limits.h), answered with problem+json and 400, 408, 413, 414, 417, 431, 501, 503 or 505;
 * framing that could smuggle a request; exactly one valid Host; HEAD; Expect: 100-continue;
 * `X-Request-Id`, `X-Content-Type-Options: nosniff`, `Cache-Control: no-store` and Content-Length on
 * every answer; heartbeats on event streams; ping and close on WebSockets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct buffer;
struct error;
struct http_server;
struct http_exchange;
struct http_ws;

enum http_method {
	HTTP_METHOD_GET,
	HTTP_METHOD_HEAD,
	HTTP_METHOD_POST,
	HTTP_METHOD_PUT,
	HTTP_METHOD_PATCH,
	HTTP_METHOD_DELETE,
	HTTP_METHOD_OPTIONS,
	HTTP_METHOD_COUNT /* every other method was answered with 501 before a handler saw it */
};
const char *http_method_name(enum http_method m); /* "GET", … */
/* "Not Found", …; "Unknown" for what has no name */
const char *http_status_text(int status);

/* ---- the handler ------------------------------------------------------ */

enum http_body_mode {
	HTTP_BODY_BUFFER, /* keep the body (up to http_limit_body()) until on_request */
	HTTP_BODY_STREAM, /* give it to on_body as it comes */
	HTTP_BODY_ANSWERED /* the handler has answered already; there is no on_request, and x is not the
			      handler's any more */
};

/* What one request came to, for log and figures; valid during the call only. */
struct http_log_entry {
	const char *request_id, *remote;
	const char *method, *target; /* "-" when the head could not be read */
	/* 0: the client left before an answer; 101: it became a WebSocket */
	int status;
	/* out: with headers, as handed to the kernel or queued */
	uint64_t body_bytes_in, bytes_out;
	uint64_t duration_ns; /* from the whole head to the whole answer */
};

/*
 * Slots may be NULL but for on_request and on_gone. `server_userdata` is
 * http_server_config.userdata.
 */
struct http_handler {
	/*
	 * Called when the head of a request has arrived, also when there is no body: decides how
	 * the body is handled. NULL: the body is buffered.
	 */
	enum http_body_mode (*on_headers)(struct http_exchange *x, void *server_userdata);
	/* A piece of a streamed body; http_pause() may be called. */
	void (*on_body)(
		struct http_exchange *x, const char *data, size_t len, void *server_userdata);
	/* The request is complete: answer now or later. */
	void (*on_request)(struct http_exchange *x, void *server_userdata);
	/* A streamed answer was above its high-water mark and has drained. */
	void (*on_drained)(struct http_exchange *x, void *server_userdata);
	/*
	 * The exchange is over before the handler ended it: the client left, was too slow, or sent
	 * a bad body. x is not valid after the call; nothing may be answered.
	 */
	void (*on_gone)(struct http_exchange *x, void *server_userdata);
	/* Once for each request, also for those refused before a handler saw them. */
	void (*on_log)(const struct http_log_entry *entry, void *server_userdata);
};

/* ---- the server ------------------------------------------------------- */

struct http_server_config {
	uv_loop_t *loop;
	/*
	 * "127.0.0.1:8000", "[::1]:8000", "localhost:0" (any free port), "unix:/run/glovebox.sock"
	 */
	const char *listen;
	const struct http_handler *handler;
	void *userdata;
	unsigned max_connections; /* 0: LIMIT_CONNECTIONS */
	/* Milliseconds; 0: LIMIT_…_SECONDS. */
	unsigned header_ms, body_ms, idle_ms, write_ms, heartbeat_ms;
};

/*
 * Binds and listens; requests come once the loop runs. A stale unix socket is replaced, any other
 * file is not. Errors: -EINVAL (address), -EADDRINUSE and what else bind() says. Config is copied
 * but for the handler.
 */
int http_server_create(
	const struct http_server_config *config, struct error *e, struct http_server **ret);

/* As bound, with the real port: "127.0.0.1:41873". */
const char *http_server_address(const struct http_server *s);
unsigned http_server_port(const struct http_server *s); /* 0 for a unix socket */

/*
 * Closes idle connections and lets pending answers finish (with Connection: close; WebSockets are
 * told 1001, at once or by a handler that has something to finish). Until then new connections get
 * one answer each: a router that finds nobody listening would cut the connections whose answers are
 * pending. When the last connection that was there before is gone, stops listening, cuts the others,
 * calls done and frees the server. Idempotent; the first done counts.
 */
void http_server_close(struct http_server *s, void (*done)(void *userdata), void *userdata);

/*
 * Cuts every connection now (on_gone for pending exchanges). Valid between http_server_close() and
 * its done callback.
 */
void http_server_cut(struct http_server *s);

struct http_server_stats {
	/* connections; refused: beyond the maximum, or without descriptors */
	uint64_t accepted, refused;
	uint64_t requests, bytes_in, bytes_out;
	uint64_t by_class[6]; /* answers by status / 100; [0] counts clients that left */
	unsigned open, websockets;
};
const struct http_server_stats *http_server_stats(const struct http_server *s);

/* ---- the request ------------------------------------------------------ */

/*
 * Texts are NUL-terminated (a NUL never comes from outside) and valid as long as x, but for the
 * body.
 */
enum http_method http_method(const struct http_exchange *x);
const char *http_target(const struct http_exchange *x); /* as sent: "/v1/sessions?limit=3" */
/* What stands before the '?', still percent-encoded; starts with '/' or is "*". */
const char *http_path(const struct http_exchange *x);
/* what stands behind it, still encoded; or "" */
const char *http_query(const struct http_exchange *x);
/* The first header of that name, in whatever case; NULL when there is none. */
const char *http_header(const struct http_exchange *x, const char *name);
/* the client's when it is sane, else made */
const char *http_request_id(const struct http_exchange *x);
/* "127.0.0.1:50112", "[::1]:50112", or "unix" */
const char *http_remote(const struct http_exchange *x);
bool http_wants_websocket(const struct http_exchange *x);   /* Upgrade: websocket was asked for */
int64_t http_content_length(const struct http_exchange *x); /* -1 when chunked; 0 without a body */
bool http_request_done(const struct http_exchange *x);      /* the request was read to its end */

/* The buffered body; valid until the answer or http_drop_body(). Never NULL. */
const char *http_body(const struct http_exchange *x, size_t *ret_len);
void http_drop_body(struct http_exchange *x); /* its memory is not needed any more */

/*
 * How much body to accept (from on_headers; LIMIT_BODY_BYTES unless told, in both modes). Beyond
 * it: 413.
 */
void http_limit_body(struct http_exchange *x, uint64_t max);

/*
 * Streamed body: no on_body and no on_request between the two. Reading stops, so the client is held
 * back.
 */
void http_pause(struct http_exchange *x);
void http_resume(struct http_exchange *x);

void http_set_userdata(struct http_exchange *x, void *userdata);
void *http_userdata(const struct http_exchange *x);

/*
 * Percent-decodes into out (NUL-terminated). `plus_is_space` for queries. -EINVAL: a bad escape;
 * -EILSEQ: a NUL or invalid UTF-8 comes out; -ENOBUFS: longer than size - 1.
 */
int http_percent_decode(const char *in, size_t len, bool plus_is_space, char *out, size_t size);

/* The decoded value of the first parameter of that name: 1, 0 when absent, or an error as above. */
int http_query_param(const struct http_exchange *x, const char *name, char *out, size_t size);

/* The same in the text of a form (application/x-www-form-urlencoded). */
int http_form_value(const char *form, const char *name, char *out, size_t size);

/* The value of a cookie. False: absent, or longer than size - 1. */
bool http_cookie(const struct http_exchange *x, const char *name, char *out, size_t size);

/* ---- one answer ------------------------------------------------------- */

/*
 * A header for the coming answer; the value's control characters become spaces. Not for
 * Content-Length, Connection …
 */
void http_add_header(struct http_exchange *x, const char *name, const char *value);
void http_allow_caching(struct http_exchange *x); /* leaves Cache-Control to the handler */

/*
 * Ends x with the buffer's content, which is taken without a copy (body may be NULL; it is empty
 * after).
 */
void http_respond(
	struct http_exchange *x, int status, const char *content_type, struct buffer *body);
/* The same for bytes that stay the caller's. */
void http_respond_copy(struct http_exchange *x, int status, const char *content_type,
	const void *body, size_t len);

/*
 * Another shape for the errors of a request, because its client speaks another protocol (from
 * on_headers). It holds for http_respond_problem() and for refusals of the server itself, such as
 * 413. Static; NULL: problem+json.
 */
struct http_problem_form {
	const char *content_type;
	/* Appends the body. The texts may be NULL. */
	int (*write)(const struct http_exchange *x, int status, const char *detail,
		const char *remedy, struct buffer *out);
};
void http_set_problem_form(struct http_exchange *x, const struct http_problem_form *form);

/*
 * Ends x with application/problem+json: {type, title, status, code, detail, remediation,
 * request_id}, or with the form that was set.
 */
void http_respond_problem(struct http_exchange *x, int status, const char *code, const char *detail,
	const char *remedy);

/* Appends such a problem to a buffer (the API and the command line show the same shape). */
int http_problem_write(struct buffer *out, int status, const char *code, const char *detail,
	const char *remedy, const char *request_id);

/* ---- an answer in pieces ---------------------------------------------- */

/*
 * Starts it: content_length bytes will follow, or -1 when that is not known (chunked; until close
 * for HTTP/1.0).
 */
void http_stream_begin(
	struct http_exchange *x, int status, const char *content_type, int64_t content_length);

/*
 * Sends or queues a piece (copied as far as it has to wait). 0: go on; 1: more than the high-water
 * mark is waiting, wait for on_drained; -EPIPE: the connection is lost; -ENOBUFS: the client does
 * not read and more than LIMIT_OUT_QUEUE_BYTES wait already. After an error on_gone follows in a
 * later turn. Bytes beyond the announced content_length are dropped.
 */
int http_stream_write(struct http_exchange *x, const void *data, size_t len);
void http_stream_end(struct http_exchange *x); /* complete; ends x */
/* cut, so that the client sees it is not complete; ends x */
void http_stream_abort(struct http_exchange *x);

/* Server-sent events: 200, text/event-stream. Heartbeat comments are sent by the server. End with
 * http_stream_end(). */
void http_sse_begin(struct http_exchange *x);
/* event and id may be NULL; data may have several lines. Returns as http_stream_write(). */
int http_sse_event(
	struct http_exchange *x, const char *event, const char *id, const char *data, size_t len);

/* ---- another server's answer ------------------------------------------ */

/* The i-th header of the request; false if the request has fewer headers. */
bool http_header_at(
	const struct http_exchange *x, unsigned i, const char **ret_name, const char **ret_value);

/*
 * The answer is passed on from another server: none of our own headers are added to it but those
 * that frame it.
 */
void http_pass_on(struct http_exchange *x);

/*
 * Turns the connection into a pipe of bytes, after a head with this status and the headers that
 * were added; ends x. From on_request or later. The tunnel is valid until on_closed.
 */
struct http_tunnel;
struct http_tunnel_handler {
	void (*on_data)(struct http_tunnel *t, const char *data, size_t len, void *userdata);
	void (*on_drained)(struct http_tunnel *t, void *userdata);
	/* exactly once, unless the handler closed it */
	void (*on_closed)(struct http_tunnel *t, void *userdata);
};
struct http_tunnel *http_tunnel_begin(struct http_exchange *x, int status,
	const struct http_tunnel_handler *handler, void *userdata);
int http_tunnel_send(
	struct http_tunnel *t, const void *data, size_t len); /* returns as http_stream_write() */
void http_tunnel_hold(struct http_tunnel *t, bool hold);      /* nothing is read meanwhile */
/* Sends what waits, then closes; on_closed does not come. */
void http_tunnel_close(struct http_tunnel *t);

/* ---- WebSocket -------------------------------------------------------- */

struct http_ws_handler {
	/* A whole text message: valid UTF-8, at most LIMIT_WS_MESSAGE_BYTES. */
	void (*on_message)(struct http_ws *ws, const char *text, size_t len, void *userdata);
	/* The queue was above the high-water mark and has drained; may be NULL. */
	void (*on_drained)(struct http_ws *ws, void *userdata);
	/*
	 * Exactly once; ws is not valid after. code: the close code (1006 when the connection was
	 * lost).
	 */
	void (*on_closed)(struct http_ws *ws, unsigned code, void *userdata);
	/*
	 * The server is about to close: true when the handler has something to finish and then
	 * closes ws itself. NULL for never.
	 */
	bool (*on_shutdown)(struct http_ws *ws, void *userdata);
	/* A whole binary message. NULL: such messages are refused with 1003. */
	void (*on_binary)(struct http_ws *ws, const char *data, size_t len, void *userdata);
};

/*
 * Answers 101 and turns the connection into a WebSocket; ends x. From on_request or later. Returns
 * NULL when the request is not a sound handshake: then it was answered (400, or 426 for a wrong
 * version), x has ended and the handler hears no more. `protocol` is the subprotocol the server
 * chose, or NULL.
 */
struct http_ws *http_upgrade(struct http_exchange *x, const char *protocol,
	const struct http_ws_handler *handler, void *userdata);

/*
 * Sends a text message (made valid UTF-8 by whoever wrote it). Returns as http_stream_write();
 * on_closed follows errors.
 */
int http_ws_send(struct http_ws *ws, const char *text, size_t len);
/* The same for a binary message. */
int http_ws_send_binary(struct http_ws *ws, const void *data, size_t len);
size_t http_ws_queued(const struct http_ws *ws);

/* Starts the closing handshake; on_closed comes when it ends. More messages from the client are not
 * delivered. */
void http_ws_close(struct http_ws *ws, unsigned code, const char *reason);
