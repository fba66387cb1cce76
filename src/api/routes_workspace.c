/* The addresses of files, tools and the WebSocket of a session. */
#include "api/call.h"
#include "api/routes.h"
#include "api/schema/requests.h"
#include "api/schema/requests_input.h"
#include "api/schema/shapes.h"

#define JSON "application/json"

const struct route workspace_routes[] = {
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/files",
		.handle = handle_file_list,
		.operation = "listFiles",
		.summary = "List files",
		.description =
			"What is below /workspace, in order of the paths. Links are listed, not followed. With `watch` an event stream: started, "
			"then create, write, remove, rename, chmod with `name` relative to the directory, and missed when events were lost.",
		.flags = ROUTE_EVENTS | ROUTE_SHARED,
		.query = &list_query_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_file_list,
		.example = "curl -s \"$URL/v1/sessions/$ID/files?recursive=true\"",
	},
	{
		.method = HTTP_METHOD_PUT,
		.pattern = "/v1/sessions/{id}/files/{path}",
		.flags = ROUTE_RAW_BODY,
		.handle = handle_file_put,
		.begin = begin_file_put,
		.operation = "putFile",
		.summary = "Write a file",
		.description =
			"The body is the content. The file appears whole or not at all; missing "
			"directories are created.",
		.status = 201,
		.content_type = JSON,
		.shape = &shape_file,
		.example = "curl -s -T input.csv $URL/v1/sessions/$ID/files/data/input.csv",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/files/{path}",
		.flags = ROUTE_SHARED,
		.handle = handle_file_get,
		.operation = "getFile",
		.summary = "Read a file",
		.description = "Regular files only. The answer is always an attachment of type "
			       "application/octet-stream.",
		.status = 200,
		.content_type = "application/octet-stream",
		.example = "curl -s $URL/v1/sessions/$ID/files/data/input.csv",
	},
	{
		.method = HTTP_METHOD_DELETE,
		.pattern = "/v1/sessions/{id}/files/{path}",
		.handle = handle_file_delete,
		.operation = "deleteFile",
		.summary = "Delete a file",
		.description = "Deletes a file, a link, or an empty directory.",
		.status = 204,
		.example = "curl -s -X DELETE $URL/v1/sessions/$ID/files/data/input.csv",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/ws",
		.flags = ROUTE_WEBSOCKET,
		.handle = handle_socket,
		.operation = "socket",
		.summary = "Talk over a WebSocket",
		.description =
			"Text messages, each a JSON object with an `id` that the client chooses and a `type`: execute "
			"(with the fields of POST …/execute), interrupt, ping, tools (with the fields of "
			"PUT …/tools) or tool_result (`call`, and `value` or `error`). tool_call and "
			"tool_cancel have the id of the tools message. Answers have the id of their request: "
			"started, stdout, stderr, display, done (with `observation`), interrupted, pong, "
			"or error (a problem). When the socket closes, its cells are interrupted, except those with "
			"`detach`.",
		.status = 101,
	},
	{
		.method = HTTP_METHOD_PUT,
		.pattern = "/v1/sessions/{id}/tools",
		.handle = handle_tools_put,
		.operation = "putTools",
		.summary = "Offer functions of the client to the session",
		.description =
			"From the next cell on, code can call the tools as ordinary functions. The client "
			"fetches calls with GET …/tools/calls; over a WebSocket the server sends them.",
		.request = &tools_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_tool_list,
		.example =
			"curl -s -X PUT $URL/v1/sessions/$ID/tools -H 'Content-Type: application/json' -d "
			"'{\"tools\":[]}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/tools",
		.handle = handle_tools_get,
		.operation = "getTools",
		.summary = "List the functions of clients",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_tool_list,
		.example = "curl -s $URL/v1/sessions/$ID/tools",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/tools/calls",
		.handle = handle_tool_calls,
		.operation = "getToolCalls",
		.summary = "Fetch the waiting tool calls",
		.description =
			"Answers when a call is waiting, or with an empty list after wait_s. Each call is "
			"returned once.",
		.query = &calls_query_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_call_list,
		.example = "curl -s \"$URL/v1/sessions/$ID/tools/calls?wait_s=0\"",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/tools/calls/{path}",
		.handle = handle_tool_answer,
		.operation = "answerToolCall",
		.summary = "Answer a tool call",
		.description =
			"The path ends with the number `call` of the call. The body has a value, or an error that is raised in the "
			"cell.",
		.request = &tool_answer_fields,
		.status = 204,
	},
	{ .pattern = NULL },
};
