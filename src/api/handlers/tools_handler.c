/* Tools over HTTP: giving them, and the long poll for clients that have no WebSocket. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/schema/requests.h"
#include "base/text.h"
#include "json/json_write.h"

enum { WAIT_DEFAULT_S = 30 };

/* ---- what WebSockets share --------------------------------------------------- */

void answer_put_call(struct json_writer *w, const struct tool_call *call)
{
	json_field_uint(w, "call", call->id);
	json_field_cstr(w, "tool", call->tool);
	json_field_uint(w, "cell", call->cell);
	json_field_raw(w, "arguments", call->arguments, call->arguments_len);
}

void answer_put_tools(struct json_writer *w, const struct session *s)
{
	const json_t *definition;
	uint64_t calls;

	json_key(w, "tools");
	json_open_array(w);
	for (size_t i = 0; (definition = session_tool(s, i, &calls)); i++) {
		char *text = json_dumps(definition, JSON_COMPACT);
		json_open_object(w);
		json_field_cstr(w, "name", json_string_value(json_object_get(definition, "name")));
		json_field_uint(w, "calls", calls);
		if (text)
			json_field_raw(w, "definition", text, strlen(text));
		json_close(w);
		free(text);
	}

	json_close(w);
}

int api_answer_call(struct session *s, const void *client, uint64_t call,
	const struct tool_answer *a, struct error *e)
{
	if (a->error.type)
		return session_fail_call(s, client, call, a->error.type,
			a->error.message.data ? a->error.message.data : "", e);
	json_t *value = a->value ? json_incref(a->value) : json_null();
	int r = session_answer_call(s, client, call, value, e);
	json_decref(value);
	return r;
}

/* ---- giving them ------------------------------------------------------------- */

static void respond_tools(struct call *c, const struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	answer_put_tools(&w, s);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void handle_tools_put(struct call *c)
{
	struct error e = { 0 };
	struct tools_request request = { 0 };
	struct session *s;
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = call_session(c, &e, &s);

	if (!r)
		r = fields_decode_text(&tools_fields, body, len, &request, &e);
	if (!r)
		r = session_set_tools(s, request.tools, NULL, NULL, &e);
	fields_finish(&tools_fields, &request);
	if (r < 0)
		call_error(c, &e);
	else
		respond_tools(c, s);
}

void handle_tools_get(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	if (call_session(c, &e, &s) < 0)
		call_error(c, &e);
	else
		respond_tools(c, s);
}

void handle_tool_answer(struct call *c)
{
	struct error e = { 0 };
	struct tool_answer answer = { 0 };
	struct session *s;
	uint64_t id;
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = call_session(c, &e, &s);

	if (!r)
		r = fields_decode_text(&tool_answer_fields, body, len, &answer, &e);
	if (!r && text_parse_u64(c->path, 1, UINT64_MAX, &id) < 0) {
		r = error_set(&e, -ENOENT, "there is no call %.40s", c->path);
		error_slug(&e, "call_not_found");
	}

	if (!r)
		r = api_answer_call(s, NULL, id, &answer, &e);
	fields_finish(&tool_answer_fields, &answer);
	if (r < 0)
		call_error(c, &e);
	else
		call_respond_as(c, 204, NULL, NULL);
}

/* ---- fetching calls ---------------------------------------------------------- */

/* A request that waits. Its timer is closed asynchronously and takes the memory along. */
struct poller {
	struct tool_waiter waiter;
	struct call *call;
	uv_timer_t timer;
};

static void poller_freed(uv_handle_t *h)
{
	free(h->data);
}

/* The call goes on without it. */
static struct call *poller_leave(struct poller *p)
{
	struct call *c = p->call;
	session_stop_waiting(&p->waiter);
	uv_close((uv_handle_t *)&p->timer, poller_freed);
	c->ops = NULL;
	c->work = NULL;
	return c;
}

static void respond_calls(struct call *c, struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct tool_call call;

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "calls");
	json_open_array(&w);
	while (s && session_next_call(s, &call) == 1) {
		json_open_object(&w);
		answer_put_call(&w, &call);
		json_close(&w);
	}

	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static void on_calls(struct tool_waiter *waiter, struct session *s)
{
	struct poller *p = (struct poller *)waiter; /* its first member */
	struct call *c = poller_leave(p);
	if (s)
		respond_calls(c, s);
	else
		call_problem(c, 410, "session_gone", "the session ended while you waited for calls",
			"Make a new session.");
}

static void on_timeout(uv_timer_t *timer)
{
	struct poller *p = timer->data;
	respond_calls(poller_leave(p), NULL);
}

static void on_gone(struct call *c)
{
	poller_leave(c->work);
}

static const struct call_ops poller_ops = { .on_gone = on_gone };

static int wait_for_calls(struct call *c, struct session *s, double wait_s, struct error *e)
{
	struct poller *p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(e, -ENOMEM, "out of memory");
	p->waiter.on_calls = on_calls;
	p->call = c;
	int r = session_wait_calls(s, &p->waiter, e);
	if (r < 0) {
		free(p);
		return r;
	}

	uv_timer_init(c->api->timer.loop, &p->timer);
	p->timer.data = p;
	uv_timer_start(&p->timer, on_timeout, (uint64_t)(wait_s * 1e3), 0);
	c->ops = &poller_ops;
	c->work = p;
	return 0;
}

void handle_tool_calls(struct call *c)
{
	struct error e = { 0 };
	struct calls_query q = { .wait_s = WAIT_DEFAULT_S };
	struct session *s;
	int r = fields_decode_query(&calls_query_fields, http_query(c->x), &q, &e);

	if (!r)
		r = call_session(c, &e, &s);
	if (!r && (session_has_calls(s) || q.wait_s <= 0)) {
		respond_calls(c, s);
		return;
	}

	if (!r)
		r = api_check_open(c->api, &e);
	if (!r)
		r = wait_for_calls(c, s, q.wait_s, &e);
	if (r < 0)
		call_error(c, &e);
}
