#include "http/http_client.h"

#include <assert.h>
#include <errno.h>
#include <llhttp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "http/http_address.h"

enum { CONNECT_MS = 5000, READ_BYTES = 64 * 1024, FIELD_MAX = 64, VALUE_MAX = 128 };

struct http_client {
	struct http_address address;
	char *token;
	int fd; /* connected, or -1 */
};

/* One request under way. */
struct call {
	struct http_client *client;
	const struct http_client_request *request;
	struct http_client_response *response;
	llhttp_t engine;
	char field[FIELD_MAX], value[VALUE_MAX];
	size_t field_len, value_len;
	int err;    /* of a callback */
	bool heard; /* a byte of the answer came */
	bool done, keep;
};

int http_client_create(const char *address, struct error *e, struct http_client **ret)
{
	struct http_client *c = calloc(1, sizeof(*c));
	if (!c)
		return error_set(e, -ENOMEM, "out of memory");
	c->fd = -1;
	int r = http_address_parse(address, e, &c->address);
	if (r < 0) {
		free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void http_client_destroy(struct http_client *c)
{
	if (!c)
		return;
	fd_close(c->fd);
	free(c->token);
	free(c);
}

int http_client_set_token(struct http_client *c, const char *token)
{
	char *copy = token ? strdup(token) : NULL;
	if (token && !copy)
		return -ENOMEM;
	free(c->token);
	c->token = copy;
	return 0;
}

void http_client_response_finish(struct http_client_response *r)
{
	buffer_finish(&r->body);
}

/* ---- connecting ------------------------------------------------------- */

/*
 * Waits for one of the events: their bits, -ETIMEDOUT, or -ECANCELED when cancel_fd (0: none) is
 * readable. timeout_ms < 0: no limit.
 */
static int wait_for(int fd, short events, int timeout_ms, int cancel_fd)
{
	struct pollfd p[] = { { .fd = fd, .events = events },
		{ .fd = cancel_fd > 0 ? cancel_fd : -1, .events = POLLIN } };
	uint64_t end = clock_now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * NSEC_PER_MSEC;

	for (;;) {
		int n = poll(p, 2, timeout_ms);
		if (n > 0)
			return p[1].revents ? -ECANCELED : p[0].revents;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
		if (timeout_ms > 0) {
			uint64_t now = clock_now_ns();
			timeout_ms = now < end ? (int)((end - now) / NSEC_PER_MSEC) : 0;
		}
	}
}

static int connect_one(int fd, const struct sockaddr *sa, socklen_t len, void *userdata)
{
	const unsigned *timeout_ms = userdata;
	int on = 1, err = 0;

	socklen_t err_len = sizeof(err);
	int r = fd_set_nonblock(fd, 1);
	if (r < 0)
		return r;
	if (sa->sa_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, sa, len) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	r = wait_for(fd, POLLOUT, (int)*timeout_ms, 0);
	if (r < 0)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &err_len) < 0)
		return -errno;
	return -err;
}

static int connect_client(struct http_client *c, unsigned connect_ms, struct error *e)
{
	unsigned timeout_ms = connect_ms ? connect_ms : CONNECT_MS;
	/* A kept connection that has something to read before we asked was closed by the server. */
	if (c->fd >= 0 && wait_for(c->fd, POLLIN, 0, 0) == -ETIMEDOUT)
		return 0;
	fd_close_clear(&c->fd);
	int r = http_address_each(&c->address, false, connect_one, &timeout_ms, e, &c->fd);
	if (r < 0) {
		error_wrap(e, "cannot connect");
		error_slug(e, "cannot_connect");
		if (r == -ECONNREFUSED || r == -ENOENT)
			error_remedy(e,
				"nothing listens there: start a server with `glovebox serve`, or "
				"name another with --url");
	}

	return r;
}

/* ---- sending ---------------------------------------------------------- */

static int put_request(struct call *call, struct buffer *b)
{
	const struct http_client_request *q = call->request;
	const struct http_address *a = &call->client->address;
	bool v6 = strchr(a->host, ':') != NULL;
	int r = buffer_printf(b, "%s %s HTTP/1.1\r\n", q->method, q->target);

	if (a->is_unix)
		r |= buffer_append_str(b, "Host: localhost\r\n");
	else
		r |= buffer_printf(
			b, "Host: %s%s%s:%s\r\n", v6 ? "[" : "", a->host, v6 ? "]" : "", a->port);
	if (call->client->token)
		r |= buffer_printf(b, "Authorization: Bearer %s\r\n", call->client->token);
	if (q->accept)
		r |= buffer_printf(b, "Accept: %s\r\n", q->accept);
	if (q->body)
		r |= buffer_printf(b, "Content-Type: %s\r\nContent-Length: %zu\r\n",
			q->content_type ? q->content_type : "application/json", q->body_len);
	if (q->headers)
		r |= buffer_append_str(b, q->headers);
	r |= buffer_append_str(b, "\r\n");
	return r ? -ENOMEM : 0;
}

/*
 * Sends until done, or until the server has something to say or stopped listening: then its answer
 * is what counts.
 */
static int send_all(struct call *call, const char *data, size_t len, int timeout_ms)
{
	int fd = call->client->fd;
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
		if (n >= 0) {
			data += n;
			len -= (size_t)n;
			continue;
		}
		if (errno == EPIPE || errno == ECONNRESET)
			return 1;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		int r = wait_for(fd, POLLOUT | POLLIN, timeout_ms, call->request->cancel_fd);
		if (r < 0)
			return r;
		if (r & POLLIN)
			return 1;
	}

	return 0;
}

static int send_request(struct call *call, int timeout_ms)
{
	_cleanup_buffer_ struct buffer head = BUFFER_INIT(0);
	int r = put_request(call, &head);
	if (r == 0)
		r = send_all(call, head.data, head.len, timeout_ms);
	if (r == 0 && call->request->body)
		r = send_all(call, call->request->body, call->request->body_len, timeout_ms);
	return r;
}

/* ---- the answer ------------------------------------------------------- */

static int stop(struct call *call, int err)
{
	call->err = err;
	return HPE_USER;
}

static void append_cut(char *out, size_t size, size_t *len, const char *at, size_t n)
{
	size_t room = size - 1 - *len;
	n = n < room ? n : room;
	memcpy(out + *len, at, n);
	*len += n;
	out[*len] = '\0';
}

static int on_header_field(llhttp_t *engine, const char *at, size_t len)
{
	struct call *call = engine->data;
	append_cut(call->field, sizeof(call->field), &call->field_len, at, len);
	return 0;
}

static int on_header_value(llhttp_t *engine, const char *at, size_t len)
{
	struct call *call = engine->data;
	append_cut(call->value, sizeof(call->value), &call->value_len, at, len);
	return 0;
}

static int on_header_value_complete(llhttp_t *engine)
{
	struct call *call = engine->data;
	struct http_client_response *r = call->response;
	uint64_t seconds;

	call->value[call->value_len] = '\0';
	if (!strcasecmp(call->field, "content-type"))
		snprintf(r->content_type, sizeof(r->content_type), "%s", call->value);
	else if (!strcasecmp(call->field, "x-request-id"))
		snprintf(r->request_id, sizeof(r->request_id), "%.*s",
			(int)sizeof(r->request_id) - 1, call->value);
	else if (!strcasecmp(call->field, "retry-after") &&
		 text_parse_u64(call->value, 0, 86400, &seconds) == 0)
		r->retry_after_s = (unsigned)seconds;
	call->field_len = call->value_len = 0;
	call->field[0] = call->value[0] = '\0';
	return 0;
}

static int on_headers_complete(llhttp_t *engine)
{
	struct call *call = engine->data;
	call->response->status = engine->status_code;
	call->keep = llhttp_should_keep_alive(engine);
	if (engine->status_code == 101)
		return stop(call, -EPROTO);
	return text_eq(call->request->method, "HEAD") ? 1 : 0;
}

static int on_body(llhttp_t *engine, const char *at, size_t len)
{
	struct call *call = engine->data;
	if (call->request->on_data && call->response->status / 100 == 2) {
		int r = call->request->on_data(at, len, call->request->userdata);
		return r < 0 ? stop(call, r) : 0;
	}
	int r = buffer_append(&call->response->body, at, len);
	return r < 0 ? stop(call, r == -ENOBUFS ? -EFBIG : r) : 0;
}

static int on_message_complete(llhttp_t *engine)
{
	struct call *call = engine->data;
	if (call->response->status / 100 != 1) /* 100 Continue is not the answer yet */
		call->done = true;
	return call->done ? HPE_PAUSED : 0;
}

static const llhttp_settings_t callbacks = {
	.on_header_field = on_header_field,
	.on_header_value = on_header_value,
	.on_header_value_complete = on_header_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

static int take_bytes(struct call *call, const char *data, size_t len)
{
	call->heard = true;
	llhttp_errno_t err = llhttp_execute(&call->engine, data, len);
	if (call->done || err == HPE_OK)
		return 0;
	return call->err ? call->err : -EPROTO;
}

static int take_end(struct call *call)
{
	if (call->heard)
		/* a body without a length ends here: the callback sets done */
		llhttp_finish(&call->engine);
	return call->done ? 0 : -ECONNRESET;
}

static int read_answer(struct call *call, int timeout_ms)
{
	_cleanup_free_ char *data = malloc(READ_BYTES);
	int r = data ? 0 : -ENOMEM;

	while (r == 0 && !call->done) {
		ssize_t n = recv(call->client->fd, data, READ_BYTES, 0);
		if (n > 0)
			r = take_bytes(call, data, (size_t)n);
		else if (n == 0)
			return take_end(call);
		else if (errno == EAGAIN || errno == EINTR)
			r = wait_for(
				call->client->fd, POLLIN, timeout_ms, call->request->cancel_fd);
		else
			return -errno;
		r = r > 0 ? 0 : r;
	}

	return r;
}

static int explain(const struct call *call, int err, struct error *e)
{
	switch (err) {
	case -EFBIG:
		return error_set(
			e, err, "the answer is larger than %zu bytes", call->response->body.max);
	case -EPROTO:
		return error_set(e, err, "the server does not support HTTP/1.1");
	case -ETIMEDOUT:
		return error_set(e, err, "the server did not answer in time");
	case -ECONNRESET:
		return error_set(
			e, err, "the server closed the connection before its answer was complete");
	default:
		return error_set_errno(
			e, err, "%s %s", call->request->method, call->request->target);
	}
}

int http_client_call(struct http_client *c, const struct http_client_request *request,
	struct error *e, struct http_client_response *ret)
{
	struct http_client_response response = { 0 };
	struct call call = { .client = c, .request = request, .response = &response };
	int timeout_ms = request->silence_ms ? (int)request->silence_ms : -1;
	int r = connect_client(c, request->connect_ms, e);

	if (r < 0)
		return r;
	buffer_init(
		&response.body, request->max_body ? request->max_body : LIMIT_CLIENT_BODY_BYTES);
	llhttp_init(&call.engine, HTTP_RESPONSE, &callbacks);
	call.engine.data = &call;
	r = send_request(&call, timeout_ms);
	bool cut_short = r == 1; /* the server answered before it had read everything */
	if (r >= 0)
		r = read_answer(&call, timeout_ms);
	if (r < 0 || !call.keep || cut_short)
		fd_close_clear(&c->fd);
	if (r < 0) {
		explain(&call, r, e);
		http_client_response_finish(&response);
		return r;
	}

	response.body.max = 0; /* so that buffer_cstr() has room for its NUL */
	*ret = response;
	return 0;
}
