#include "dialects/mcp/mcp_routes.h"

#define JSON "application/json"

const struct route mcp_routes[] = {
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/mcp",
		/* begin_mcp() refuses encodings, as JSON-RPC */
		.flags = ROUTE_ANY_QUERY | ROUTE_ANY_TYPE | ROUTE_FOREIGN_BODY,
		.handle = handle_mcp,
		.begin = begin_mcp,
		.operation = "mcp",
		.summary = "MCP, and OpenEnv's JSON-RPC",
		.description =
			"One JSON-RPC message of MCP (docs/mcp.md). Without any header of MCP: "
			"openenv/session/create and openenv/session/close.",
		.status = 200,
		.content_type = JSON,
		.example = "curl -s $URL/mcp -H 'Content-Type: application/json' -d "
			   "'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/mcp",
		.flags = ROUTE_WEBSOCKET | ROUTE_ANY_QUERY,
		.handle = handle_mcp_get,
		.operation = "openenvMcpSocket",
		.summary = "OpenEnv: JSON-RPC over a WebSocket",
		.description = "The same answers as POST /mcp.",
		.status = 101,
	},
	{
		.method = HTTP_METHOD_DELETE,
		.pattern = "/mcp",
		.flags = ROUTE_ANY_QUERY,
		.handle = handle_mcp_delete,
		.operation = "mcpForget",
		.summary = "MCP: forget a client",
		.description =
			"Ends the client that Mcp-Session-Id names. Python sessions live on.",
		.status = 204,
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/mcp/lease",
		.flags = ROUTE_ANY_QUERY,
		.handle = handle_mcp_lease,
		.operation = "mcpLease",
		.summary = "MCP: hold a lease",
		.description =
			"An event stream whose first event is the Mcp-Session-Id of a new client. Python "
			"sessions that this client makes end when the stream closes.",
		.status = 200,
		.content_type = "text/event-stream",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/sse",
		.flags = ROUTE_ANY_QUERY | ROUTE_QUERY_TOKEN,
		.handle = handle_mcp_sse,
		.operation = "mcpSse",
		.summary = "MCP: revision 2024-11-05",
		.description =
			"An event stream; its first event names the address to post messages to. Offers "
			"one tool, `python`, as gpt-oss expects it.",
		.status = 200,
		.content_type = "text/event-stream",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/messages",
		.flags = ROUTE_ANY_QUERY | ROUTE_ANY_TYPE | ROUTE_QUERY_TOKEN,
		.handle = handle_mcp_messages,
		.operation = "mcpMessage",
		.summary = "MCP: a message for GET /sse",
		.description = "The answer comes on the event stream.",
		.status = 202,
	},
	{ .pattern = NULL },
};
