/* The addresses of MCP, as rows for the one table in routes.c. POST and GET /mcp are shared with OpenEnv's JSON-RPC. */
#pragma once

#include "api/routes.h"

void handle_mcp(struct call *c);        /* POST /mcp: MCP, or OpenEnv's JSON-RPC */
void handle_mcp_get(struct call *c);    /* GET /mcp: OpenEnv's WebSocket, else 405 */
void handle_mcp_delete(struct call *c);
void handle_mcp_lease(struct call *c);
void handle_mcp_sse(struct call *c);
void handle_mcp_messages(struct call *c);

/* Beside the other methods of /mcp, which OpenEnv's rows have: an OpenAPI document names a path once. */
#define MCP_DELETE_ROUTE                                                                                      \
	{ .method = HTTP_METHOD_DELETE,                                                                               \
		.pattern = "/mcp",                                                                                    \
		.flags = ROUTE_ANY_QUERY,                                                                             \
		.handle = handle_mcp_delete,                                                                          \
		.operation = "mcpForget",                                                                             \
		.summary = "MCP: forget a client",                                                                    \
		.description = "Ends the client that Mcp-Session-Id names. Python sessions live on.",                 \
		.status = 204 }

#define MCP_ROUTES                                                                                                    \
	{ .method = HTTP_METHOD_GET,                                                                                  \
		.pattern = "/mcp/lease",                                                                              \
		.flags = ROUTE_ANY_QUERY,                                                              \
		.handle = handle_mcp_lease,                                                                           \
		.operation = "mcpLease",                                                                              \
		.summary = "MCP: hold a lease",                                                                       \
		.description = "An event stream whose first event is the Mcp-Session-Id of a new client. "            \
			       "Python sessions that this client makes end when the stream closes.",                  \
		.status = 200,                                                                                        \
		.content_type = "text/event-stream" },                                                                \
	{ .method = HTTP_METHOD_GET,                                                                                  \
		.pattern = "/sse",                                                                                    \
		.flags = ROUTE_ANY_QUERY | ROUTE_QUERY_TOKEN,                                          \
		.handle = handle_mcp_sse,                                                                             \
		.operation = "mcpSse",                                                                                \
		.summary = "MCP: revision 2024-11-05",                                                                \
		.description = "An event stream; its first event names the address to post messages to. "             \
			       "Offers one tool, `python`, as gpt-oss expects it.",                                   \
		.status = 200,                                                                                        \
		.content_type = "text/event-stream" },                                                                \
	{ .method = HTTP_METHOD_POST,                                                                                 \
		.pattern = "/messages",                                                                               \
		.flags = ROUTE_ANY_QUERY | ROUTE_ANY_TYPE | ROUTE_QUERY_TOKEN,                                        \
		.handle = handle_mcp_messages,                                                                        \
		.operation = "mcpMessage",                                                                            \
		.summary = "MCP: a message for GET /sse",                                                             \
		.description = "The answer comes on the event stream.",                                               \
		.status = 202 }
