/* The addresses of the OpenEnv dialect, as rows for the one table in routes.c. */
#pragma once

#include "dialects/mcp/mcp_routes.h"
#include "api/routes.h"

void handle_openenv_reset(struct call *c);
void handle_openenv_step(struct call *c);
void handle_openenv_state(struct call *c);
void handle_openenv_close(struct call *c);
void handle_openenv_metadata(struct call *c);
void handle_openenv_schema(struct call *c);
void handle_openenv_environments(struct call *c);
void handle_openenv_mcp(struct call *c);
void handle_openenv_socket(struct call *c);
void handle_openenv_mcp_socket(struct call *c);
void handle_openenv_web_page(struct call *c);
void handle_openenv_web_address(struct call *c);
void handle_openenv_web_socket(struct call *c);

#define OPENENV_ROUTE(verb, path, more, handler, id, title, text, example)                                         \
	{ HTTP_METHOD_##verb, path, ROUTE_ANY_QUERY | (more), handler, NULL, id, title, text, NULL, NULL, 200,     \
		"application/json", NULL, example }

/* clang-format off */
#define OPENENV_ROUTES                                                                                                  \
	OPENENV_ROUTE(POST, "/reset", 0, handle_openenv_reset, "openenvReset", "OpenEnv: start an episode",              \
		"{seed?, episode_id?} and any fields of POST /v1/sessions. Keeps nothing, as OpenEnv does, unless the "  \
		"request names an environment: header X-Session-Id, cookie openenv_session, or ?session=NAME "           \
		"(`new` makes a name).",                                                                                 \
		"curl -s -X POST $URL/reset"),                                                                           \
	OPENENV_ROUTE(POST, "/step", 0, handle_openenv_step, "openenvStep", "OpenEnv: run an action",                    \
		"{action: {code, capture_screenshot?, render_timeout?, timeout_s?, metadata?}, timeout_s?, request_id?, extras?}. Answers " \
		"{observation: {stdout, stderr, exit_code}, reward, done}; with extras also `info`, the whole observation.", \
		"curl -s $URL/step -H 'Content-Type: application/json' -d '{\"action\":{\"code\":\"print(6*7)\"}}'"),     \
	OPENENV_ROUTE(GET, "/state", 0, handle_openenv_state, "openenvState", "OpenEnv: episode and steps",              \
		"Of the environment that the request names; of a new one otherwise.", "curl -s $URL/state"),             \
	OPENENV_ROUTE(POST, "/close", 0, handle_openenv_close, "openenvClose", "OpenEnv: end a named environment", NULL, \
		"curl -s -X POST $URL/close -H 'X-Session-Id: demo'"),                                                   \
	OPENENV_ROUTE(GET, "/metadata", ROUTE_PUBLIC, handle_openenv_metadata, "openenvMetadata",                        \
		"OpenEnv: name and version", NULL, "curl -s $URL/metadata"),                                             \
	OPENENV_ROUTE(GET, "/schema", ROUTE_PUBLIC, handle_openenv_schema, "openenvSchema",                              \
		"OpenEnv: schemas of action, observation and state", NULL, "curl -s $URL/schema"),                       \
	OPENENV_ROUTE(GET, "/list_environments", ROUTE_PUBLIC, handle_openenv_environments, "openenvEnvironments",       \
		"OpenEnv: which environments are served", NULL, "curl -s $URL/list_environments"),                       \
	OPENENV_ROUTE(POST, "/mcp", ROUTE_ANY_TYPE, handle_mcp, "mcp", "MCP, and OpenEnv's JSON-RPC",               \
		"One JSON-RPC message of MCP (docs/mcp.md). Without any header of MCP: openenv/session/create and openenv/session/close.",                                   \
		"curl -s $URL/mcp -H 'Content-Type: application/json' -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}'"), \
	{ HTTP_METHOD_GET, "/mcp", ROUTE_WEBSOCKET | ROUTE_ANY_QUERY, handle_mcp_get, NULL, "openenvMcpSocket", \
		"OpenEnv: JSON-RPC over a WebSocket", "The same answers as POST /mcp.", NULL, NULL, 101, NULL, NULL, NULL }, \
	MCP_DELETE_ROUTE, \
	{ HTTP_METHOD_GET, "/redoc", ROUTE_PUBLIC, handle_docs, NULL, "openenvRedoc", "OpenEnv: this page by another name",  \
		NULL, NULL, NULL, 200, "text/html; charset=utf-8", NULL, NULL },                                         \
	{ HTTP_METHOD_GET, "/ws", ROUTE_WEBSOCKET | ROUTE_ANY_QUERY, handle_openenv_socket, NULL, "openenvSocket",       \
		"OpenEnv: an environment over a WebSocket",                                                              \
		"Messages {type: reset | step | state | close | mcp, data}; the environment ends with the connection. "  \
		"?session=NAME gives it a name to come back to after the connection broke.",                             \
		NULL, NULL, 101, NULL, NULL, NULL },                                                                     \
	OPENENV_ROUTE(GET, "/web/metadata", ROUTE_PUBLIC, handle_openenv_metadata, "openenvWebMetadata",                 \
		"OpenEnv: metadata for its web interface", NULL, NULL),                                                  \
	OPENENV_ROUTE(POST, "/web/reset", 0, handle_openenv_reset, "openenvWebReset",                                    \
		"OpenEnv: reset the environment of the web interface", NULL, NULL),                                      \
	OPENENV_ROUTE(POST, "/web/step", 0, handle_openenv_step, "openenvWebStep",                                       \
		"OpenEnv: a step in the environment of the web interface", NULL, NULL),                                  \
	OPENENV_ROUTE(GET, "/web/state", 0, handle_openenv_state, "openenvWebState",                                     \
		"OpenEnv: state of the environment of the web interface", NULL, NULL),                                   \
	{ HTTP_METHOD_GET, "/web/", ROUTE_PUBLIC | ROUTE_ANY_QUERY, handle_openenv_web_page, NULL, "openenvWeb",             \
		"OpenEnv: a page to reset, step and watch an environment", NULL, NULL, NULL, 200, "text/html; charset=utf-8", \
		NULL, NULL },                                                                                            \
	{ HTTP_METHOD_GET, "/web", ROUTE_PUBLIC | ROUTE_ANY_QUERY, handle_openenv_web_address, NULL, "openenvWebAddress",    \
		"OpenEnv: to /web/", NULL, NULL, NULL, 307, NULL, NULL, NULL },                                          \
	{ HTTP_METHOD_GET, "/", ROUTE_PUBLIC | ROUTE_ANY_QUERY, handle_openenv_web_address, NULL, "openenvRoot",             \
		"OpenEnv: to /web/", NULL, NULL, NULL, 307, NULL, NULL, NULL },                                          \
	{ HTTP_METHOD_GET, "/ws/ui", ROUTE_WEBSOCKET | ROUTE_ANY_QUERY | ROUTE_QUERY_TOKEN, handle_openenv_web_socket, NULL, \
		"openenvWebSocket", "OpenEnv: watch the environment of the web interface",                               \
		"{type: state_update, episode_state: {episode_id, step_count, current_observation, action_logs, is_reset}}, at once "  \
		"and whenever it changes.", NULL, NULL, 101, NULL, NULL, NULL }
/* clang-format on */
