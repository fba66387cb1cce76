/* The addresses of the server itself. */
#include "api/call.h"
#include "api/routes.h"
#include "api/schema/requests.h"
#include "api/schema/requests_console.h"
#include "api/schema/requests_input.h"
#include "api/schema/shapes.h"
#include "api/schema/shapes_console.h"

#define JSON "application/json"

const struct route service_routes[] = {
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/profiles",
		.handle = handle_profiles,
		.operation = "listProfiles",
		.summary = "List executor profiles",
		.description = "The rules of each profile: imports, builtins, limits, refusals.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_profile_list,
		.example = "curl -s $URL/v1/profiles",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/node",
		.handle = handle_node,
		.operation = "getNode",
		.summary = "Get the state of the server",
		.description =
			"The sessions of the server, and whether it is being drained. With several tokens "
			"only the operator of the machine can see this.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_node,
		.example = "curl -s $URL/v1/node",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/node/drain",
		.handle = handle_drain,
		.operation = "drainNode",
		.summary = "Drain the server",
		.description =
			"The server makes no new sessions (503 `draining`), /readyz is 503, /health "
			"stays 200. Existing sessions continue until they end or until the deadline.",
		.request = &drain_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_node,
		.example = "curl -s $URL/v1/node/drain -H 'Content-Type: application/json' -d "
			   "'{\"deadline_s\":600}'",
	},
	{
		.method = HTTP_METHOD_DELETE,
		.pattern = "/v1/node/drain",
		.handle = handle_drain_cancel,
		.operation = "cancelDrain",
		.summary = "Cancel the drain",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_node,
		.example = "curl -s -X DELETE $URL/v1/node/drain",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/health",
		.flags = ROUTE_PUBLIC,
		.handle = handle_health,
		.operation = "health",
		.summary = "Is the server alive?",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_status,
		.example = "curl -s $URL/health",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/readyz",
		.flags = ROUTE_PUBLIC,
		.handle = handle_ready,
		.operation = "ready",
		.summary = "Can the server create sessions without delay?",
		.description =
			"503 until the interpreter is warm, while the server is drained, and while it is shutting down.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_status,
		.example = "curl -s $URL/readyz",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/version",
		.flags = ROUTE_PUBLIC,
		.handle = handle_version,
		.operation = "version",
		.summary = "Version and layers of the server",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_version,
		.example = "curl -s $URL/version",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/metrics",
		.handle = handle_metrics,
		.operation = "metrics",
		.summary = "Metrics for Prometheus",
		.status = 200,
		.content_type = "text/plain; version=0.0.4; charset=utf-8",
		.example = "curl -s $URL/metrics",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/openapi.json",
		.flags = ROUTE_PUBLIC,
		.handle = handle_openapi,
		.operation = "openapi",
		.summary = "This API as OpenAPI 3.1",
		.status = 200,
		.content_type = JSON,
		.example = "curl -s $URL/openapi.json",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/docs",
		.flags = ROUTE_PUBLIC,
		.handle = handle_docs,
		.operation = "docs",
		.summary = "This API as a page for people",
		.status = 200,
		.content_type = "text/html; charset=utf-8",
		.example = "curl -s $URL/docs",
	},
	{ .pattern = NULL },
};
