#include "api/ports/port_proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "http/http_reply.h"
#include "session/ports/port_link.h"

enum { PREFIX_BYTES = 96 };

/*
 * One request on its way. `call` until the answer is complete or the client left; `tunnel` once the
 * protocol was switched.
 */
struct proxy {
	struct call *call;
	struct http_tunnel *tunnel;
	struct port_link *link;
	struct http_reply reply;
	enum port_form form;
	unsigned port;
	bool chunked; /* the body goes on in chunks */
	bool begun;   /* the head of the answer is out */
	bool ended;   /* the answer was read to its end */
	char prefix[PREFIX_BYTES];
};

static void destroy(struct proxy *p)
{
	port_link_close(p->link);
	http_reply_finish(&p->reply);
	free(p);
}

static struct call *take_call(struct proxy *p)
{
	struct call *c = p->call;
	p->call = NULL;
	c->ops = NULL;
	c->work = NULL;
	return c;
}

/* ---- failures ------------------------------------------------------------------------------- */

static void answer_problem(struct proxy *p, int err)
{
	char text[128];
	struct call *c = take_call(p);

	if (err == -ECONNREFUSED || err == -ENETUNREACH) {
		snprintf(text, sizeof(text), "nothing listens on port %u of the session", p->port);
		call_problem(c, 502, "port_closed", text,
			"Start the server in the session, on 127.0.0.1 or 0.0.0.0.");
	} else if (err == -ETIMEDOUT) {
		call_problem(c, 504, "port_timeout",
			"the server in the session did not answer in time", "Try again.");
	} else if (err == -ESHUTDOWN) {
		call_problem(c, 502, "session_gone", "the session ended", "Make a new session.");
	} else if (err == -ENOMEM) {
		call_no_memory(c);
	} else {
		call_problem(c, 502, "bad_answer",
			err == -E2BIG ? "the head of the server's answer is too long"
				      : "the server in the session sent no complete HTTP answer",
			"Look at the output of the server in the session.");
	}
}

/* The answer cannot be completed. */
static void fail(struct proxy *p, int err)
{
	if (p->call && p->begun)
		call_cut_stream(take_call(p));
	else if (p->call)
		answer_problem(p, err);
	if (p->tunnel)
		http_tunnel_close(p->tunnel);
	p->tunnel = NULL;
	destroy(p);
}

/* ---- the switched protocol ---------------------------------------------------------- */

static void tunnel_data(struct http_tunnel *t, const char *data, size_t len, void *userdata)
{
	struct proxy *p = userdata;
	int r = p->link ? port_link_write(p->link, data, len) : -EPIPE;
	if (r > 0)
		http_tunnel_hold(t, true);
	else if (r < 0)
		fail(p, r);
}

static void tunnel_drained(struct http_tunnel *t, void *userdata)
{
	struct proxy *p = userdata;
	(void)t;
	port_link_hold(p->link, false);
}

static void tunnel_closed(struct http_tunnel *t, void *userdata)
{
	struct proxy *p = userdata;
	(void)t;
	p->tunnel = NULL;
	destroy(p);
}

static const struct http_tunnel_handler tunnel_handler = { tunnel_data, tunnel_drained,
	tunnel_closed };

/* ---- the answer --------------------------------------------------------------------- */

static bool on_head(struct http_reply *reply, void *userdata)
{
	struct proxy *p = userdata;
	struct http_exchange *x = p->call->x;
	int status = reply->status;

	/* bytes of a body would be taken for bytes of the new protocol */
	if (status == 101 && (!http_wants_websocket(x) || !http_request_done(x)))
		return false;
	port_head_answer(x, reply, p->form, p->prefix);
	if (p->form == PORT_BY_HOST)
		http_pass_on(x);
	else
		http_allow_caching(x);
	if (status == 101) {
		call_release(take_call(p));
		p->tunnel = http_tunnel_begin(x, status, &tunnel_handler, p);
	} else if (status == 204 || status == 304) {
		call_respond_static(take_call(p), status, NULL, NULL, 0);
		p->ended = true;
	} else {
		http_stream_begin(x, status, NULL, reply->content_length);
		p->begun = true;
	}

	return true;
}

static bool on_body(struct http_reply *reply, const char *data, size_t len, void *userdata)
{
	struct proxy *p = userdata;
	(void)reply;
	if (!p->call && !p->tunnel)
		return true;
	int r = p->tunnel ? http_tunnel_send(p->tunnel, data, len)
			  : http_stream_write(p->call->x, data, len);
	/* a client that is lost is told of as gone, in another turn */
	if (r)
		port_link_hold(p->link, true);
	return true;
}

static bool on_reply_end(struct http_reply *reply, void *userdata)
{
	struct proxy *p = userdata;
	(void)reply;
	p->ended = true;
	return true;
}

static const struct http_reply_handler reply_handler = { on_head, on_body, on_reply_end };

/* ---- the connection ----------------------------------------------------------------- */

static void complete(struct proxy *p)
{
	if (p->call)
		call_finish_stream(take_call(p));
	destroy(p);
}

static void link_open(void *owner)
{
	(void)owner;
}

static void link_data(void *owner, const char *data, size_t len)
{
	struct proxy *p = owner;
	int r = http_reply_feed(&p->reply, data, len);
	if (p->ended)
		complete(p);
	else if (r < 0)
		fail(p, r);
}

static void link_drained(void *owner)
{
	struct proxy *p = owner;
	if (p->tunnel)
		http_tunnel_hold(p->tunnel, false);
	else if (p->call)
		http_resume(p->call->x);
}

static void link_end(void *owner, int err)
{
	struct proxy *p = owner;
	p->link = NULL;
	if (!p->tunnel && (err == 0 || err == -ECONNRESET))
		err = http_reply_eof(&p->reply);
	if (p->ended)
		complete(p);
	else
		fail(p, err);
}

static const struct port_link_events link_events = { link_open, link_data, link_drained, link_end };

/* ---- the request -------------------------------------------------------------------- */

static void send_up(struct proxy *p, const char *data, size_t len)
{
	char size[24];
	int n = snprintf(size, sizeof(size), "%zx\r\n", len);
	int r = p->chunked ? port_link_write(p->link, size, (size_t)n) : 0;
	if (r >= 0)
		r = port_link_write(p->link, data, len);
	if (r >= 0 && p->chunked)
		r = port_link_write(p->link, "\r\n", 2);
	if (r > 0)
		http_pause(p->call->x);
	else if (r < 0)
		fail(p, r);
}

static void call_body(struct call *c, const char *data, size_t len)
{
	send_up(c->work, data, len);
}

static void call_drained(struct call *c)
{
	struct proxy *p = c->work;
	port_link_hold(p->link, false);
}

static void call_gone(struct call *c)
{
	struct proxy *p = c->work;
	p->call = NULL;
	destroy(p);
}

static const struct call_ops ops = { call_body, call_drained, call_gone };

void port_proxy_body_end(struct call *c)
{
	struct proxy *p = c->work;
	if (p->chunked && port_link_write(p->link, "0\r\n\r\n", 5) < 0)
		fail(p, -ENOBUFS);
}

static int start(struct proxy *p, struct session *s, const struct port_request *q, struct error *e)
{
	struct call *c = p->call;
	_cleanup_buffer_ struct buffer head = BUFFER_INIT(0);
	int r = port_head_request(c, q, &head);
	if (r == 0)
		r = session_port_open(s, q->port, &link_events, p, e, &p->link);
	else
		error_set(e, r, "out of memory");
	return r < 0 ? r : port_link_write(p->link, head.data, head.len);
}

enum http_body_mode port_proxy_begin(
	struct call *c, struct session *s, const struct port_request *q)
{
	struct error e = { 0 };

	if (http_wants_websocket(c->x) && http_content_length(c->x) != 0) {
		call_problem(c, 400, "upgrade_with_body",
			"a request that asks for a WebSocket must not have a body",
			"Send the request without Content-Length and Transfer-Encoding.");
		return HTTP_BODY_ANSWERED;
	}

	struct proxy *p = calloc(1, sizeof(*p));
	if (!p) {
		call_no_memory(c);
		return HTTP_BODY_ANSWERED;
	}

	p->call = c;
	p->form = q->form;
	p->port = q->port;
	p->chunked = http_content_length(c->x) < 0;
	snprintf(p->prefix, sizeof(p->prefix), "%s", q->prefix ? q->prefix : "");
	http_reply_init(&p->reply, http_method(c->x) == HTTP_METHOD_HEAD, &reply_handler, p);
	http_limit_body(c->x, c->api->max_upload_bytes);
	if (start(p, s, q, &e) < 0) {
		p->call = NULL;
		destroy(p);
		call_error(c, &e);
		return HTTP_BODY_ANSWERED;
	}

	c->ops = &ops;
	c->work = p;
	return HTTP_BODY_STREAM;
}
