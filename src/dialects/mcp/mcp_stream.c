/*
 * MCP of revision 2024-11-05: GET /sse is an event stream on which answers come, POST /messages has
 * the requests. Served for clients that know nothing else: vLLM's tool server, which wants one tool
 * named `python` in a session of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/mcp/mcp.h"
#include "dialects/mcp/mcp_routes.h"
#include "json/json_read.h"

static int send_piece(void *target, const char *data, size_t len)
{
	return http_stream_write(target, data, len);
}

static void send_event(struct mcp_client *c, const char *event, const char *data, size_t len)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	int r = buffer_printf(&b, "event: %s\ndata: ", event);
	if (!r)
		r = buffer_append(&b, data, len);
	if (!r)
		r = buffer_append_str(&b, "\n\n");
	if (!r)
		outbox_send(&c->out, &b);
}

static void on_send(struct mcp_request *r, struct buffer *message, bool last, int status)
{
	(void)last, (void)status;
	if (r->client)
		send_event(r->client, "message", message->data, message->len);
	buffer_finish(message);
}

static const struct mcp_sink stream_sink = { .send = on_send };

/* ---- the stream --------------------------------------------------------------------------- */

static void on_gone(struct call *call)
{
	struct mcp_client *c = call->work;
	if (*c->session)
		api_end_later(call->api, c->session);
	call->work = NULL;
	call->ops = NULL;
	mcp_client_destroy(c);
}

static void on_drained(struct call *call)
{
	struct mcp_client *c = call->work;
	outbox_drained(&c->out);
}

static const struct call_ops stream_ops = { .on_gone = on_gone, .on_drained = on_drained };

void handle_mcp_sse(struct call *call)
{
	char address[64];
	struct error e = { 0 };
	if (api_check_open(call->api, &e) < 0) {
		call_error(call, &e);
		return;
	}

	struct mcp_client *c = mcp_client_create(mcp_home(call->api), call->owner);
	if (!c) {
		call_problem(call, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}
	c->stream = call;
	c->python_tool = true;
	outbox_init(&c->out, send_piece, call->x);
	call->ops = &stream_ops;
	call->work = c;
	http_sse_begin(call->x);
	int n = snprintf(address, sizeof(address), "/messages?sessionId=%s", c->id);
	send_event(c, "endpoint", address, (size_t)n);
}

/* ---- messages ----------------------------------------------------------------------- */

static void send_error(struct mcp_client *c, const json_t *message, const char *text)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	mcp_put_error(&w, json_object_get(message, "id"), MCP_INVALID_REQUEST, text, NULL);
	if (json_writer_end(&w) == 0)
		send_event(c, "message", b.data, b.len);
}

static void take_message(struct mcp_client *c, json_t *message, size_t len)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	const char *wrong = mcp_check_shape(message);
	struct mcp_request *r;

	if (wrong) {
		send_error(c, message, wrong);
		return;
	}

	if (mcp_is_notification(message)) {
		if (text_eq(method, "notifications/cancelled"))
			mcp_cancel_id(c->home, c,
				json_object_get(json_object_get(message, "params"), "requestId"));
		return;
	}

	r = mcp_request_create(c->home, json_incref(message), &stream_sink, c);
	if (!r)
		return;
	r->modern = false;
	r->client = c;
	r->owner = c->owner;
	if (hold_set(&r->held, len) < 0)
		mcp_fail(r, MCP_INTERNAL, 503,
			"the server has reached its limit on memory held for clients: try again in a second",
			NULL);
	else
		mcp_dispatch(r);
}

void handle_mcp_messages(struct call *call)
{
	_cleanup_json_ json_t *message = NULL;
	char id[MCP_CLIENT_ID + 1] = "";
	struct error e = { 0 };
	size_t len;
	struct mcp_client *c = NULL;

	if (http_query_param(call->x, "sessionId", id, sizeof(id)) == 1)
		c = mcp_client_find(mcp_home(call->api), call->owner, id);
	if (!c || !c->stream || !c->python_tool) {
		call_problem(call, 404, "client_not_found", "no event stream has this sessionId",
			"Open GET /sse first and use the address it names.");
		return;
	}
	const char *body = http_body(call->x, &len);
	if (json_read(body, len, &e, &message) < 0) {
		mcp_answer_error(call, 400, NULL, MCP_PARSE_ERROR, e.text);
		return;
	}
	if (!json_is_object(message)) {
		mcp_answer_error(call, 400, NULL, MCP_INVALID_REQUEST, mcp_check_shape(message));
		return;
	}
	static const char accepted[] = "Accepted";
	struct mcp_client *client = c;
	call_respond_static(call, 202, "text/plain", accepted, sizeof(accepted) - 1);
	take_message(client, message, len);
}
