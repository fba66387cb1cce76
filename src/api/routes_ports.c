/* Addresses of servers inside sessions. */
#include "api/ports/port_host.h"
#include "api/ports/port_proxy.h"
#include "api/routes.h"
#include "api/schema/shapes.h"

#define PORTS "/v1/sessions/{id}/ports"

#define PASSED(verb, name)                                                               \
	{                                                                                \
		.method = HTTP_METHOD_##verb, .pattern = PORTS "/{path}",                \
		.flags = ROUTE_RAW_BODY | ROUTE_ANY_QUERY | ROUTE_FOREIGN_BODY,          \
		.begin = begin_port, .handle = port_proxy_body_end, .operation = (name), \
		.summary = "Ask a server inside the session", .status = 200,             \
		.content_type = "application/octet-stream", .description = TEXT          \
	}
#define TEXT                                                                                                                 \
	"The path contains the port and the path of the request to the server. Request and answer are streamed; WebSockets " \
	"pass. Nothing listens there: 502. Pages are sandboxed by the browser and have no cookies: open "                    \
	"`url` of GET …/ports for an application with an origin of its own."

const struct route port_routes[] = {
	{ .method = HTTP_METHOD_GET,
		.pattern = PORTS,
		.handle = handle_port_list,
		.operation = "listPorts",
		.summary = "List servers inside the session",
		.description =
			"Ports that something listens on, with the address at which a browser reaches it. The session needs a loopback: "
			"`\"network\": \"loopback\"`.",
		.status = 200,
		.content_type = "application/json",
		.shape = &shape_port_list,
		.example = "curl -s $URL/v1/sessions/$ID/ports" },
	PASSED(GET, "getPort"),
	PASSED(POST, "postPort"),
	PASSED(PUT, "putPort"),
	PASSED(PATCH, "patchPort"),
	PASSED(DELETE, "deletePort"),
	{ 0 },
};
