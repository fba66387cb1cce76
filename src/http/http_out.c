/* Answers: heads, bodies, streams, events, and the queue of what the kernel has not taken yet. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "http/http_conn.h"
#include "http/sse.h"

/* Scratch memory up to this size is kept. */
enum { SCRATCH_KEPT_BYTES = 64 * 1024 };
enum { SEND_BUFS_MAX = 3 };

/* Output that waits: bytes copied behind the struct, then perhaps a body whose memory it owns. */
struct pending {
	uv_write_t req;
	size_t bytes;
	void *owned;
	char copy[];
};

static int give_up(struct http_conn *c, int err)
{
	c->failed = true;
	http_conn_schedule(c);
	return err;
}

static void drained(struct http_conn *c)
{
	struct http_exchange *x = &c->x;
	struct http_server *s = c->server;

	if (c->state == HTTP_CONN_WS) {
		http_ws_drained(c);
	} else if (c->state == HTTP_CONN_TUNNEL) {
		http_tunnel_drained(c);
	} else if (c->state == HTTP_CONN_HTTP) {
		if (x->told && x->wants_drain) {
			x->wants_drain = false;
			if (s->handler->on_drained)
				s->handler->on_drained(x, s->userdata);
		}
		if (!x->active && c->backlog.len)
			http_conn_schedule(c);
	}

	http_conn_update_reading(c);
}

static void on_written(uv_write_t *req, int status)
{
	struct pending *p = (struct pending *)req;
	struct http_conn *c = req->handle->data;

	c->queued -= p->bytes;
	hold_set(&c->held, c->queued);
	free(p->owned);
	free(p);
	if (c->state == HTTP_CONN_CLOSING)
		return;
	if (status < 0) {
		http_conn_close(c);
		return;
	}

	c->out_moved_ms = uv_now(c->server->loop);
	if (c->queued <= HTTP_LOW_WATER)
		drained(c);
}

/* Queues what is left behind the first `sent` bytes. */
static int queue_rest(
	struct http_conn *c, const uv_buf_t *bufs, unsigned n, size_t sent, void *owned)
{
	size_t copied = 0, total = 0;
	unsigned n_copied = owned ? n - 1 : n;

	for (unsigned i = 0; i < n; i++)
		total += bufs[i].len;
	for (unsigned i = 0; i < n_copied; i++)
		copied += bufs[i].len;
	size_t skip = sent < copied ? sent : copied;
	if (hold_set(&c->held, c->queued + total - sent) < 0)
		return -ENOBUFS;
	struct pending *p = malloc(sizeof(*p) + copied - skip);
	if (!p) {
		hold_set(&c->held, c->queued);
		return -ENOMEM;
	}

	p->bytes = total - sent;
	p->owned = NULL;
	size_t at = 0, fill = 0;
	for (unsigned i = 0; i < n_copied; at += bufs[i].len, i++) {
		size_t from = skip > at ? skip - at : 0;
		if (from >= bufs[i].len)
			continue;
		memcpy(p->copy + fill, bufs[i].base + from, bufs[i].len - from);
		fill += bufs[i].len - from;
	}

	uv_buf_t out[2];
	unsigned k = 0;
	if (fill)
		out[k++] = uv_buf_init(p->copy, (unsigned)fill);
	if (owned)
		out[k++] = uv_buf_init(bufs[n - 1].base + (sent - skip),
			(unsigned)(bufs[n - 1].len - (sent - skip)));
	int r = uv_write(&p->req, &c->uv.stream, out, k, on_written);
	if (r < 0) {
		hold_set(&c->held, c->queued);
		free(p);
		return -EPIPE;
	}

	p->owned = owned;
	if (!c->queued)
		c->out_moved_ms = uv_now(c->server->loop);
	c->queued += p->bytes;
	return 0;
}

int http_out_send(struct http_conn *c, const uv_buf_t *bufs, unsigned n, void *owned)
{
	size_t total = 0, sent = 0;
	if (c->failed || c->state >= HTTP_CONN_LINGER) {
		free(owned);
		return -EPIPE;
	}

	for (unsigned i = 0; i < n; i++)
		total += bufs[i].len;
	c->server->stats.bytes_out += total;
	c->x.bytes_out += total;
	c->out_ms = uv_now(c->server->loop);
	if (!c->queued) {
		int r = uv_try_write(&c->uv.stream, bufs, n);
		if (r < 0 && r != UV_EAGAIN) {
			free(owned);
			return give_up(c, -EPIPE);
		}
		sent = r > 0 ? (size_t)r : 0;
	}

	if (sent == total) {
		free(owned);
		return 0;
	}

	int r = queue_rest(c, bufs, n, sent, owned);
	if (r < 0) {
		free(owned);
		return give_up(c, r);
	}

	return 0;
}

/* ---- heads ------------------------------------------------------------ */

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
	size_t start = x->extra.len;
	if (buffer_printf(&x->extra, "%s: %s", name, value) < 0) {
		x->extra_lost = true;
		return;
	}

	/* A line break would let whoever chose the value write headers of his own. */
	for (size_t i = start; i < x->extra.len; i++)
		if ((unsigned char)x->extra.data[i] < 0x20 || x->extra.data[i] == 0x7f)
			x->extra.data[i] = ' ';
	if (buffer_append_str(&x->extra, "\r\n") < 0) {
		x->extra.len = start;
		x->extra_lost = true;
	}
}

void http_out_drop_headers(struct http_exchange *x)
{
	x->extra.len = 0;
	x->extra_lost = false;
}

void http_allow_caching(struct http_exchange *x)
{
	x->cacheable = true;
}

void http_pass_on(struct http_exchange *x)
{
	x->passed_on = true;
}

/* Whether the connection can carry another exchange after this answer. */
static bool must_close(const struct http_exchange *x)
{
	const struct http_conn *c = x->conn;
	const struct http_head *h = &c->parser.head;

	if (x->close_after || c->server->closing || c->eof || x->head_bad || !h->keep_alive)
		return true;
	if (h->websocket)
		return true; /* refused: what follows may be meant as frames, never as a request */
	if (x->request_done)
		return false;
	/*
	 * The answer came before the end of the body: swallow a small rest that is certain to come.
	 */
	if (h->chunked || h->expects_continue)
		return true;
	return (uint64_t)h->content_length - x->body_in > LIMIT_DISCARD_BYTES;
}

enum { LENGTH_CHUNKED = -1, LENGTH_NONE = -2 };

static struct buffer *put_head(
	struct http_exchange *x, int status, const char *type, int64_t length)
{
	struct buffer *b = &x->conn->server->scratch;
	bool old = !x->head_bad && x->conn->parser.head.minor == 0;
	int r = 0;

	x->status = status;
	x->close_after = must_close(x);
	b->len = 0;
	r |= buffer_printf(b, "HTTP/1.1 %d %s\r\n", status, http_status_text(status));
	if (type)
		r |= buffer_printf(b, "Content-Type: %s\r\n", type);
	if (length >= 0)
		r |= buffer_printf(b, "Content-Length: %lld\r\n", (long long)length);
	else if (length == LENGTH_CHUNKED)
		r |= buffer_append_str(b, "Transfer-Encoding: chunked\r\n");
	if (!x->passed_on)
		r |= buffer_printf(b, "X-Request-Id: %s\r\nX-Content-Type-Options: nosniff\r\n",
			x->request_id);
	if (!x->cacheable && !x->passed_on)
		r |= buffer_append_str(b, "Cache-Control: no-store\r\n");
	if (x->close_after)
		r |= buffer_append_str(b, "Connection: close\r\n");
	else if (old)
		r |= buffer_append_str(b, "Connection: keep-alive\r\n");
	r |= buffer_append(b, x->extra.data, x->extra.len);
	r |= buffer_append(b, "\r\n", 2);
	/* the missing header may be the one that sandboxes the page */
	return r || x->extra_lost ? NULL : b;
}

static bool is_head_request(const struct http_exchange *x)
{
	return !x->head_bad && x->conn->parser.head.method == HTTP_METHOD_HEAD;
}

static bool has_no_body(int status)
{
	return status == 204 || status == 304 || status < 200;
}

/* ---- one answer ------------------------------------------------------- */

/* Body bytes are in `owned` when it is not NULL, else they stay the caller's. */
static void answer(struct http_exchange *x, int status, const char *type, const void *body,
	size_t len, void *owned)
{
	struct http_conn *c = x->conn;
	assert(x->active && !x->begun && !x->answered);
	if (has_no_body(status)) {
		type = NULL;
		len = 0;
	}

	struct buffer *head = put_head(
		x, status, type, has_no_body(status) ? LENGTH_NONE : (int64_t)len);
	if (!head) {
		free(owned);
		give_up(c, -ENOMEM);
	} else {
		uv_buf_t bufs[2] = { uv_buf_init(head->data, (unsigned)head->len),
			uv_buf_init((char *)body, (unsigned)len) };
		bool with_body = len && !is_head_request(x);
		if (!with_body)
			free(owned);
		http_out_send(c, bufs, with_body ? 2 : 1, with_body ? owned : NULL);
	}

	http_conn_answered(x);
}

/* Whether an answer could be kept for a client that does not take it. */
static bool may_wait(size_t len)
{
	struct hold h = { 0 };
	int r = len > HOLD_FREE_BYTES ? hold_set(&h, len) : 0;
	hold_set(&h, 0);
	return r == 0;
}

void http_respond(
	struct http_exchange *x, int status, const char *content_type, struct buffer *body)
{
	size_t len = 0;
	char *data = body ? buffer_take(body, &len) : NULL;
	if (!may_wait(len)) {
		free(data);
		http_respond_problem(x, 503, "server_memory",
			"the server has reached its limit on memory held for clients, and cannot hold this answer",
			"try again in a second; read answers as they arrive, and request less at once");
		return;
	}
	answer(x, status, content_type, data, len, data);
}

void http_respond_copy(
	struct http_exchange *x, int status, const char *content_type, const void *body, size_t len)
{
	answer(x, status, content_type, body, len, NULL);
}

void http_respond_problem(struct http_exchange *x, int status, const char *code, const char *detail,
	const char *remedy)
{
	const struct http_problem_form *form = x->problem_form;
	struct buffer body = BUFFER_INIT(0);
	int r = form ? form->write(x, status, detail, remedy, &body)
		     : http_problem_write(&body, status, code, detail, remedy, x->request_id);
	/* Without memory for the text the status alone is sent. */
	if (r < 0 || buffer_append_char(&body, '\n') < 0)
		buffer_finish(&body);
	http_respond(x, status, form ? form->content_type : "application/problem+json", &body);
}

/* ---- an answer in pieces ---------------------------------------------- */

void http_stream_begin(
	struct http_exchange *x, int status, const char *content_type, int64_t content_length)
{
	struct http_conn *c = x->conn;
	assert(x->active && !x->begun && !x->answered);
	bool can_chunk = c->parser.head.minor > 0;
	x->begun = true;
	x->out_left = content_length >= 0 ? content_length : -1;
	x->chunked_out = content_length < 0 && can_chunk && !is_head_request(x);
	if (content_length < 0 && !can_chunk)
		x->close_after = true; /* the end of the connection is the end of the body */
	struct buffer *head = put_head(x, status, content_type,
		content_length >= 0 ? content_length
		: can_chunk         ? LENGTH_CHUNKED
				    : LENGTH_NONE);
	if (!head) {
		give_up(c, -ENOMEM);
		return;
	}

	uv_buf_t buf = uv_buf_init(head->data, (unsigned)head->len);
	http_out_send(c, &buf, 1, NULL);
}

int http_stream_write(struct http_exchange *x, const void *data, size_t len)
{
	struct http_conn *c = x->conn;
	char size[24];

	assert(x->begun && !x->answered);
	if (c->failed || c->state != HTTP_CONN_HTTP)
		return -EPIPE;
	if (c->queued > LIMIT_OUT_QUEUE_BYTES)
		return give_up(c, -ENOBUFS);
	if (x->out_left >= 0) {
		len = len < (uint64_t)x->out_left ? len : (size_t)x->out_left;
		x->out_left -= (int64_t)len;
	}

	if (!len || is_head_request(x))
		return 0;
	uv_buf_t plain = uv_buf_init((char *)data, (unsigned)len);
	uv_buf_t framed[SEND_BUFS_MAX] = {
		uv_buf_init(size, (unsigned)snprintf(size, sizeof(size), "%zx\r\n", len)), plain,
		uv_buf_init((char *)"\r\n", 2)
	};
	int r = x->chunked_out ? http_out_send(c, framed, SEND_BUFS_MAX, NULL)
			       : http_out_send(c, &plain, 1, NULL);
	if (r < 0)
		return r;
	if (c->queued <= HTTP_HIGH_WATER)
		return 0;
	x->wants_drain = true;
	return 1;
}

void http_stream_end(struct http_exchange *x)
{
	struct http_conn *c = x->conn;
	assert(x->begun && !x->answered);
	if (x->out_left > 0 && !is_head_request(x)) {
		/* fewer bytes than promised: the client must not take them for all */
		http_stream_abort(x);
		return;
	}
	if (x->chunked_out) {
		uv_buf_t last = uv_buf_init((char *)"0\r\n\r\n", 5);
		http_out_send(c, &last, 1, NULL);
	}
	http_conn_answered(x);
}

void http_stream_abort(struct http_exchange *x)
{
	assert(x->active && !x->answered);
	give_up(x->conn, -ECONNABORTED);
	http_conn_answered(x);
}

void http_sse_begin(struct http_exchange *x)
{
	http_add_header(x, "X-Accel-Buffering", "no"); /* nginx in between would hold events back */
	x->sse = true;
	http_stream_begin(x, 200, "text/event-stream", -1);
}

int http_sse_event(
	struct http_exchange *x, const char *event, const char *id, const char *data, size_t len)
{
	struct buffer *b = &x->conn->server->scratch;
	b->len = 0;
	int r = sse_write(b, event, id, data, len);
	r = r < 0 ? give_up(x->conn, r) : http_stream_write(x, b->data, b->len);
	if (b->cap > SCRATCH_KEPT_BYTES)
		buffer_finish(b);
	return r;
}
