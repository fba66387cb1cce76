/* Time limits of a connection: head, body, idle, unread output, the last look after a hang-up. */
#include "base/limits.h"
#include "base/memory_account.h"
#include "http/http_conn.h"

static void check_request_time(struct http_conn *c, uint64_t waited)
{
	static const struct http_refusal slow_head = { 408, "request_timeout",
		"the head of the request took too long to arrive", "" },
					 slow_body = { 408, "request_timeout",
						 "the body of the request took too long to arrive",
						 "" };
	const struct http_server *s = c->server;
	const struct http_exchange *x = &c->x;

	if (x->active && x->request_done)
		return; /* the handler's turn */
	if (x->active) {
		uint64_t allowed = s->body_ms + x->body_in * 1000 / LIMIT_BODY_RATE;
		if (!x->paused && waited > allowed)
			http_conn_refuse(c, &slow_body);
	} else if (c->parser.started) {
		if (waited > s->header_ms)
			http_conn_refuse(c, &slow_head);
	} else if (!c->backlog.len && !c->queued && waited > s->idle_ms) {
		http_conn_close(c);
	}
}

/* How long a client may take nothing. While much is held for others, it has less time. */
static uint64_t write_patience(const struct http_server *s)
{
	unsigned pressed = LIMIT_WRITE_PRESSED_SECONDS * 1000;
	return hold_is_short() && s->write_ms > pressed ? pressed : s->write_ms;
}

void http_conn_check_time(struct http_conn *c, uint64_t now)
{
	struct http_server *s = c->server;
	uint64_t waited = now - c->since_ms;

	if (c->queued) {
		size_t left = uv_stream_get_write_queue_size(&c->uv.stream);
		if (left != c->queue_seen) {
			c->queue_seen = left;
			c->out_moved_ms = now;
		} else if (now - c->out_moved_ms > write_patience(s)) {
			http_conn_close(c);
			return;
		}
	}

	if (c->state == HTTP_CONN_HTTP) {
		check_request_time(c, waited);
		if (c->x.told && c->x.sse && now - c->out_ms >= s->heartbeat_ms)
			http_stream_write(&c->x, ":\n\n", 3);
	} else if (c->state == HTTP_CONN_WS) {
		http_ws_check_time(c, now);
	} else if (c->state == HTTP_CONN_LINGER && c->flushed &&
		   waited > LIMIT_LINGER_SECONDS * 1000) {
		http_conn_close(c);
	}
}
