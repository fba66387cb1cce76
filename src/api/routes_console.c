/* Addresses about what happened in sessions and what is in them. */
#include "api/call.h"
#include "api/routes.h"
#include "api/schema/requests.h"
#include "api/schema/requests_console.h"
#include "api/schema/shapes_console.h"

#define JSON "application/json"

const struct route console_routes[] = {
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/cells",
		.flags = ROUTE_SHARED,
		.handle = handle_cells,
		.operation = "listCells",
		.summary = "List the cells that were run",
		.description =
			"Oldest first, page by page, from all clients, with entries for checkpoints, "
			"rollbacks and resets. A session keeps the last 1000 entries "
			"and 16 MiB. Values are returned by reference: `href` is the address of all forms of a value.",
		.query = &cells_query_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_cell_list,
		.example = "curl -s \"$URL/v1/sessions/$ID/cells?last=10\"",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/cells/{path}",
		.flags = ROUTE_SHARED,
		.handle = handle_cell,
		.operation = "getCell",
		.summary = "Get one cell, or one value of a cell",
		.description =
			"By `number` of the entry. …/cells/N/result and …/cells/N/displays/K return one "
			"value as an object of media types; …/cells/N/screenshot is the screenshot of the cell.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_cell,
		.example = "curl -s $URL/v1/sessions/$ID/cells/1",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/export",
		.flags = ROUTE_SHARED,
		.handle = handle_export,
		.operation = "exportSession",
		.summary = "Export the cells",
		.description = "Exports a Jupyter notebook with the outputs, or a Python file.",
		.query = &export_query_fields,
		.status = 200,
		.content_type = "application/x-ipynb+json",
		.example = "curl -s \"$URL/v1/sessions/$ID/export?format=py\"",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/archive",
		.flags = ROUTE_SHARED,
		.handle = handle_archive_get,
		.operation = "getArchive",
		.summary = "Fetch a folder as a tar archive",
		.description =
			"The archive contains all files and directories below the folder, without links.",
		.query = &archive_query_fields,
		.status = 200,
		.content_type = "application/x-tar",
		.example = "curl -s $URL/v1/sessions/$ID/archive -o workspace.tar",
	},
	{
		.method = HTTP_METHOD_PUT,
		.pattern = "/v1/sessions/{id}/archive",
		.flags = ROUTE_RAW_BODY,
		.handle = handle_archive_put,
		.begin = begin_archive_put,
		.operation = "putArchive",
		.summary = "Unpack a tar archive",
		.description =
			"The body is a tar file without compression. Each file appears whole or not at "
			"all; files unpacked before an error stay. Links and devices are skipped and counted.",
		.query = &archive_query_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_unpacked,
		.example =
			"tar -cf - /etc/hostname 2>/dev/null | curl -s -T - $URL/v1/sessions/$ID/archive",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/variables",
		.flags = ROUTE_SHARED,
		.handle = handle_variables,
		.operation = "listVariables",
		.summary = "List the variables",
		.description =
			"Works between cells, and runs no code of the session: values are shown if their "
			"type is one of Python's, numpy's or pandas' own.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_variable_list,
		.example = "curl -s $URL/v1/sessions/$ID/variables",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/complete",
		.handle = handle_complete,
		.operation = "complete",
		.summary = "Complete a name",
		.description = "Lists the possible completions at the cursor. Works between cells.",
		.request = &introspect_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_completion,
		.example =
			"curl -s $URL/v1/sessions/$ID/complete -H 'Content-Type: application/json' "
			"-d '{\"code\":\"impo\"}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/inspect",
		.handle = handle_inspect,
		.operation = "inspect",
		.summary = "Describe the name at the cursor",
		.description = "Returns type, signature and documentation. Works between cells.",
		.request = &introspect_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_inspection,
		.example =
			"curl -s $URL/v1/sessions/$ID/inspect -H 'Content-Type: application/json' "
			"-d '{\"code\":\"len\"}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/network",
		.flags = ROUTE_SHARED,
		.handle = handle_network,
		.operation = "listConnections",
		.summary = "List the connections of a session",
		.description =
			"The connections that code of the session tried to make through the proxy: allowed and refused ones.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_network,
		.example = "curl -s $URL/v1/sessions/$ID/network",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/share",
		.handle = handle_share,
		.operation = "shareSession",
		.summary = "Make a link for reading",
		.description =
			"Returns an address that shows this session without a token, until it expires: cells, files, variables, log "
			"and screen. Who has the link can change nothing. It expires with the session, and when the server restarts.",
		.request = &share_fields,
		.status = 201,
		.content_type = JSON,
		.shape = &shape_share,
		.example =
			"curl -s $URL/v1/sessions/$ID/share -H 'Content-Type: application/json' -d "
			"'{\"ttl_s\":3600}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/events",
		.flags = ROUTE_SHARED,
		.handle = handle_events,
		.operation = "events",
		.summary = "Follow the events of sessions",
		.description =
			"Server-sent events, or with an Upgrade header the same objects over a WebSocket: "
			"hello, created, started, output, display, done, limit, checkpoint, rollback, fork, "
			"reset, changed, died, ended, of the sessions of this token. After a lost connection, "
			"`after` (or Last-Event-ID) continues after the event with that id. The event `lost` says that "
			"events are missing; the client must then read the sessions again.",
		.query = &events_query_fields,
		.status = 200,
		.content_type = "text/event-stream",
		.example = "curl -sN -m 1 $URL/v1/events || true",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/",
		.flags = ROUTE_PUBLIC | ROUTE_ANY_QUERY,
		.handle = handle_console,
		.operation = "console",
		.summary = "The console",
		.description =
			"A page for a browser: sessions, notebooks, screens, the tree of states.",
		.status = 200,
		.content_type = "text/html; charset=utf-8",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/console/{path}",
		.flags = ROUTE_PUBLIC,
		.handle = handle_console_file,
		.operation = "consoleFile",
		.summary = "A file of the console",
		.status = 200,
		.content_type = "text/javascript; charset=utf-8",
	},
	{ .pattern = NULL },
};
