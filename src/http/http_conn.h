/*
 * Inside the server: a connection and the exchange it is busy with. Private to src/http.
 *
 * A connection is in one state: HTTP (requests, one exchange at a time), WS (after an upgrade),
 * TUNNEL (bytes as they are), LINGER (our side is closed; what still comes is swallowed so that the
 * client can read our last answer), CLOSING (uv_close() is under way).
 *
 * Who may call the handler: only code that the loop called (reads, finished writes, the sweep, the
 * ready list). What the handler calls never calls back: it notes the failure and puts the
 * connection on the ready list, which is worked off in the next turn.
 */
#pragma once

#include <sys/queue.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/memory_account.h"
#include "http/http.h"
#include "http/http_parser.h"

enum {
	HTTP_REQUEST_ID_MAX = 64,
	HTTP_REMOTE_MAX = 64,
	HTTP_SLAB_BYTES = 64 * 1024, /* of one read */
	/* queued output above which whoever produces it is asked to wait */
	HTTP_HIGH_WATER = 256 * 1024,
	HTTP_LOW_WATER = HTTP_HIGH_WATER / 4 /* and may go on */
};

struct http_exchange {
	struct http_conn *conn;
	void *userdata;
	const struct http_problem_form *problem_form; /* NULL: problem+json */
	uint64_t serial, started_ns, body_in, body_max, bytes_out;
	enum http_body_mode mode;
	int status;        /* of the answer, once it began */
	int64_t out_left;  /* of a streamed answer with a known length; -1 otherwise */
	bool active;       /* from the head until request and answer are both complete */
	bool head_bad;     /* the head could not be read: only a refusal is sent */
	bool told;         /* the handler knows it and has not ended it */
	bool request_done; /* the message was read to its end */
	bool answered;     /* the answer is complete, or the connection a WebSocket */
	bool begun;        /* the head of a streamed answer is out */
	bool chunked_out, sse, paused, wants_drain, cacheable;
	bool passed_on;  /* another server's answer: without headers of ours */
	bool extra_lost; /* there was no memory for an added header: the answer cannot be sent */
	bool close_after;
	uint64_t paused_ms; /* when */
	struct buffer body, extra;
	char request_id[HTTP_REQUEST_ID_MAX + 1];
};

struct http_ws {
	struct http_conn *conn;
	struct ws *engine;
	struct buffer out;
	const struct http_ws_handler *handler;
	void *userdata;
	unsigned code;    /* close code of our own making when the engine has none; 0 otherwise */
	bool told;        /* on_closed is still owed */
	struct hold held; /* the message that is not complete */
	bool refused;     /* which was too much to hold */
	bool wants_drain;
	uint64_t heard_ms,
		/* closing_ms: since when we wait for the client's close; 0: we do not */
		closing_ms;
};

struct http_tunnel {
	struct http_conn *conn;
	const struct http_tunnel_handler *handler; /* NULL: there is none, or it is closed */
	void *userdata;
	bool held, wants_drain;
};

enum http_conn_state {
	HTTP_CONN_HTTP,
	HTTP_CONN_WS,
	HTTP_CONN_TUNNEL,
	HTTP_CONN_LINGER,
	HTTP_CONN_CLOSING
};

struct http_conn {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} uv;
	struct http_server *server;
	TAILQ_ENTRY(http_conn) all, ready;
	enum http_conn_state state;
	bool is_ready, reading, eof, failed, flushed; /* flushed: our side is shut down */
	bool resting;                                 /* has read much in this turn: others first */
	bool late; /* came after http_server_close(), which does not wait for it */
	struct http_parser parser;
	struct http_exchange x;
	struct http_ws ws;
	struct http_tunnel tunnel;
	struct buffer backlog; /* read, not looked at yet */
	uv_shutdown_t shutdown;
	uint64_t since_ms;             /* when what we wait for now began */
	uint64_t out_ms, out_moved_ms; /* last output of ours; when the queue last became shorter */
	size_t queued, queue_seen, lingered, burst; /* burst: read since it rested */
	struct hold held;                           /* what is queued */
	/* > 0 while its parser runs: whoever answers leaves the rest to that loop */
	unsigned inside;
	char remote[HTTP_REMOTE_MAX];
};

TAILQ_HEAD(http_conn_list, http_conn);

struct http_server {
	uv_loop_t *loop;
	const struct http_handler *handler;
	void *userdata;
	unsigned max_connections, header_ms, body_ms, idle_ms, write_ms, heartbeat_ms, sweep_ms;
	struct http_server_stats stats;
	struct http_conn_list conns, ready;
	uv_poll_t listener;
	uv_timer_t sweep;
	uv_idle_t turn; /* runs while the ready list is not empty */
	int listen_fd, spare_fd;
	bool is_unix, accept_paused, sweeping;
	bool closing, deaf; /* deaf: closing, and not listening any more */
	unsigned open_handles;
	unsigned awaited; /* connections that are not late */
	void (*done)(void *userdata);
	void *done_userdata;
	char *unix_path;
	char address[256];
	unsigned port;
	char id_prefix[12];
	struct buffer scratch; /* heads and events being put together; never kept across calls */
	char slab[HTTP_SLAB_BYTES];
};

/* ---- http_conn.c ------------------------------------------------------ */

/* Takes ownership of the descriptor, which is closed on failure. */
int http_conn_create(struct http_server *s, int fd, const char *remote);

/*
 * Over at once: on_gone or on_closed where one is owed, then everything is freed in uv's close
 * callback. Idempotent.
 */
void http_conn_close(struct http_conn *c);

/* Sends what is queued, closes our side, swallows what still comes, then closes. */
void http_conn_hang_up(struct http_conn *c);

/* Answers with a problem and hangs up. */
void http_conn_refuse(struct http_conn *c, const struct http_refusal *why);

/* Looked at again in the next turn of the loop. */
void http_conn_schedule(struct http_conn *c);
void http_conn_run(struct http_conn *c); /* that look */

/* The exchange was answered to its end: log it, and go on when nobody else will. */
void http_conn_answered(struct http_exchange *x);
void http_conn_log(struct http_exchange *x, int status); /* http_exchange.c */

bool http_conn_is_idle(const struct http_conn *c);
void http_conn_update_reading(struct http_conn *c);

/* ---- http_timeouts.c -------------------------------------------------- */

/* The time limits of the phase the connection is in. */
void http_conn_check_time(struct http_conn *c, uint64_t now);

/* ---- http_out.c ------------------------------------------------------- */

/*
 * Writes now what the kernel takes and queues the rest. `owned` (or NULL) is the malloc'd memory
 * that the last buffer points into; it is freed when it is not needed any more, in every case.
 * -EPIPE, -ENOMEM: c->failed is set and the connection scheduled.
 */
int http_out_send(struct http_conn *c, const uv_buf_t *bufs, unsigned n, void *owned);
void http_out_drop_headers(struct http_exchange *x); /* those of http_add_header() */

/* ---- http_ws.c -------------------------------------------------------- */

void http_ws_input(struct http_conn *c, const char *data, size_t len);
void http_ws_drained(struct http_conn *c);
void http_ws_shut_down(struct http_conn *c); /* the server closes */
void http_ws_check_time(struct http_conn *c, uint64_t now);
void http_ws_lost(struct http_conn *c); /* on_closed, when it is still owed */
void http_ws_finish(struct http_conn *c);

/* ---- http_tunnel.c ---------------------------------------------------- */

void http_tunnel_input(struct http_conn *c, const char *data, size_t len);
void http_tunnel_drained(struct http_conn *c);
void http_tunnel_lost(struct http_conn *c); /* on_closed, when it is still owed */

/* ---- http_server.c ---------------------------------------------------- */

void http_server_remember(struct http_conn *c);     /* new */
void http_server_forget(struct http_conn *c);       /* closed and about to be freed */
void http_server_start_turn(struct http_server *s); /* the ready list is not empty */
