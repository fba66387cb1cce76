/*
 * JSON-RPC of OpenEnv's /mcp: this environment has no MCP tools, as coding_env has none, but its
 * sessions can be made and ended there. A session made so is an environment with a name:
 * /ws?session_id=NAME and X-Session-Id find it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/node_id.h"
#include "base/text.h"
#include "dialects/dialects.h"
#include "dialects/openenv/openenv.h"
#include "json/json_read.h"
#include "json/json_write.h"

enum {
	RPC_PARSE = -32700,
	RPC_REQUEST = -32600,
	RPC_METHOD = -32601,
	RPC_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_SERVER = -32000,
};

/* ---- answers ------------------------------------------------------------------ */

static void put_id(struct json_writer *w, json_t *request)
{
	json_t *id = json_object_get(request, "id");
	json_field_cstr(w, "jsonrpc", "2.0");
	if (json_is_string(id))
		json_field_text(w, "id", json_string_value(id), json_string_length(id));
	else if (json_is_integer(id))
		json_field_int(w, "id", json_integer_value(id));
	else
		json_field_null(w, "id");
}

static void begin_error(struct json_writer *w, json_t *request, int code, const char *message)
{
	json_open_object(w);
	put_id(w, request);
	json_key(w, "error");
	json_open_object(w);
	json_field_int(w, "code", code);
	json_field_cstr(w, "message", message);
}

static void put_error(struct json_writer *w, json_t *request, int code, const char *message)
{
	begin_error(w, request, code, message);
	json_field_null(w, "data");
	json_close(w);
	json_close(w);
}

static void put_session(struct json_writer *w, json_t *request, const char *name, bool closed)
{
	json_open_object(w);
	put_id(w, request);
	json_key(w, "result");
	json_open_object(w);
	json_field_cstr(w, "session_id", name);
	if (closed)
		json_field_bool(w, "closed", true);
	json_close(w);
	json_close(w);
}

static void put_unknown(struct json_writer *w, json_t *request, const char *name)
{
	char text[ENV_NAME_MAX + 32];
	snprintf(text, sizeof(text), "Unknown session_id: %.*s", ENV_NAME_MAX, name);
	put_error(w, request, RPC_PARAMS, text);
}

/* What kept a session from being made. */
static void put_failure(struct json_writer *w, const struct rpc *rpc, const struct error *e)
{
	const struct sessions_stats *stats = sessions_stats(rpc->home->api->sessions);
	char text[128];

	if (!openenv_is_full(e)) {
		put_error(w, rpc->request, RPC_SERVER, e->text);
		return;
	}

	snprintf(text, sizeof(text),
		"Server at capacity: %llu/%llu sessions active. Cannot accept new connections.",
		(unsigned long long)stats->live, (unsigned long long)stats->limit);
	begin_error(w, rpc->request, RPC_SERVER, text);
	json_key(w, "data");
	json_open_object(w);
	json_field_uint(w, "active_sessions", stats->live);
	json_field_uint(w, "max_sessions", stats->limit);
	json_close(w);
	json_close(w);
	json_close(w);
}

/* ---- sessions ------------------------------------------------------------------- */

static const char *name_of(const struct env *e)
{
	return *e->name ? e->name : e->session;
}

static void create(struct json_writer *w, const struct rpc *rpc, json_t *params)
{
	struct error err = { 0 };
	char name[37]; /* a UUID */
	(void)params;
	if (rpc->env) { /* a WebSocket has its own already */
		put_session(w, rpc->request, name_of(rpc->env), false);
		return;
	}

	node_make_uuid(name);
	struct env *e = env_create(rpc->home, rpc->owner, name);
	int r = e ? env_open(e, &err) : error_set(&err, -ENOMEM, "out of memory");
	if (r < 0) {
		env_destroy(e, "it could not be made");
		put_failure(w, rpc, &err);
		return;
	}

	put_session(w, rpc->request, name, false);
}

static void close_session(struct json_writer *w, const struct rpc *rpc, json_t *params)
{
	const char *name = json_string_value(json_object_get(params, "session_id"));
	if (!name || !*name) {
		put_error(w, rpc->request, RPC_PARAMS, "Invalid params - 'session_id' is required");
		return;
	}

	if (rpc->env && text_eq(name, name_of(rpc->env))) {
		put_error(w, rpc->request, RPC_REQUEST,
			"Cannot close active WebSocket-managed session via MCP method");
		return;
	}

	struct env *e = env_find(rpc->home, rpc->owner, name);
	if (!e) {
		put_unknown(w, rpc->request, name);
		return;
	}

	put_session(w, rpc->request, name, true);
	env_destroy(e, "it was closed");
}

/* ---- tools: there are none -------------------------------------------------------- */

static void no_tools(struct json_writer *w, const struct rpc *rpc, json_t *params)
{
	const char *name = json_string_value(json_object_get(params, "session_id"));
	if (name && !rpc->env && !env_find(rpc->home, rpc->owner, name))
		put_unknown(w, rpc->request, name);
	else
		put_error(w, rpc->request, RPC_INTERNAL, "Environment does not support MCP");
}

static void call_tool(struct json_writer *w, const struct rpc *rpc, json_t *params)
{
	if (!json_is_string(json_object_get(params, "name")))
		put_error(w, rpc->request, RPC_PARAMS, "Missing 'name' in params");
	else
		no_tools(w, rpc, params);
}

static const struct {
	const char *method;
	void (*answer)(struct json_writer *w, const struct rpc *rpc, json_t *params);
} methods[] = {
	{ "tools/list", no_tools },
	{ "tools/call", call_tool },
	{ "openenv/session/create", create },
	{ "openenv/session/close", close_session },
};

static void put_method_answer(struct json_writer *w, const struct rpc *rpc, const char *method)
{
	char text[160];
	json_t *params = json_object_get(rpc->request, "params");

	if (params && !json_is_object(params)) {
		put_error(w, rpc->request, RPC_PARAMS, "Params must be an object");
		return;
	}

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (text_eq(methods[i].method, method)) {
			methods[i].answer(w, rpc, params);
			return;
		}
	}

	snprintf(text, sizeof(text), "Method not found: %.100s", method);
	put_error(w, rpc->request, RPC_METHOD, text);
}

void openenv_put_rpc(struct json_writer *w, const struct rpc *rpc)
{
	const char *method = json_string_value(json_object_get(rpc->request, "method"));
	json_t *version = json_object_get(rpc->request, "jsonrpc");

	if (!rpc->request)
		put_error(w, NULL, RPC_PARSE, "Parse error");
	else if (!json_is_object(rpc->request))
		put_error(w, NULL, RPC_REQUEST, "Invalid request: a JSON-RPC request is an object");
	else if (!method)
		put_error(w, NULL, RPC_REQUEST,
			"Invalid request: 1 validation error for JsonRpcRequest\nmethod\n  Field required "
			"[type=missing]");
	else if (version && !text_eq(json_string_value(version), "2.0"))
		put_error(w, NULL, RPC_REQUEST,
			"Invalid request: 1 validation error for JsonRpcRequest\njsonrpc\n  Input should be "
			"'2.0' "
			"[type=literal_error]");
	else
		put_method_answer(w, rpc, method);
}

/* ---- over HTTP -------------------------------------------------------------------- */

void handle_openenv_mcp(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	_cleanup_json_ json_t *request = NULL;
	struct json_writer w;
	size_t len;
	const char *body = http_body(c->x, &len);
	json_read(body, len, NULL, &request);
	json_writer_init(&w, &b);
	openenv_put_rpc(&w,
		&(struct rpc){ dialect_state(c->api, &dialect_openenv), c->owner, NULL, request });
	call_respond(c, 200, &w, &b);
}

/* ---- over a WebSocket -------------------------------------------------------------- */

struct rpc_socket {
	struct openenv *home;
	uint64_t owner;
};

static void on_rpc(struct http_ws *ws, const char *text, size_t len, void *userdata)
{
	const struct rpc_socket *s = userdata;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	_cleanup_json_ json_t *request = NULL;
	struct json_writer w;
	json_read(text, len, NULL, &request);
	json_writer_init(&w, &b);
	openenv_put_rpc(&w, &(struct rpc){ s->home, s->owner, NULL, request });
	/*
	 * Answers are small and one for one: who does not read them is closed by the server's own
	 * limits.
	 */
	if (json_writer_end(&w) >= 0)
		http_ws_send(ws, b.data, b.len);
}

static void on_rpc_closed(struct http_ws *ws, unsigned code, void *userdata)
{
	free(userdata);
}

void handle_openenv_mcp_socket(struct call *c)
{
	static const struct http_ws_handler handler = { .on_message = on_rpc,
		.on_closed = on_rpc_closed };

	if (!http_wants_websocket(c->x)) {
		http_add_header(c->x, "Upgrade", "websocket");
		call_problem(c, 426, "upgrade_required", "GET /mcp supports WebSocket only",
			"POST the JSON-RPC request instead.");
		return;
	}

	struct rpc_socket *s = calloc(1, sizeof(*s));
	if (!s) {
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}

	s->home = dialect_state(c->api, &dialect_openenv);
	s->owner = c->owner;
	struct http_exchange *x = c->x;
	call_release(c);
	if (!http_upgrade(x, NULL, &handler, s))
		free(s);
}
