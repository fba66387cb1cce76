/*
 * MCP over HTTP: POST /mcp has one JSON-RPC message (or, in revision 2025-03-26, a batch), whose
 * answer is JSON or an event stream. The same path serves OpenEnv's JSON-RPC, whose clients send no
 * header of MCP.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/call.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/mcp/mcp.h"
#include "dialects/mcp/mcp_routes.h"
#include "dialects/openenv/openenv_routes.h"
#include "json/json_read.h"

enum {
	BATCH_BYTES = 32 * 1024 * 1024, /* of all answers of a batch */
	/* an answer that takes longer becomes an event stream, so that proxies see signs of life */
	STREAM_AFTER_MS = 3000,
};

/* One POST: its requests, and what was answered so far. */
struct exchange {
	struct call *call; /* NULL once it is answered */
	struct mcp *home;
	bool accepts_stream, batch, begun, starting, lost;
	size_t bytes; /* of each message */
	unsigned pending;
	int status;
	struct buffer body;
	struct outbox out;
};

static void exchange_free(struct exchange *x)
{
	buffer_finish(&x->body);
	outbox_finish(&x->out);
	free(x);
}

/* ---- answering ------------------------------------------------------------------------ */

static int send_piece(void *target, const char *data, size_t len)
{
	return http_stream_write(target, data, len);
}

static void send_event(struct exchange *x, struct buffer *message);

/* Answers of a batch that were ready before the stream began are its first event. */
static void begin_stream(struct exchange *x)
{
	if (x->begun)
		return;
	x->begun = true;
	http_sse_begin(x->call->x);
	if (x->body.len && buffer_append_char(&x->body, ']') == 0)
		send_event(x, &x->body);
}

static void send_event(struct exchange *x, struct buffer *message)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	int r = buffer_append_str(&b, "data: ");
	if (!r)
		r = buffer_append(&b, message->data, message->len);
	if (!r)
		r = buffer_append_str(&b, "\n\n");
	buffer_finish(message);
	if (!r)
		outbox_send(&x->out, &b);
}

static void finish_stream(struct exchange *x)
{
	if (x->pending || !outbox_empty(&x->out))
		return;
	struct call *c = x->call;
	c->work = NULL;
	c->ops = NULL;
	exchange_free(x);
	call_finish_stream(c);
}

/* All requests are answered or cancelled. */
static void finish(struct exchange *x)
{
	if (x->pending || x->starting)
		return;
	if (x->begun) {
		finish_stream(x);
		return;
	}

	struct call *c = x->call;
	if (x->batch && x->body.len)
		buffer_append_char(&x->body, ']');
	c->work = NULL;
	c->ops = NULL;
	if (x->lost)
		call_problem(c, 503, "server_memory",
			"the answers of the batch exceed the server's limit on memory held for clients",
			"Send the requests one by one.");
	else if (x->body.len)
		call_respond_as(c, x->status, "application/json", &x->body);
	else
		call_respond_as(c, 202, NULL, NULL);
	exchange_free(x);
}

static void add_answer(struct exchange *x, struct buffer *message, int status)
{
	x->status = x->batch ? 200 : status;
	if (!x->batch) {
		x->body = *message;
		*message = (struct buffer){ 0 };
		return;
	}
	if (x->body.len + message->len > BATCH_BYTES ||
		buffer_append_char(&x->body, x->body.len ? ',' : '[') < 0 ||
		buffer_append(&x->body, message->data, message->len) < 0)
		x->lost = true;
	buffer_finish(message);
}

static void on_send(struct mcp_request *r, struct buffer *message, bool last, int status)
{
	struct exchange *x = r->target;
	if (!last) {
		if (!x->accepts_stream)
			return; /* the client accepts JSON only, so progress cannot be reported */
		begin_stream(x);
		send_event(x, message);
		return;
	}

	x->pending--;
	if (x->begun)
		send_event(x, message);
	else
		add_answer(x, message, status);
	finish(x);
}

static void on_cancelled(struct mcp_request *r)
{
	struct exchange *x = r->target;
	x->pending--;
	if (x->call)
		finish(x);
}

static void on_tick(struct mcp_request *r, uint64_t age_ms)
{
	struct exchange *x = r->target;
	if (x->accepts_stream && age_ms > STREAM_AFTER_MS && !x->begun && !x->body.len)
		begin_stream(x);
}

static const struct mcp_sink http_sink = {
	.send = on_send, .cancelled = on_cancelled, .tick = on_tick
};

/* ---- the client leaves: the requests are cancelled ---------------------------------------- */

static void on_gone(struct call *c)
{
	struct exchange *x = c->work;
	struct mcp_request *r, *next;

	x->call = NULL;
	for (r = TAILQ_FIRST(&x->home->requests); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (r->sink == &http_sink && r->target == x)
			mcp_cancel(r);
	}
	c->work = NULL;
	c->ops = NULL;
	exchange_free(x);
}

static void on_drained(struct call *c)
{
	struct exchange *x = c->work;
	outbox_drained(&x->out);
	finish_stream(x);
}

static const struct call_ops exchange_ops = { .on_gone = on_gone, .on_drained = on_drained };

/* ---- messages ----------------------------------------------------------------------- */

void mcp_answer_error(struct call *c, int status, const json_t *id, int code, const char *text)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	mcp_put_error(&w, id, code, text, NULL);
	call_respond(c, status, &w, &b);
}

static void take_notification(struct mcp *home, struct mcp_client *client, const json_t *message)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	if (text_eq(method, "notifications/cancelled") && client)
		mcp_cancel_id(home, client,
			json_object_get(json_object_get(message, "params"), "requestId"));
}

/* One message of the exchange; takes a reference of its own. */
static void start_message(struct exchange *x, struct mcp_client *client, json_t *message)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	const char *wrong = mcp_check_shape(message);
	struct mcp_request *r;

	if (!wrong && mcp_is_notification(message)) {
		take_notification(x->home, client, message);
		return;
	}
	if (wrong) {
		struct json_writer w;
		json_writer_init(&w, &b);
		mcp_put_error(&w, json_object_get(message, "id"), MCP_INVALID_REQUEST, wrong, NULL);
		add_answer(x, &b, 400);
		return;
	}

	r = mcp_request_create(x->home, json_incref(message), &http_sink, x);
	if (!r)
		return;
	r->owner = x->call->owner;
	r->client = client;
	x->pending++;
	if (hold_set(&r->held, x->bytes) < 0) {
		mcp_fail(r, MCP_INTERNAL, 503,
			"the server has reached its limit on memory held for clients: try again in a second",
			NULL);
		return;
	}
	if (!r->modern || mcp_headers_match(r, x->call))
		mcp_dispatch(r);
}

static void start_exchange(struct call *c, struct mcp_client *client, json_t *message)
{
	struct exchange *x = calloc(1, sizeof(*x));
	if (!x) {
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}

	x->call = c;
	x->home = mcp_home(c->api);
	x->accepts_stream = call_accepts(c, "text/event-stream");
	x->batch = json_is_array(message);
	x->starting = true;
	x->status = 200;
	outbox_init(&x->out, send_piece, c->x);
	c->ops = &exchange_ops;
	c->work = x;
	http_body(c->x, &x->bytes);
	if (x->batch)
		x->bytes /= json_array_size(message);
	http_drop_body(c->x);

	if (x->batch)
		for (size_t i = 0; i < json_array_size(message) && !x->lost; i++)
			start_message(x, client, json_array_get(message, i));
	else
		start_message(x, client, message);
	x->starting = false;
	finish(x);
}

/* ---- the legacy era's client -------------------------------------------------------- */

static bool is_method(const json_t *message, const char *name)
{
	return text_eq(json_string_value(json_object_get(message, "method")), name);
}

/* The client of the request, made by `initialize`. False: answered. */
static bool find_client(struct call *c, const json_t *message, struct mcp_client **ret)
{
	struct mcp *home = mcp_home(c->api);
	const char *id = http_header(c->x, "Mcp-Session-Id");
	bool modern = mcp_is_modern(message);

	*ret = id ? mcp_client_find(home, c->owner, id) : NULL;
	if (modern && *ret && !(*ret)->lease)
		*ret = NULL; /* the modern era has no handshake; but `glovebox mcp` names its lease in both eras */
	if (id && !*ret && !modern) {
		mcp_answer_error(c, 404, json_object_get(message, "id"), MCP_INVALID_REQUEST,
			"unknown Mcp-Session-Id: send initialize again");
		return false;
	}
	if (is_method(message, "initialize") && !*ret && (*ret = mcp_client_create(home, c->owner)))
		http_add_header(c->x, "Mcp-Session-Id", (*ret)->id);
	return true;
}

static void handle_message(struct call *c, json_t *message)
{
	struct mcp_client *client;
	int code = MCP_INVALID_REQUEST;
	const char *wrong = json_is_array(message) ? mcp_check_batch(c, message) : NULL;

	if (!wrong)
		wrong = mcp_check_version(c, message, &code);
	if (wrong)
		mcp_answer_error(c, 400, json_object_get(message, "id"), code, wrong);
	else if (find_client(c, message, &client))
		start_exchange(c, client, message);
}

/* ---- routes ------------------------------------------------------------------------- */

/* OpenEnv's clients send neither header, and none of these methods. */
static bool is_mcp(const struct call *c, const json_t *message)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	if (method && text_starts(method, "openenv/"))
		return false;
	if (call_accepts(c, "text/event-stream") || http_header(c->x, "MCP-Protocol-Version") ||
		http_header(c->x, "Mcp-Session-Id") || http_header(c->x, "Mcp-Method"))
		return true;
	return method && (text_eq(method, "initialize") || text_eq(method, "server/discover") ||
				 text_starts(method, "notifications/"));
}

/*
 * At the head already: the transport would refuse such a body in words that no client of JSON-RPC
 * reads.
 */
enum http_body_mode begin_mcp(struct call *c)
{
	const char *encoding = http_header(c->x, "Content-Encoding");
	if (encoding && strcasecmp(encoding, "identity"))
		mcp_answer_error(c, 415, NULL, MCP_INVALID_REQUEST,
			"compressed messages are not accepted: leave Content-Encoding out");
	else if (http_content_length(c->x) > LIMIT_BODY_BYTES)
		mcp_answer_error(c, 413, NULL, MCP_INVALID_REQUEST, "a message has at most 32 MB");
	else
		return HTTP_BODY_BUFFER;
	return HTTP_BODY_ANSWERED;
}

void handle_mcp(struct call *c)
{
	_cleanup_json_ json_t *message = NULL;
	struct error e = { 0 };
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = json_read(body, len, &e, &message);

	if (!is_mcp(c, message))
		handle_openenv_mcp(c);
	else if (r < 0)
		mcp_answer_error(c, 400, NULL, MCP_PARSE_ERROR, e.text);
	else
		handle_message(c, message);
}

void handle_mcp_get(struct call *c)
{
	if (http_wants_websocket(c->x)) {
		handle_openenv_mcp_socket(c);
		return;
	}
	http_add_header(c->x, "Allow", "POST, DELETE");
	call_problem(c, 405, "method_not_allowed",
		"this MCP server sends no messages on a separate stream",
		"POST JSON-RPC messages here; OpenEnv's clients connect a WebSocket.");
}

void handle_mcp_delete(struct call *c)
{
	const char *id = http_header(c->x, "Mcp-Session-Id");
	struct mcp_client *client = id ? mcp_client_find(mcp_home(c->api), c->owner, id) : NULL;

	if (!id) {
		http_add_header(c->x, "Allow", "POST");
		call_problem(c, 405, "method_not_allowed", "DELETE needs the header Mcp-Session-Id",
			"Send the id that initialize answered with.");
		return;
	}

	if (!client) {
		call_problem(c, 404, "client_not_found", "unknown Mcp-Session-Id",
			"Nothing needs to be done: the client has already ended.");
		return;
	}

	if (!client->stream)
		mcp_client_destroy(client);
	call_respond_as(c, 204, NULL, NULL);
}
