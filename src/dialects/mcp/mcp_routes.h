/* The addresses of MCP. POST and GET /mcp are shared with OpenEnv's JSON-RPC. */
#pragma once

#include "api/routes.h"

enum http_body_mode begin_mcp(struct call *c);
void handle_mcp(struct call *c);     /* POST /mcp: MCP, or OpenEnv's JSON-RPC */
void handle_mcp_get(struct call *c); /* GET /mcp: OpenEnv's WebSocket, else 405 */
void handle_mcp_delete(struct call *c);
void handle_mcp_lease(struct call *c);
void handle_mcp_sse(struct call *c);
void handle_mcp_messages(struct call *c);

extern const struct route mcp_routes[]; /* the last row has no pattern */
