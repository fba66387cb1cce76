/* Connections of the server that carry another protocol's bytes, as they are. */
#include <assert.h>
#include <errno.h>

#include "base/limits.h"
#include "http/http_conn.h"

struct http_tunnel *http_tunnel_begin(struct http_exchange *x, int status,
	const struct http_tunnel_handler *handler, void *userdata)
{
	struct http_conn *c = x->conn;
	struct buffer *b = &c->server->scratch;

	assert(x->active && x->request_done && !x->begun && !x->answered);
	b->len = 0;
	int r = buffer_printf(b, "HTTP/1.1 %d %s\r\n", status, http_status_text(status));
	r |= buffer_append(b, x->extra.data, x->extra.len);
	r |= buffer_append(b, "\r\n", 2);
	c->tunnel.handler = handler;
	c->tunnel.userdata = userdata;
	c->tunnel.held = c->tunnel.wants_drain = false;
	x->status = status;
	uv_buf_t buf = uv_buf_init(b->data, (unsigned)b->len);
	if (r || x->extra_lost)
		c->failed = true;
	else
		http_out_send(c, &buf, 1, NULL); /* a lost connection shows as on_closed */
	c->state = HTTP_CONN_TUNNEL;
	if (c->failed)
		http_conn_schedule(c);
	http_conn_answered(x);
	return &c->tunnel;
}

int http_tunnel_send(struct http_tunnel *t, const void *data, size_t len)
{
	struct http_conn *c = t->conn;
	uv_buf_t buf = uv_buf_init((char *)data, (unsigned)len);

	if (c->failed || c->state != HTTP_CONN_TUNNEL)
		return -EPIPE;
	if (c->queued > LIMIT_OUT_QUEUE_BYTES) {
		c->failed = true;
		http_conn_schedule(c);
		return -ENOBUFS;
	}

	int r = http_out_send(c, &buf, 1, NULL);
	if (r < 0)
		return r;
	if (c->queued <= HTTP_HIGH_WATER)
		return 0;
	t->wants_drain = true;
	return 1;
}

void http_tunnel_hold(struct http_tunnel *t, bool hold)
{
	t->held = hold;
	http_conn_update_reading(t->conn);
}

void http_tunnel_close(struct http_tunnel *t)
{
	struct http_conn *c = t->conn;
	t->handler = NULL;
	if (c->state == HTTP_CONN_TUNNEL)
		http_conn_hang_up(c);
}

/* ---- events of the connection ----------------------------------------- */

void http_tunnel_input(struct http_conn *c, const char *data, size_t len)
{
	struct http_tunnel *t = &c->tunnel;
	if (t->handler)
		t->handler->on_data(t, data, len, t->userdata);
}

void http_tunnel_drained(struct http_conn *c)
{
	struct http_tunnel *t = &c->tunnel;
	if (!t->wants_drain || !t->handler)
		return;
	t->wants_drain = false;
	t->handler->on_drained(t, t->userdata);
}

void http_tunnel_lost(struct http_conn *c)
{
	struct http_tunnel *t = &c->tunnel;
	const struct http_tunnel_handler *handler = t->handler;
	t->handler = NULL;
	if (handler)
		handler->on_closed(t, t->userdata);
}
