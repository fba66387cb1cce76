/*
 * MCP over HTTP: POST /mcp has one JSON-RPC message (or, in revision 2025-03-26, a batch), whose answer is JSON or an
 * event stream. The same path serves OpenEnv's JSON-RPC, whose clients send no header of MCP.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "dialects/mcp/mcp.h"
#include "dialects/mcp/mcp_routes.h"
#include "dialects/openenv/openenv_routes.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "json/json_read.h"

enum {
	BATCH_BYTES = 32 * 1024 * 1024, /* of all answers of a batch */
	STREAM_AFTER_MS = 3000, /* an answer that takes longer becomes an event stream, so that proxies see signs of life */
	BATCH_MAX = 8, /* all of them start in one turn of the loop */
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
		call_problem(c, 503, "server_memory", "the answers of the batch are larger than the server may hold", "Send the requests one by one.");
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
	if (x->body.len + message->len > BATCH_BYTES || buffer_append_char(&x->body, x->body.len ? ',' : '[') < 0 ||
		buffer_append(&x->body, message->data, message->len) < 0)
		x->lost = true;
	buffer_finish(message);
}

static void on_send(struct mcp_request *r, struct buffer *message, bool last, int status)
{
	struct exchange *x = r->target;
	if (!last) {
		if (!x->accepts_stream)
			return; /* the client reads JSON only: there is no way to tell progress */
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

static const struct mcp_sink http_sink = { .send = on_send, .cancelled = on_cancelled, .tick = on_tick };

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

/* ---- headers of the modern era -------------------------------------------------------------- */

/* `=?base64?…?=` around UTF-8, or the text itself. */
static bool header_equals(const char *header, const char *want)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(LIMIT_PATH_BYTES);
	size_t len = header ? strlen(header) : 0;
	if (!header || !want)
		return false;
	if (len < 11 || strncmp(header, "=?base64?", 9) || strcmp(header + len - 2, "?="))
		return text_eq(header, want);
	return text_base64_decode(&b, header + 9, len - 11) == 0 && b.len == strlen(want) && !memcmp(b.data, want, b.len);
}

/* The value that Mcp-Name must have; NULL when the method needs none. */
static const char *name_of(const char *method, const json_t *params)
{
	static const struct {
		const char *method, *member;
	} named[] = {
		{ "tools/call", "name" },
		{ "prompts/get", "name" },
		{ "resources/read", "uri" },
		{ "tasks/get", "taskId" },
		{ "tasks/cancel", "taskId" },
		{ "tasks/update", "taskId" },
	};
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		if (text_eq(named[i].method, method))
			return json_string_value(json_object_get(params, named[i].member));
	return NULL;
}

static bool headers_match(struct mcp_request *r, const struct call *c)
{
	const char *method = json_string_value(json_object_get(r->message, "method"));
	const char *version = json_string_value(json_object_get(r->meta, MCP_META "protocolVersion"));
	const char *name = name_of(method, r->params);
	const char *wrong = NULL;

	if (!header_equals(http_header(c->x, "MCP-Protocol-Version"), version))
		wrong = "the header MCP-Protocol-Version must equal _meta[\"" MCP_META "protocolVersion\"]";
	else if (!header_equals(http_header(c->x, "Mcp-Method"), method))
		wrong = "the header Mcp-Method must equal the method of the request";
	else if (name && !header_equals(http_header(c->x, "Mcp-Name"), name))
		wrong = "the header Mcp-Name must equal the name, uri or taskId of the request";
	if (wrong)
		mcp_fail(r, MCP_HEADER_MISMATCH, 400, wrong, NULL);
	return !wrong;
}

/* ---- messages ---------------------------------------------------------------------------------- */

static void answer_error(struct call *c, int status, const json_t *id, int code, const char *text)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	mcp_put_error(&w, id, code, text, NULL);
	call_respond(c, status, &w, &b);
}

static bool is_notification(const json_t *message)
{
	return !json_object_get(message, "id");
}

static void take_notification(struct mcp *home, struct mcp_client *client, const json_t *message)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	if (text_eq(method, "notifications/cancelled") && client)
		mcp_cancel_id(home, client, json_object_get(json_object_get(message, "params"), "requestId"));
}

/* What is wrong with a message as JSON-RPC; NULL: nothing. */
static const char *check_shape(const json_t *message)
{
	const json_t *id = json_object_get(message, "id");
	if (!json_is_object(message))
		return "a JSON-RPC message must be an object";
	if (!text_eq(json_string_value(json_object_get(message, "jsonrpc")), "2.0"))
		return "jsonrpc must be \"2.0\"";
	if (!json_is_string(json_object_get(message, "method")))
		return "method must be a string";
	if (id && !json_is_string(id) && !json_is_integer(id))
		return "id must be a string or an integer";
	return NULL;
}

/* One message of the exchange; takes a reference of its own. */
static void start_message(struct exchange *x, struct mcp_client *client, json_t *message)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	const char *wrong = check_shape(message);
	struct mcp_request *r;

	if (!wrong && is_notification(message)) {
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
		mcp_fail(r, MCP_INTERNAL, 503, "the server holds as much for its clients as it may: try again in a second", NULL);
		return;
	}
	if (!r->modern || headers_match(r, x->call))
		mcp_dispatch(r);
}

static void start_exchange(struct call *c, struct mcp_client *client, json_t *message)
{
	struct exchange *x = calloc(1, sizeof(*x));
	if (!x) {
		call_problem(c, 503, "no_memory", "the server is out of memory", "Try again later.");
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

/* ---- the legacy era's client ----------------------------------------------------------------------- */

static bool is_method(const json_t *message, const char *name)
{
	return text_eq(json_string_value(json_object_get(message, "method")), name);
}

/* The client of the request, made by `initialize`. False: answered. */
static bool find_client(struct call *c, const json_t *message, struct mcp_client **ret)
{
	struct mcp *home = mcp_home(c->api);
	const char *id = http_header(c->x, "Mcp-Session-Id");
	const json_t *meta = json_object_get(json_object_get(message, "params"), "_meta");
	bool modern = json_object_get(meta, MCP_META "protocolVersion") != NULL;

	*ret = id ? mcp_client_find(home, c->owner, id) : NULL;
	if (modern && *ret && !(*ret)->lease)
		*ret = NULL; /* the modern era has no handshake; but `glovebox mcp` names its lease in both eras */
	if (id && !*ret && !modern) {
		answer_error(c, 404, json_object_get(message, "id"), MCP_INVALID_REQUEST,
			"unknown Mcp-Session-Id: send initialize again");
		return false;
	}
	if (is_method(message, "initialize") && !*ret && (*ret = mcp_client_create(home, c->owner)))
		http_add_header(c->x, "Mcp-Session-Id", (*ret)->id);
	return true;
}

static bool known_version(const char *version)
{
	static const char *const known[] = { MCP_MODERN_VERSION, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (text_eq(version, known[i]))
			return true;
	return !version;
}

static void handle_message(struct call *c, json_t *message)
{
	const json_t *meta = json_object_get(json_object_get(message, "params"), "_meta");
	bool modern = json_object_get(meta, MCP_META "protocolVersion") != NULL;
	struct mcp_client *client;

	if (json_is_array(message) && (!json_array_size(message) || json_array_size(message) > BATCH_MAX)) {
		answer_error(c, 400, NULL, MCP_INVALID_REQUEST, "a batch has 1 to 8 messages");
		return;
	}
	if (!modern && !known_version(http_header(c->x, "MCP-Protocol-Version"))) {
		answer_error(c, 400, json_object_get(message, "id"), MCP_INVALID_REQUEST,
			"unknown MCP-Protocol-Version; this server knows " MCP_MODERN_VERSION ", 2025-11-25, 2025-06-18 and 2025-03-26");
		return;
	}
	if (find_client(c, message, &client))
		start_exchange(c, client, message);
}

/* ---- routes --------------------------------------------------------------------------------------- */

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
		answer_error(c, 400, NULL, MCP_PARSE_ERROR, e.text);
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
	call_problem(c, 405, "method_not_allowed", "this MCP server has no stream of its own to listen to",
		"POST JSON-RPC messages here; OpenEnv's clients connect a WebSocket.");
}

void handle_mcp_delete(struct call *c)
{
	const char *id = http_header(c->x, "Mcp-Session-Id");
	struct mcp_client *client = id ? mcp_client_find(mcp_home(c->api), c->owner, id) : NULL;
	if (!id) {
		http_add_header(c->x, "Allow", "POST");
		call_problem(c, 405, "method_not_allowed", "DELETE needs the header Mcp-Session-Id", "Send the id that initialize answered with.");
		return;
	}
	if (!client) {
		call_problem(c, 404, "client_not_found", "unknown Mcp-Session-Id", "Nothing is left to do: the client is gone.");
		return;
	}
	if (!client->stream)
		mcp_client_destroy(client);
	call_respond_as(c, 204, NULL, NULL);
}
