#include "http/http_conn.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fds.h"
#include "base/text.h"
#include "http/ws.h"

/* Read from one connection before others have their turn. */
enum { BURST_BYTES = 256 * 1024 };

/* Buffers of up to these sizes are kept for the next request of the connection. */
enum { BODY_KEPT_BYTES = 16 * 1024, EXTRA_KEPT_BYTES = 4 * 1024, BODY_FIRST_RESERVE = 64 * 1024 };

static uint64_t now_ms(const struct http_conn *c)
{
	return uv_now(c->server->loop);
}

/* ---- end -------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
	struct http_conn *c = handle->data;
	http_parser_finish(&c->parser);
	buffer_finish(&c->backlog);
	buffer_finish(&c->x.body);
	buffer_finish(&c->x.extra);
	hold_set(&c->held, 0);
	http_ws_finish(c);
	http_server_forget(c);
	free(c);
}

static void tell_gone(struct http_conn *c)
{
	struct http_exchange *x = &c->x;
	if (!x->told)
		return;
	x->told = false;
	c->server->handler->on_gone(x, c->server->userdata);
}

void http_conn_close(struct http_conn *c)
{
	bool was_pending = c->x.active && !c->x.answered;
	if (c->state == HTTP_CONN_CLOSING)
		return;
	c->state = HTTP_CONN_CLOSING;
	if (c->is_ready)
		TAILQ_REMOVE(&c->server->ready, c, ready);
	c->is_ready = false;
	uv_close(&c->uv.handle, on_closed);
	tell_gone(c);
	http_ws_lost(c);
	http_tunnel_lost(c);
	if (was_pending)
		http_conn_log(&c->x, 0);
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
	struct http_conn *c = req->handle->data;
	if (c->state == HTTP_CONN_CLOSING)
		return;
	c->flushed = true;
	c->since_ms = now_ms(c);
	if (status < 0 || c->eof)
		http_conn_close(c);
}

void http_conn_hang_up(struct http_conn *c)
{
	if (c->state >= HTTP_CONN_LINGER)
		return;
	c->state = HTTP_CONN_LINGER;
	buffer_finish(&c->backlog);
	if (uv_shutdown(&c->shutdown, &c->uv.stream, on_shutdown) < 0) {
		c->failed = true;
		http_conn_schedule(c);
		return;
	}
	http_conn_update_reading(c);
}

/* ---- one exchange ----------------------------------------------------- */

static bool id_is_sane(const char *id)
{
	size_t n = id ? strlen(id) : 0;
	return n >= 1 && n <= HTTP_REQUEST_ID_MAX &&
	       strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

static void start_exchange(struct http_conn *c, bool head_bad)
{
	struct http_exchange *x = &c->x;
	struct buffer body = x->body, extra = x->extra;

	body.len = extra.len = 0;
	*x = (struct http_exchange){
		.conn = c,
		.body = body,
		.extra = extra,
		.active = true,
		.head_bad = head_bad,
		.serial = ++c->server->stats.requests,
		.started_ns = uv_hrtime(),
		.body_max = LIMIT_BODY_BYTES,
		.out_left = -1,
	};
	const char *id = head_bad ? NULL : http_head_find(&c->parser.head, "x-request-id");
	if (id_is_sane(id))
		snprintf(x->request_id, sizeof(x->request_id), "%s", id);
	else
		snprintf(x->request_id, sizeof(x->request_id), "%s-%llx", c->server->id_prefix,
			(unsigned long long)x->serial);
	c->since_ms = now_ms(c);
}

/* Both request and answer are complete, or the connection ends anyway. */
static void finish_exchange(struct http_conn *c)
{
	struct http_exchange *x = &c->x;
	x->active = false;
	if (x->body.cap > BODY_KEPT_BYTES)
		buffer_finish(&x->body);
	if (x->extra.cap > EXTRA_KEPT_BYTES)
		buffer_finish(&x->extra);
	c->since_ms = now_ms(c);
	if (c->state == HTTP_CONN_HTTP && (x->close_after || c->server->closing))
		http_conn_hang_up(c);
}

static bool exchange_is_over(const struct http_conn *c)
{
	const struct http_exchange *x = &c->x;
	return x->active && x->answered && (x->request_done || x->close_after);
}

void http_conn_answered(struct http_exchange *x)
{
	struct http_conn *c = x->conn;
	x->answered = true;
	x->told = x->paused = false;
	http_conn_log(x, x->status);
	if (c->inside)
		return;
	if (exchange_is_over(c))
		finish_exchange(c);
	if (c->backlog.len || c->eof)
		http_conn_schedule(c);
	http_conn_update_reading(c);
}

void http_conn_refuse(struct http_conn *c, const struct http_refusal *why)
{
	struct http_exchange *x = &c->x;
	if (x->active && (x->begun || x->answered)) {
		if (x->answered)
			http_conn_hang_up(c);
		else
			http_conn_close(c); /* a half-sent answer cannot become another one */
		return;
	}

	if (!x->active)
		start_exchange(c, true);
	tell_gone(c);
	x->close_after = true;
	http_out_drop_headers(x);
	http_respond_problem(x, why->status, why->code, why->detail, why->remedy);
	if (exchange_is_over(c))
		finish_exchange(c);
}

/* ---- events of the parser --------------------------------------------- */

static const struct http_refusal too_large = { 413, "body_too_large",
	"the body is larger than this request may have",
	"send less, or upload files to the session one by one" };
static const struct http_refusal no_memory = { 503, "server_memory",
	"the server has reached its limit on memory held for clients (requests, output, unread answers), and cannot accept this request",
	"try again in a second, or send less at once" };

static void send_continue(struct http_conn *c)
{
	static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	uv_buf_t buf = uv_buf_init(text, sizeof(text) - 1);
	http_out_send(c, &buf, 1, NULL);
}

static void take_head(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct http_head *h = &c->parser.head;
	struct http_exchange *x = &c->x;

	start_exchange(c, false);
	x->told = true;
	if (s->handler->on_headers)
		x->mode = s->handler->on_headers(x, s->userdata);
	assert(x->mode != HTTP_BODY_ANSWERED || x->answered);
	if (x->answered || x->begun)
		return;
	if (h->content_length > 0 && (uint64_t)h->content_length > x->body_max) {
		http_conn_refuse(c, &too_large);
		return;
	}

	if (x->mode == HTTP_BODY_BUFFER && h->content_length > 0) {
		/*
		 * A declared size is a promise, not a reason to take memory: reserve little, grow
		 * as it comes.
		 */
		size_t want = h->content_length < BODY_FIRST_RESERVE ? (size_t)h->content_length
								     : BODY_FIRST_RESERVE;
		if (buffer_reserve(&x->body, want) < 0) {
			http_conn_refuse(c, &no_memory);
			return;
		}
	}

	if (h->expects_continue && h->content_length != 0)
		send_continue(c);
}

static void take_body(struct http_conn *c)
{
	struct http_exchange *x = &c->x;
	struct http_parser *p = &c->parser;
	x->body_in += p->body_len;
	if (x->answered)
		return; /* the remaining body of a request that was already answered */
	if (x->body_in > x->body_max)
		http_conn_refuse(c, &too_large);
	else if (x->mode == HTTP_BODY_STREAM)
		c->server->handler->on_body(x, p->body, p->body_len, c->server->userdata);
	else if (buffer_append(&x->body, p->body, p->body_len) < 0)
		http_conn_refuse(c, &no_memory);
}

static void take_end(struct http_conn *c)
{
	struct http_exchange *x = &c->x;
	x->request_done = true;
	if (!x->answered)
		c->server->handler->on_request(x, c->server->userdata);
}

static bool may_parse(const struct http_conn *c)
{
	const struct http_exchange *x = &c->x;
	if (c->state != HTTP_CONN_HTTP || c->failed || x->paused)
		return false;
	if (x->active)
		return !x->request_done;
	/* a client that does not read its answers gets no further answers */
	return c->queued <= HTTP_HIGH_WATER;
}

/* Works through the input until it is used up or something must be waited for. */
static void parse(struct http_conn *c, struct http_input *in)
{
	unsigned budget = LIMIT_PIPELINE;
	c->inside++;
	while (may_parse(c)) {
		enum http_event event = http_parser_next(&c->parser, in);
		if (event == HTTP_EVENT_MORE)
			break;
		if (event == HTTP_EVENT_HEAD)
			take_head(c);
		else if (event == HTTP_EVENT_BODY)
			take_body(c);
		else if (event == HTTP_EVENT_DONE)
			take_end(c);
		else
			http_conn_refuse(c, &c->parser.bad);
		if (exchange_is_over(c))
			finish_exchange(c);
		if (event == HTTP_EVENT_DONE && !--budget) {
			http_conn_schedule(c); /* others first */
			break;
		}
	}

	c->inside--;
}

/* ---- input ------------------------------------------------------------ */

/*
 * What could not be looked at yet is kept, or goes to the protocol that has just been switched to.
 */
static void keep_rest(struct http_conn *c, const struct http_input *rest)
{
	if (!rest->len || c->state >= HTTP_CONN_LINGER)
		return;
	if (c->state == HTTP_CONN_WS)
		http_ws_input(c, rest->data, rest->len);
	else if (c->state == HTTP_CONN_TUNNEL)
		http_tunnel_input(c, rest->data, rest->len);
	else if (buffer_append(&c->backlog, rest->data, rest->len) < 0)
		http_conn_close(c);
}

static void take_input(struct http_conn *c, const char *data, size_t len)
{
	struct http_input in = { data, len };
	bool was_started = c->parser.started;

	if (c->state == HTTP_CONN_LINGER) {
		c->lingered += len;
		if (c->lingered > LIMIT_LINGER_BYTES)
			http_conn_close(c);
		return;
	}

	if (c->state == HTTP_CONN_WS) {
		http_ws_input(c, data, len);
		return;
	}

	if (c->state == HTTP_CONN_TUNNEL) {
		http_tunnel_input(c, data, len);
		return;
	}

	if (!c->backlog.len)
		parse(c, &in);
	keep_rest(c, &in);
	if (!c->x.active && !was_started && c->parser.started)
		c->since_ms = now_ms(c); /* the first bytes of a head */
}

/* The client has closed its side: see http.h for what that means to a pending answer. */
static void settle_eof(struct http_conn *c)
{
	if (c->state == HTTP_CONN_CLOSING)
		return;
	if (c->state == HTTP_CONN_LINGER) {
		if (c->flushed)
			http_conn_close(c);
	} else if (c->state == HTTP_CONN_HTTP && c->x.active && c->x.answered) {
		/* the rest of the body will not come, but the answer is on its way */
		http_conn_hang_up(c);
	} else if (c->state != HTTP_CONN_HTTP || c->x.active || c->parser.started) {
		http_conn_close(c);
	} else if (!c->backlog.len) {
		http_conn_hang_up(c);
	}
}

void http_conn_run(struct http_conn *c)
{
	c->resting = false;
	if (c->failed) {
		http_conn_close(c);
		return;
	}

	/* The backlog's memory is moved out first: an answer inside may append to a new one. */
	struct buffer work = c->backlog;
	buffer_init(&c->backlog, work.max);
	buffer_count(&c->backlog);
	struct http_input in = { work.data, work.len };
	if (c->state == HTTP_CONN_HTTP)
		parse(c, &in);
	keep_rest(c, &in);
	buffer_finish(&work);
	if (c->eof)
		settle_eof(c);
	http_conn_update_reading(c);
}

void http_conn_schedule(struct http_conn *c)
{
	struct http_server *s = c->server;
	if (c->is_ready || c->state == HTTP_CONN_CLOSING)
		return;
	c->is_ready = true;
	TAILQ_INSERT_TAIL(&s->ready, c, ready);
	http_server_start_turn(s);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct http_conn *c = handle->data;
	*buf = uv_buf_init(
		/* used up before the next read of anybody */
		c->server->slab, sizeof(c->server->slab));
}

/* libuv reads 32 times before it looks at another connection: 2 MB, which take milliseconds. */
static void count_burst(struct http_conn *c, size_t n)
{
	c->burst += n;
	if (c->burst < BURST_BYTES || c->state == HTTP_CONN_CLOSING)
		return;
	c->burst = 0;
	c->resting = true;
	http_conn_schedule(c);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct http_conn *c = stream->data;
	if (n > 0) {
		c->server->stats.bytes_in += (uint64_t)n;
		count_burst(c, (size_t)n);
		take_input(c, buf->base, (size_t)n);
	} else if (n == UV_EOF) {
		c->eof = true;
		settle_eof(c);
	} else if (n < 0) {
		http_conn_close(c);
	}
	http_conn_update_reading(c);
}

static bool wants_reading(const struct http_conn *c)
{
	if (c->state == HTTP_CONN_CLOSING || c->eof || c->failed || c->resting)
		return false;
	if (c->state == HTTP_CONN_LINGER)
		return true;
	if (c->state == HTTP_CONN_WS)
		return c->queued <= HTTP_HIGH_WATER;
	if (c->state == HTTP_CONN_TUNNEL)
		return !c->tunnel.held;
	return !c->x.paused && c->backlog.len < LIMIT_BACKLOG_BYTES;
}

void http_conn_update_reading(struct http_conn *c)
{
	bool want = wants_reading(c);
	if (want == c->reading || c->state == HTTP_CONN_CLOSING)
		return;
	c->reading = want;
	if (!want) {
		uv_read_stop(&c->uv.stream);
	} else if (uv_read_start(&c->uv.stream, on_alloc, on_read) < 0) {
		c->failed = true;
		http_conn_schedule(c);
	}
}

/* ---- start ------------------------------------------------------------ */

int http_conn_create(struct http_server *s, int fd, const char *remote)
{
	struct http_conn *c = calloc(1, sizeof(*c));
	if (!c) {
		fd_close(fd);
		return -ENOMEM;
	}

	c->server = s;
	c->x.conn = c->ws.conn = c->tunnel.conn = c;
	c->since_ms = uv_now(s->loop);
	snprintf(c->remote, sizeof(c->remote), "%s", remote);
	http_parser_init(&c->parser);
	buffer_init(&c->backlog, LIMIT_BACKLOG_BYTES + HTTP_SLAB_BYTES);
	buffer_count(&c->backlog);
	buffer_count(&c->x.body);
	buffer_count(&c->x.extra);
	buffer_count(&c->parser.head.bytes);
	int r = s->is_unix ? uv_pipe_init(s->loop, &c->uv.pipe, 0)
			   : uv_tcp_init(s->loop, &c->uv.tcp);
	c->uv.handle.data = c;
	if (r < 0) {
		free(c);
		fd_close(fd);
		return r;
	}

	http_server_remember(c);
	r = s->is_unix ? uv_pipe_open(&c->uv.pipe, fd) : uv_tcp_open(&c->uv.tcp, fd);
	if (r < 0) {
		fd_close(fd);
		http_conn_close(c);
		return r;
	}

	http_conn_update_reading(c);
	return 0;
}

bool http_conn_is_idle(const struct http_conn *c)
{
	return c->state == HTTP_CONN_HTTP && !c->x.active && !c->parser.started && !c->backlog.len;
}
