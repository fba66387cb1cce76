/* WebSockets on connections of the server. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "http/http_conn.h"
#include "http/ws.h"

/* Output memory up to this size is kept between messages. */
enum { OUT_KEPT_BYTES = 16 * 1024 };

static uint64_t now_ms(const struct http_conn *c)
{
	return uv_now(c->server->loop);
}

/* ---- handshake -------------------------------------------------------- */

/* Why the request is no sound handshake; NULL when it is, and then the accept token is there. */
static const char *check_handshake(const struct http_exchange *x, char token[WS_ACCEPT_LEN + 1])
{
	const struct http_head *h = &x->conn->parser.head;
	const char *key = http_head_find(h, "sec-websocket-key");
	if (h->method != HTTP_METHOD_GET || h->minor == 0)
		return "a WebSocket must be requested with GET and HTTP/1.1";
	if (!h->websocket || !h->connection_upgrade)
		return "a WebSocket needs the headers 'Upgrade: websocket' and 'Connection: Upgrade'";
	if (h->content_length != 0)
		return "a WebSocket handshake has no body";
	if (!key || !ws_accept_token(key, token))
		return "Sec-WebSocket-Key is not the base64 of 16 bytes";
	return NULL;
}

static bool refuse_handshake(struct http_exchange *x, char token[WS_ACCEPT_LEN + 1])
{
	const char *version = http_head_find(&x->conn->parser.head, "sec-websocket-version");
	const char *wrong = check_handshake(x, token);

	if (!wrong && text_eq(version, "13"))
		return false;
	if (wrong) {
		http_respond_problem(
			x, 400, "bad_handshake", wrong, "use a WebSocket client (RFC 6455)");
	} else {
		http_add_header(x, "Sec-WebSocket-Version", "13");
		http_respond_problem(x, 426, "bad_handshake",
			"this server supports only version 13 of the WebSocket protocol",
			"send Sec-WebSocket-Version: 13");
	}

	return true;
}

static int send_accept(struct http_exchange *x, const char *token, const char *protocol)
{
	struct buffer *b = &x->conn->server->scratch;
	b->len = 0;
	int r = buffer_printf(b,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Accept: %s\r\n%s%s%sX-Request-Id: %s\r\n\r\n",
		token, protocol ? "Sec-WebSocket-Protocol: " : "", protocol ? protocol : "",
		protocol ? "\r\n" : "", x->request_id);
	if (r < 0)
		return r;
	uv_buf_t buf = uv_buf_init(b->data, (unsigned)b->len);
	return http_out_send(x->conn, &buf, 1, NULL);
}

static void on_message(const char *text, size_t len, void *userdata)
{
	struct http_ws *ws = userdata;
	if (ws->told)
		ws->handler->on_message(ws, text, len, ws->userdata);
}

static void on_binary(const char *data, size_t len, void *userdata)
{
	struct http_ws *ws = userdata;
	if (ws->told)
		ws->handler->on_binary(ws, data, len, ws->userdata);
}

struct http_ws *http_upgrade(struct http_exchange *x, const char *protocol,
	const struct http_ws_handler *handler, void *userdata)
{
	struct http_conn *c = x->conn;
	struct http_ws *ws = &c->ws;
	char token[WS_ACCEPT_LEN + 1];

	assert(x->active && x->request_done && !x->begun && !x->answered);
	if (refuse_handshake(x, token))
		return NULL;
	ws->engine = ws_create(&ws->out, on_message, ws);
	if (!ws->engine) {
		http_respond_problem(x, 503, "out_of_memory", "out of memory", "try again later");
		return NULL;
	}

	if (handler->on_binary)
		ws_take_binary(ws->engine, on_binary);
	ws->handler = handler;
	ws->userdata = userdata;
	ws->told = true;
	ws->heard_ms = now_ms(c);
	c->server->stats.websockets++;
	x->status = 101;
	send_accept(x, token, protocol); /* a lost connection shows as on_closed */
	c->state = HTTP_CONN_WS;
	http_conn_answered(x);
	return ws;
}

/* ---- output ----------------------------------------------------------- */

static int flush(struct http_conn *c)
{
	struct http_ws *ws = &c->ws;
	if (!ws->out.len)
		return 0;
	uv_buf_t buf = uv_buf_init(ws->out.data, (unsigned)ws->out.len);
	if (ws->out.cap <= OUT_KEPT_BYTES) {
		ws->out.len = 0;
		return http_out_send(c, &buf, 1, NULL);
	}
	return http_out_send(c, &buf, 1, buffer_take(&ws->out, NULL));
}

static void tell_closed(struct http_conn *c, unsigned code)
{
	struct http_ws *ws = &c->ws;
	if (!ws->told)
		return;
	ws->told = false;
	c->server->stats.websockets--;
	ws->handler->on_closed(ws, code, ws->userdata);
}

/*
 * After anything that may have moved the closing handshake on. Only from the loop: it calls the
 * handler.
 */
static void settle(struct http_conn *c)
{
	struct http_ws *ws = &c->ws;
	if (c->state != HTTP_CONN_WS || c->failed)
		return;
	if (ws_is_over(ws->engine)) {
		unsigned code = ws_close_code(ws->engine);
		http_conn_hang_up(c);
		tell_closed(c, code);
	} else if (ws_is_closing(ws->engine) && !ws->closing_ms) {
		ws->closing_ms = now_ms(c);
	}
}

static int fail(struct http_conn *c, int err, unsigned code)
{
	c->ws.code = code;
	c->failed = true;
	http_conn_schedule(c);
	return err;
}

static int send_message(struct http_ws *ws, bool binary, const void *data, size_t len)
{
	struct http_conn *c = ws->conn;
	if (c->failed || c->state != HTTP_CONN_WS)
		return -EPIPE;
	if (http_ws_queued(ws) > LIMIT_OUT_QUEUE_BYTES)
		return fail(c, -ENOBUFS, WS_CLOSE_POLICY);
	int r = binary ? ws_send_binary(ws->engine, data, len) : ws_send(ws->engine, data, len);
	if (r == -EPIPE)
		return r;
	if (r == 0)
		r = flush(c);
	if (r < 0)
		return fail(c, r, WS_CLOSE_LOST);
	if (http_ws_queued(ws) <= HTTP_HIGH_WATER)
		return 0;
	ws->wants_drain = true;
	return 1;
}

int http_ws_send(struct http_ws *ws, const char *text, size_t len)
{
	return send_message(ws, false, text, len);
}

int http_ws_send_binary(struct http_ws *ws, const void *data, size_t len)
{
	return send_message(ws, true, data, len);
}

size_t http_ws_queued(const struct http_ws *ws)
{
	return ws->conn->queued + ws->out.len + ws_queued(ws->engine);
}

void http_ws_close(struct http_ws *ws, unsigned code, const char *reason)
{
	struct http_conn *c = ws->conn;
	if (c->failed || c->state != HTTP_CONN_WS)
		return;
	if (ws_close(ws->engine, code, reason) < 0 || flush(c) < 0)
		fail(c, 0, WS_CLOSE_LOST);
	else if (!ws->closing_ms)
		ws->closing_ms = now_ms(c);
}

/* ---- events of the connection ----------------------------------------- */

void http_ws_input(struct http_conn *c, const char *data, size_t len)
{
	struct http_ws *ws = &c->ws;
	ws->heard_ms = now_ms(c);
	if (ws->refused)
		return; /* our close is out: what still comes is not kept */
	int r = ws_feed(ws->engine, data, len);
	/*
	 * The engine keeps a message until it is complete, which its sender may put off for ever.
	 */
	if (r == 0 && hold_set(&ws->held, ws_incoming(ws->engine)) < 0) {
		ws->refused = true;
		http_ws_close(ws, WS_CLOSE_TRY_AGAIN,
			"the server has reached its limit on memory held for clients: try again later");
	}

	if (r == 0)
		r = flush(c);
	if (r < 0)
		http_conn_close(c);
	else
		settle(c);
}

void http_ws_drained(struct http_conn *c)
{
	struct http_ws *ws = &c->ws;
	if (!ws->wants_drain || !ws->told)
		return;
	ws->wants_drain = false;
	if (ws->handler->on_drained)
		ws->handler->on_drained(ws, ws->userdata);
}

void http_ws_shut_down(struct http_conn *c)
{
	struct http_ws *ws = &c->ws;
	if (!ws->told || !ws->handler->on_shutdown || !ws->handler->on_shutdown(ws, ws->userdata))
		http_ws_close(ws, 1001, "the server is shutting down");
}

void http_ws_check_time(struct http_conn *c, uint64_t now)
{
	struct http_ws *ws = &c->ws;
	unsigned beat = c->server->heartbeat_ms;
	if (ws->closing_ms ? now - ws->closing_ms > LIMIT_LINGER_SECONDS * 1000
			   : now - ws->heard_ms > LIMIT_WS_SILENT_SECONDS * 1000 &&
				     now - ws->heard_ms > 4 * beat) {
		http_conn_close(c);
		return;
	}
	if (!ws->closing_ms && now - ws->heard_ms >= beat && now - c->out_ms >= beat && !c->queued)
		if (ws_ping(ws->engine) < 0 || flush(c) < 0)
			http_conn_close(c);
}

void http_ws_lost(struct http_conn *c)
{
	struct http_ws *ws = &c->ws;
	if (!ws->engine || !ws->told)
		return;
	unsigned code = ws->code ? ws->code : ws_close_code(ws->engine);
	tell_closed(c, code);
}

void http_ws_finish(struct http_conn *c)
{
	ws_destroy(c->ws.engine);
	hold_set(&c->ws.held, 0);
	buffer_finish(&c->ws.out);
}
