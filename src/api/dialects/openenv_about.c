/* What OpenEnv's servers say about themselves: metadata, schemas, and that coding_env has no MCP tools. */
#include <stdio.h>
#include <string.h>

#include "api/dialects/openenv.h"
#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

enum {
	RPC_PARSE = -32700,
	RPC_REQUEST = -32600,
	RPC_METHOD = -32601,
	RPC_PARAMS = -32602,
	RPC_INTERNAL = -32603
};

#define SCHEMA_METADATA(what)                                                                             \
	"\"metadata\":{\"additionalProperties\":true,\"description\":\"Additional metadata for the " what \
	"\",\"title\":\"Metadata\",\"type\":\"object\"}"

static const char metadata[] = "{\"name\":\"PythonCodeActEnv\",\"description\":\"PythonCodeActEnv "
			       "environment\",\"readme_content\":null,"
			       "\"version\":\"1.0.0\",\"author\":null,\"documentation_url\":null}";

/* As pydantic writes them, with the two members that only we take. */
static const char schema[] =
	"{\"action\":{\"additionalProperties\":false,"
	"\"description\":\"Represents a single code execution request.\","
	"\"properties\":{" SCHEMA_METADATA(
		"action") ","
			  "\"code\":{\"title\":\"Code\",\"type\":\"string\"},"
			  "\"capture_screenshot\":{\"default\":false,\"description\":\"Also show what is on "
			  "the session's display\","
			  "\"title\":\"Capture Screenshot\",\"type\":\"boolean\"},"
			  "\"timeout_s\":{\"anyOf\":[{\"exclusiveMinimum\":0,\"type\":\"number\"},{\"type\":"
			  "\"null\"}],\"default\":null,"
			  "\"description\":\"Wall time of this step\",\"title\":\"Timeout S\"}},"
			  "\"required\":[\"code\"],\"title\":\"CodeAction\",\"type\":\"object\"},"
			  "\"observation\":{\"additionalProperties\":false,"
			  "\"description\":\"Result of executing code in the environment.\","
			  "\"properties\":{\"done\":{\"default\":false,\"description\":\"Whether the episode "
			  "has terminated\","
			  "\"title\":\"Done\",\"type\":\"boolean\"},"
			  "\"reward\":{\"anyOf\":[{\"type\":\"boolean\"},{\"type\":\"integer\"},{\"type\":"
			  "\"number\"},{\"type\":\"null\"}],"
			  "\"default\":null,\"description\":\"Reward signal from the last "
			  "action\",\"title\":\"Reward\"}," SCHEMA_METADATA(
				  "observation") ","
						 "\"stdout\":{\"default\":\"\",\"title\":\"Stdout\",\"type\":"
						 "\"string\"},"
						 "\"stderr\":{\"default\":\"\",\"title\":\"Stderr\",\"type\":"
						 "\"string\"},"
						 "\"exit_code\":{\"default\":0,\"title\":\"Exit "
						 "Code\",\"type\":\"integer\"},"
						 "\"screenshot\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":"
						 "\"null\"}],\"default\":null,"
						 "\"description\":\"A PNG in base64, when it was asked "
						 "for\",\"title\":\"Screenshot\"}},"
						 "\"title\":\"CodeObservation\",\"type\":\"object\"},"
						 "\"state\":{\"additionalProperties\":true,"
						 "\"description\":\"Base class for environment state.\\n\\n"
						 "Represents internal environment state, separate from "
						 "observations.\","
						 "\"properties\":{\"episode_id\":{\"anyOf\":[{\"type\":"
						 "\"string\"},{\"type\":\"null\"}],\"default\":null,"
						 "\"description\":\"Unique identifier for the current "
						 "episode\",\"title\":\"Episode Id\"},"
						 "\"step_count\":{\"default\":0,\"description\":\"Number of "
						 "steps taken in the current episode\",\"minimum\":0,"
						 "\"title\":\"Step "
						 "Count\",\"type\":\"integer\"}},\"title\":\"State\","
						 "\"type\":\"object\"}}";

void handle_openenv_metadata(struct call *c)
{
	call_respond_static(c, 200, "application/json", metadata, sizeof(metadata) - 1);
}

void handle_openenv_schema(struct call *c)
{
	call_respond_static(c, 200, "application/json", schema, sizeof(schema) - 1);
}

void handle_openenv_environments(struct call *c)
{
	static const char names[] = "[\"PythonCodeActEnv\"]";
	call_respond_static(c, 200, "application/json", names, sizeof(names) - 1);
}

/* ---- JSON-RPC ------------------------------------------------------------------ */

static void put_rpc_error(struct json_writer *w, json_t *request, int code, const char *message)
{
	json_t *id = json_object_get(request, "id");
	json_open_object(w);
	json_field_cstr(w, "jsonrpc", "2.0");
	if (json_is_string(id))
		json_field_text(w, "id", json_string_value(id), json_string_length(id));
	else if (json_is_integer(id))
		json_field_int(w, "id", json_integer_value(id));
	else
		json_field_null(w, "id");
	json_key(w, "error");
	json_open_object(w);
	json_field_int(w, "code", code);
	json_field_cstr(w, "message", message);
	json_field_null(w, "data");
	json_close(w);
	json_close(w);
}

static void put_method_answer(struct json_writer *w, json_t *request, const char *method)
{
	char text[160];
	json_t *params = json_object_get(request, "params");
	if (params && !json_is_object(params)) {
		put_rpc_error(w, request, RPC_PARAMS, "Params must be an object");
	} else if (text_eq(method, "tools/call") && !json_is_string(json_object_get(params, "name"))) {
		put_rpc_error(w, request, RPC_PARAMS, "Missing 'name' in params");
	} else if (text_eq(method, "tools/list") || text_eq(method, "tools/call")) {
		put_rpc_error(w, request, RPC_INTERNAL, "Environment does not support MCP");
	} else {
		snprintf(text, sizeof(text), "Method not found: %.100s", method);
		put_rpc_error(w, request, RPC_METHOD, text);
	}
}

void openenv_put_rpc(struct json_writer *w, json_t *request)
{
	const char *method = json_string_value(json_object_get(request, "method"));
	json_t *version = json_object_get(request, "jsonrpc");
	if (!request)
		put_rpc_error(w, NULL, RPC_PARSE, "Parse error");
	else if (!json_is_object(request))
		put_rpc_error(w, NULL, RPC_REQUEST, "Invalid request: a JSON-RPC request is an object");
	else if (!method)
		put_rpc_error(w, NULL, RPC_REQUEST,
			"Invalid request: 1 validation error for JsonRpcRequest\nmethod\n  Field required "
			"[type=missing]");
	else if (version && !text_eq(json_string_value(version), "2.0"))
		put_rpc_error(w, NULL, RPC_REQUEST,
			"Invalid request: 1 validation error for JsonRpcRequest\njsonrpc\n  Input should be "
			"'2.0' "
			"[type=literal_error]");
	else
		put_method_answer(w, request, method);
}

void handle_openenv_mcp(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	_cleanup_json_ json_t *request = NULL;
	struct json_writer w;
	size_t len;
	const char *body = http_body(c->x, &len);
	json_read(body, len, NULL, &request);
	json_writer_init(&w, &b);
	openenv_put_rpc(&w, request);
	call_respond(c, 200, &w, &b);
}

/* ---- JSON-RPC over a WebSocket -------------------------------------------------- */

static void on_rpc(struct http_ws *ws, const char *text, size_t len, void *userdata)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	_cleanup_json_ json_t *request = NULL;
	struct json_writer w;
	json_read(text, len, NULL, &request);
	json_writer_init(&w, &b);
	openenv_put_rpc(&w, request);
	/* Answers are small and one for one: who does not read them is closed by the server's own limits. */
	if (json_writer_end(&w) >= 0)
		http_ws_send(ws, b.data, b.len);
}

static void on_rpc_closed(struct http_ws *ws, unsigned code, void *userdata)
{
}

void handle_openenv_mcp_socket(struct call *c)
{
	static const struct http_ws_handler handler = { .on_message = on_rpc, .on_closed = on_rpc_closed };
	if (!http_wants_websocket(c->x)) {
		http_add_header(c->x, "Upgrade", "websocket");
		call_problem(c, 426, "upgrade_required", "GET /mcp speaks WebSocket only",
			"POST the JSON-RPC request instead.");
		return;
	}
	struct http_exchange *x = c->x;
	call_release(c);
	http_upgrade(x, NULL, &handler, NULL);
}
