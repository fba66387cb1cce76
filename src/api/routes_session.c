/* The addresses of sessions, their cells and their history. */
#include "api/batch/batch.h"
#include "api/call.h"
#include "api/routes.h"
#include "api/schema/requests.h"
#include "api/schema/requests_console.h"
#include "api/schema/requests_input.h"
#include "api/schema/shapes.h"

#define JSON "application/json"

const struct route session_routes[] = {
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/run",
		.flags = ROUTE_EVENTS | ROUTE_IDEMPOTENT,
		.handle = handle_run,
		.operation = "run",
		.summary = "Run code once",
		.description =
			"Creates a session, writes the files to /workspace, runs the code, returns the "
			"observation, and ends the session. With `Accept: text/event-stream` the server "
			"sends events while the code runs.",
		.request = &run_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_observation,
		.example = "curl -s $URL/v1/run -H 'Content-Type: application/json' -d "
			   "'{\"code\":\"print(6*7)\"}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/batch",
		.handle = handle_batch,
		.operation = "batch",
		.summary = "Run many programs",
		.description =
			"Each item runs in its own session. One line of JSON is sent for each item as soon as it is "
			"done: index, id, observation, error, verdict; the last line has `done`. With "
			"`Idempotency-Key` a repeated request returns the known outcomes. Closing the "
			"connection cancels the remaining items.",
		.request = &batch_fields,
		.status = 200,
		.content_type = "application/x-ndjson",
		.shape = &shape_batch_line,
		.example = "curl -sN $URL/v1/batch -H 'Content-Type: application/json' -d "
			   "'{\"items\":[{\"code\":\"print(6*7)\",\"expected_output\":\"42\"}]}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions",
		.flags = ROUTE_EVENTS | ROUTE_IDEMPOTENT,
		.handle = handle_session_create,
		.operation = "createSession",
		.summary = "Create a session",
		.description =
			"All fields are optional. The session is usable at once; its working directory "
			"is /workspace. With `from` it starts with the state of another session or of a "
			"checkpoint.",
		.request = &create_fields,
		.status = 201,
		.content_type = JSON,
		.shape = &shape_session,
		.example = "curl -s $URL/v1/sessions -H 'Content-Type: application/json' -d "
			   "'{\"name\":\"demo\"}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions",
		.handle = handle_session_list,
		.operation = "listSessions",
		.summary = "List sessions",
		.description = "Your sessions in order of creation, page by page.",
		.query = &session_query_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_session_list,
		.example = "curl -s \"$URL/v1/sessions?state=idle&limit=10\"",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}",
		.flags = ROUTE_SHARED,
		.handle = handle_session_get,
		.operation = "getSession",
		.summary = "Get a session",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_session,
		.example = "curl -s $URL/v1/sessions/$ID",
	},
	{
		.method = HTTP_METHOD_DELETE,
		.pattern = "/v1/sessions/{id}",
		.handle = handle_session_delete,
		.operation = "deleteSession",
		.summary = "End a session",
		.description = "A running cell is killed; files and processes are removed.",
		.status = 204,
		.example = "curl -s -X DELETE $URL/v1/sessions/$ID",
	},
	{
		.method = HTTP_METHOD_PATCH,
		.pattern = "/v1/sessions/{id}",
		.handle = handle_session_patch,
		.operation = "updateSession",
		.summary = "Change a session",
		.description =
			"Changes its name, its metadata, and its expiry. Omitted fields stay "
			"as they are.",
		.request = &session_update_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_session,
		.example = "curl -s -X PATCH $URL/v1/sessions/$ID -H 'Content-Type: "
			   "application/json' -d '{\"name\":\"analysis\",\"ttl_s\":86400}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/pause",
		.handle = handle_session_pause,
		.operation = "pauseSession",
		.summary = "Pause a session",
		.description =
			"A paused session keeps its interpreters, files and processes; the processes are stopped. It refuses cells and new "
			"processes, and does not expire until it is resumed or has been paused for the server's `max-paused`.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_session,
		.example = "curl -s -X POST $URL/v1/sessions/$ID/pause",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/resume",
		.handle = handle_session_resume,
		.operation = "resumeSession",
		.summary = "Resume a paused session",
		.request = &resume_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_session,
		.example = "curl -s -X POST $URL/v1/sessions/$ID/resume -H 'Content-Type: "
			   "application/json' -d '{\"ttl_s\":3600}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/execute",
		.flags = ROUTE_EVENTS,
		.handle = handle_execute,
		.operation = "execute",
		.summary = "Run a cell",
		.description =
			"Cells of one session run one after another and share variables. Without "
			"`detach`, a client that disconnects interrupts its cell. With `Accept: "
			"text/event-stream` the server sends the events started, stdout, stderr, display "
			"and done while the cell runs; done has the whole observation.",
		.request = &execute_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_observation,
		.example =
			"curl -s $URL/v1/sessions/$ID/execute -H 'Content-Type: application/json' -d "
			"'{\"code\":\"1+1\"}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/interrupt",
		.handle = handle_session_interrupt,
		.operation = "interrupt",
		.summary = "Interrupt the running cell",
		.description =
			"Raises KeyboardInterrupt in the cell; a cell that does not end within the grace period is "
			"killed.",
		.request = &no_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_interrupted,
		.example = "curl -s -X POST $URL/v1/sessions/$ID/interrupt",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/reset",
		.handle = handle_session_reset,
		.operation = "reset",
		.summary = "Start a fresh interpreter",
		.description = "Variables are lost, files stay. A running cell is killed.",
		.request = &no_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_session,
		.example = "curl -s -X POST $URL/v1/sessions/$ID/reset",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/packages",
		.flags = ROUTE_EVENTS,
		.handle = handle_session_packages,
		.operation = "addPackages",
		.summary = "Add packages to a session",
		.description =
			"Installs missing packages; they can be imported from the next cell on. With "
			"`Accept: text/event-stream` the progress is sent as `packages` events, then "
			"`done` with the report.",
		.request = &packages_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_packages,
		.example =
			"curl -s $URL/v1/sessions/$ID/packages -H 'Content-Type: application/json' -d "
			"'{\"packages\":[\"numpy\"]}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/checkpoints",
		.handle = handle_checkpoint_create,
		.operation = "createCheckpoint",
		.summary = "Take a checkpoint",
		.description =
			"Takes a snapshot of the session's variables and files between cells. Beyond the limits of number and memory the least recently used checkpoints are evicted; `evicted` names them.",
		.request = &checkpoint_fields,
		.status = 201,
		.content_type = JSON,
		.shape = &shape_checkpoint_answer,
		.example =
			"curl -s $URL/v1/sessions/$ID/checkpoints -H 'Content-Type: application/json' -d "
			"'{\"name\":\"clean\"}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/checkpoints",
		.flags = ROUTE_SHARED,
		.handle = handle_checkpoint_list,
		.operation = "listCheckpoints",
		.summary = "List checkpoints",
		.description =
			"Oldest first, including automatic checkpoints without a name; `parent` links them into a "
			"tree.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_checkpoint_list,
		.example = "curl -s $URL/v1/sessions/$ID/checkpoints",
	},
	{
		.method = HTTP_METHOD_DELETE,
		.pattern = "/v1/sessions/{id}/checkpoints/{path}",
		.handle = handle_checkpoint_delete,
		.operation = "deleteCheckpoint",
		.summary = "Delete a checkpoint",
		.description = "Id or name of the checkpoint. Later checkpoints are kept.",
		.status = 204,
		.example = "curl -s -X DELETE $URL/v1/sessions/$ID/checkpoints/clean",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/rollback",
		.handle = handle_rollback,
		.operation = "rollback",
		.summary = "Roll back",
		.description =
			"Restores the variables and files of a checkpoint or, with `undo`, of the moment "
			"before the last cell. The checkpoint stays.",
		.request = &rollback_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_rollback_answer,
		.example =
			"curl -s $URL/v1/sessions/$ID/rollback -H 'Content-Type: application/json' -d "
			"'{\"checkpoint\":\"clean\"}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/fork",
		.flags = ROUTE_IDEMPOTENT,
		.handle = handle_fork,
		.operation = "forkSession",
		.summary = "Fork a session",
		.description =
			"Creates new sessions with the state of this session, each in its own jail with its "
			"own copy of the files; this session does not change. Either all forks are "
			"created or none. The forks do not end with this session.",
		.request = &fork_fields,
		.status = 201,
		.content_type = JSON,
		.shape = &shape_forks,
		.example =
			"curl -s $URL/v1/sessions/$ID/fork -H 'Content-Type: application/json' -d "
			"'{\"count\":8}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/logs",
		.flags = ROUTE_SHARED,
		.handle = handle_logs,
		.operation = "getLogs",
		.summary = "Read the output log",
		.description =
			"The whole output of the session, page by page, including output that an "
			"observation omitted. With `Accept: text/plain` the answer is just the text; the header "
			"X-Next-After then says where the next page starts.",
		.query = &log_query_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_log,
		.example = "curl -s $URL/v1/sessions/$ID/logs -H 'Accept: text/plain'",
	},
	{ .pattern = NULL },
};
