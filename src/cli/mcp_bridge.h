/*
 * JSON-RPC lines on stdin become requests to a server's POST /mcp, and its answers lines on stdout.
 *
 * A request has a thread and a connection of its own while it is under way, because requests
 * overlap and their answers may come in any order. A lease (GET /mcp/lease) stays open meanwhile:
 * the server ends the sessions made here when it closes, however this process ends.
 */
#pragma once

#include "base/error.h"

struct mcp_bridge_config {
	const char *address; /* as http_client_create() takes it */
	const char *token;   /* or NULL */
};

/*
 * Serves until stdin ends, SIGTERM or SIGINT. 0, or a negative errno when the server could not be
 * reached at the start.
 */
int mcp_bridge_run(const struct mcp_bridge_config *config, struct error *e);
