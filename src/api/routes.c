#include "api/routes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "dialects/jupyter/jupyter_routes.h"
#include "dialects/mcp/mcp_routes.h"
#include "dialects/openenv/openenv_routes.h"
#include "api/schema/requests.h"
#include "api/schema/requests_input.h"
#include "api/schema/shapes.h"
#include "base/nearest.h"
#include "base/text.h"

#define JSON "application/json"

const struct route routes[] = {
	{ HTTP_METHOD_POST, "/v1/run", ROUTE_EVENTS, handle_run, NULL, "run", "Run code once",
		"Makes a session, puts the files into /workspace, runs the code, answers the observation, "
		"and ends the "
		"session. With `Accept: text/event-stream` the events come as they happen.",
		&run_fields, NULL, 200, JSON, &shape_observation,
		"curl -s $URL/v1/run -H 'Content-Type: application/json' -d '{\"code\":\"print(6*7)\"}'" },
	{ HTTP_METHOD_POST, "/v1/sessions", ROUTE_EVENTS, handle_session_create, NULL, "createSession",
		"Create a session",
		"All fields are optional. The session is usable at once; its working directory is "
		"/workspace. With `from` it goes on from the state of another session or of a checkpoint.",
		&create_fields, NULL, 201, JSON, &shape_session,
		"curl -s $URL/v1/sessions -H 'Content-Type: application/json' -d '{\"name\":\"demo\"}'" },
	{ HTTP_METHOD_GET, "/v1/sessions", 0, handle_session_list, NULL, "listSessions", "List sessions",
		"Your sessions in order of creation, page by page.", NULL, &session_query_fields, 200, JSON,
		&shape_session_list, "curl -s \"$URL/v1/sessions?state=idle&limit=10\"" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}", 0, handle_session_get, NULL, "getSession",
		"Look at a session", NULL, NULL, NULL, 200, JSON, &shape_session,
		"curl -s $URL/v1/sessions/$ID" },
	{ HTTP_METHOD_DELETE, "/v1/sessions/{id}", 0, handle_session_delete, NULL, "deleteSession",
		"End a session", "A running cell ends as killed; files and processes are gone.", NULL, NULL,
		204, NULL, NULL, "curl -s -X DELETE $URL/v1/sessions/$ID" },
	{ HTTP_METHOD_POST, "/v1/sessions/{id}/execute", ROUTE_EVENTS, handle_execute, NULL, "execute",
		"Run a cell",
		"Cells of one session run one after another; variables stay. Without `detach`, a client that "
		"leaves "
		"interrupts its cell. With `Accept: text/event-stream` the events started, stdout, stderr, "
		"display and done "
		"come as they happen; done holds the whole observation.",
		&execute_fields, NULL, 200, JSON, &shape_observation,
		"curl -s $URL/v1/sessions/$ID/execute -H 'Content-Type: application/json' -d "
		"'{\"code\":\"1+1\"}'" },
	{ HTTP_METHOD_POST, "/v1/sessions/{id}/interrupt", 0, handle_session_interrupt, NULL, "interrupt",
		"Interrupt the running cell",
		"KeyboardInterrupt in the cell; a cell that does not end within the grace is killed.",
		&no_fields, NULL, 200, JSON, &shape_interrupted,
		"curl -s -X POST $URL/v1/sessions/$ID/interrupt" },
	{ HTTP_METHOD_POST, "/v1/sessions/{id}/reset", 0, handle_session_reset, NULL, "reset",
		"Start a fresh interpreter", "Variables are gone, files stay. A running cell ends as killed.",
		&no_fields, NULL, 200, JSON, &shape_session, "curl -s -X POST $URL/v1/sessions/$ID/reset" },
	{ HTTP_METHOD_POST, "/v1/sessions/{id}/packages", ROUTE_EVENTS, handle_session_packages, NULL, "addPackages",
		"Add packages to a session",
		"Installed if need be, and at hand from its next cell on. With `Accept: text/event-stream` the "
		"progress comes as `packages` events, then `done` with the report.",
		&packages_fields, NULL, 200, JSON, &shape_packages,
		"curl -s $URL/v1/sessions/$ID/packages -H 'Content-Type: application/json' -d '{\"packages\":[\"numpy\"]}'" },
	{ HTTP_METHOD_POST, "/v1/sessions/{id}/checkpoints", 0, handle_checkpoint_create, NULL, "createCheckpoint",
		"Take a checkpoint",
		"A copy of the session's variables and files to go back to, taken between cells. When there are too many, the one that was "
		"not used for longest goes, also when they hold too much memory; `evicted` names those.",
		&checkpoint_fields, NULL, 201, JSON, &shape_checkpoint_answer,
		"curl -s $URL/v1/sessions/$ID/checkpoints -H 'Content-Type: application/json' -d '{\"name\":\"clean\"}'" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/checkpoints", 0, handle_checkpoint_list, NULL, "listCheckpoints",
		"List checkpoints", "Oldest first, those without a name kept by themselves; `parent` makes them a tree.", NULL, NULL, 200, JSON,
		&shape_checkpoint_list, "curl -s $URL/v1/sessions/$ID/checkpoints" },
	{ HTTP_METHOD_DELETE, "/v1/sessions/{id}/checkpoints/{path}", 0, handle_checkpoint_delete, NULL, "deleteCheckpoint",
		"Let go of a checkpoint", "By id or name. Those that came from it stay.", NULL, NULL, 204, NULL, NULL,
		"curl -s -X DELETE $URL/v1/sessions/$ID/checkpoints/clean" },
	{ HTTP_METHOD_POST, "/v1/sessions/{id}/rollback", 0, handle_rollback, NULL, "rollback", "Go back",
		"To a checkpoint, or with `undo` to before the last cell: variables and files are as they were then. The checkpoint stays.",
		&rollback_fields, NULL, 200, JSON, &shape_rollback_answer,
		"curl -s $URL/v1/sessions/$ID/rollback -H 'Content-Type: application/json' -d '{\"checkpoint\":\"clean\"}'" },
	{ HTTP_METHOD_POST, "/v1/sessions/{id}/fork", 0, handle_fork, NULL, "forkSession", "Fork a session",
		"New sessions that go on from its state, each in a jail of its own with its own copy of the files; the session itself is untouched. All "
		"of them or none. They live on when it ends.",
		&fork_fields, NULL, 201, JSON, &shape_forks,
		"curl -s $URL/v1/sessions/$ID/fork -H 'Content-Type: application/json' -d '{\"count\":8}'" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/logs", 0, handle_logs, NULL, "getLogs", "Read the output log",
		"Everything the session printed, page by page, also what an observation left out. With "
		"`Accept: text/plain` "
		"just the text; the header X-Next-After then says where the next page starts.",
		NULL, &log_query_fields, 200, JSON, &shape_log,
		"curl -s $URL/v1/sessions/$ID/logs -H 'Accept: text/plain'" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/screenshot", 0, handle_screenshot, NULL, "getScreenshot", "Take a screenshot",
		"The session's screen as it is now, also while a cell runs. With `Accept: application/json` as an object with "
		"the windows and the picture in base64.",
		NULL, &screenshot_query_fields, 200, "image/png", NULL, "curl -s $URL/v1/sessions/$ID/screenshot -o screen.png" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/windows", 0, handle_windows, NULL, "listWindows", "List the windows",
		"Those that can be seen on the session's screen, from the bottom up.", NULL, NULL, 200, JSON, &shape_window_list,
		"curl -s $URL/v1/sessions/$ID/windows" },
	{ HTTP_METHOD_POST, "/v1/sessions/{id}/input", ROUTE_LIVE_KEY, handle_input, NULL, "input", "Use mouse and keyboard",
		"One action, or a list of `actions`; also while a cell runs. Answered when the screen has settled, with a picture of it "
		"when `screenshot` is asked for. Actions: mouse_move, left_click, right_click, middle_click, double_click, triple_click, "
		"left_mouse_down, left_mouse_up, left_click_drag, scroll, key, hold_key, type, wait, screenshot, zoom, cursor_position.",
		&input_fields, &key_query_fields, 200, JSON, &shape_input,
		"curl -s $URL/v1/sessions/$ID/input -H 'Content-Type: application/json' -d '{\"action\":\"left_click\",\"coordinate\":[512,384]}'" },
	{ HTTP_METHOD_POST, "/v1/sessions/{id}/live", 0, handle_live_link, NULL, "makeLiveLink", "Make a link to the live view",
		"An address that opens this session's live view to whoever has it, without a token, for a while. It shows; with `control` it also takes "
		"mouse and keyboard.",
		&live_link_fields, NULL, 201, JSON, &shape_live_link,
		"curl -s $URL/v1/sessions/$ID/live -H 'Content-Type: application/json' -d '{\"control\":true}'" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/live", ROUTE_LIVE_KEY, handle_live, NULL, "live", "Watch the screen",
		"A page for a browser that shows the session's screen as it changes; with `?control=1` it takes mouse and keyboard.", NULL,
		&live_query_fields, 200, "text/html; charset=utf-8", NULL, NULL },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/live/ws", ROUTE_WEBSOCKET | ROUTE_LIVE_KEY, handle_live_socket, NULL, "liveSocket",
		"Watch the screen over a WebSocket",
		"Each message of the client asks for a frame; it comes when something changed, as a binary message: six 16-bit numbers, least "
		"byte first (x, y, width, height of the part; width and height of the screen), then a PNG of the part. The first is whole.",
		NULL, &key_query_fields, 101, NULL, NULL, NULL },
	{ HTTP_METHOD_POST, "/v1/sessions/{id}/recording", 0, handle_recording, NULL, "record", "Record the screen",
		"`start` or `stop`. Only changes make frames; the frames are tied to the cells that ran. It stops by itself at its "
		"limits. `record` of POST …/execute does the same for one cell.",
		&recording_fields, NULL, 200, JSON, &shape_recording,
		"curl -s $URL/v1/sessions/$ID/recording -H 'Content-Type: application/json' -d '{\"action\":\"start\",\"fps\":20}'" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/recording", 0, handle_recording_list, NULL, "listRecordings", "List recordings",
		"Oldest first. A session keeps 8; the oldest goes.", NULL, NULL, 200, JSON, &shape_recording_list,
		"curl -s $URL/v1/sessions/$ID/recording" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/recording/{path}", 0, handle_recording_get, NULL, "getRecording", "Fetch a recording",
		"By id, in the format it was recorded for, or in another: `apng` is what it is, `webm`, `mp4` and `gif` are made of it by ffmpeg, "
		"in the session's jail.", NULL, &film_query_fields, 200, "image/apng", NULL,
		"curl -s \"$URL/v1/sessions/$ID/recording/1?format=webm\" -o film.webm" },
	{ HTTP_METHOD_DELETE, "/v1/sessions/{id}/recording/{path}", 0, handle_recording_delete, NULL, "deleteRecording",
		"Delete a recording", NULL, NULL, NULL, 204, NULL, NULL, "curl -s -X DELETE $URL/v1/sessions/$ID/recording/1" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/files", 0, handle_file_list, NULL, "listFiles", "List files",
		"What is below /workspace, in order of the paths. Links are listed, not followed.", NULL,
		&list_query_fields, 200, JSON, &shape_file_list,
		"curl -s \"$URL/v1/sessions/$ID/files?recursive=true\"" },
	{ HTTP_METHOD_PUT, "/v1/sessions/{id}/files/{path}", ROUTE_RAW_BODY, handle_file_put, begin_file_put,
		"putFile", "Write a file",
		"The body is the content. The file appears whole or not at all; missing directories are "
		"made.",
		NULL, NULL, 201, JSON, &shape_file,
		"curl -s -T input.csv $URL/v1/sessions/$ID/files/data/input.csv" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/files/{path}", 0, handle_file_get, NULL, "getFile",
		"Read a file",
		"Regular files only. They always come as an attachment of type application/octet-stream.",
		NULL, NULL, 200, "application/octet-stream", NULL,
		"curl -s $URL/v1/sessions/$ID/files/data/input.csv" },
	{ HTTP_METHOD_DELETE, "/v1/sessions/{id}/files/{path}", 0, handle_file_delete, NULL, "deleteFile",
		"Delete a file", "A file, a link, or an empty directory.", NULL, NULL, 204, NULL, NULL,
		"curl -s -X DELETE $URL/v1/sessions/$ID/files/data/input.csv" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/ws", ROUTE_WEBSOCKET, handle_socket, NULL, "socket",
		"Talk over a WebSocket",
		"Text messages, each a JSON object with an `id` of yours and a `type`: execute (with the "
		"fields of "
		"POST …/execute), interrupt, ping, tools (with the fields of PUT …/tools) or tool_result (`call`, and "
		"`value` or `error`). tool_call and tool_cancel come with the id of the tools message. Answers carry the same id: started, stdout, stderr, "
		"display, done (with "
		"`observation`), interrupted, pong, or error (a problem). Cells of a socket that closes are "
		"interrupted "
		"unless they detach.",
		NULL, NULL, 101, NULL, NULL, NULL },
	{ HTTP_METHOD_PUT, "/v1/sessions/{id}/tools", 0, handle_tools_put, NULL, "putTools",
		"Give the session functions of yours",
		"From the next cell on they are ordinary functions there. Calls wait at GET …/tools/calls; over a WebSocket "
		"they come by themselves.",
		&tools_fields, NULL, 200, JSON, &shape_tool_list,
		"curl -s -X PUT $URL/v1/sessions/$ID/tools -H 'Content-Type: application/json' -d '{\"tools\":[]}'" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/tools", 0, handle_tools_get, NULL, "getTools",
		"List the functions of clients", NULL, NULL, NULL, 200, JSON, &shape_tool_list,
		"curl -s $URL/v1/sessions/$ID/tools" },
	{ HTTP_METHOD_GET, "/v1/sessions/{id}/tools/calls", 0, handle_tool_calls, NULL, "getToolCalls",
		"Fetch the calls that wait",
		"Answers as soon as there is one, or with none after wait_s. Each call is handed out once.", NULL,
		&calls_query_fields, 200, JSON, &shape_call_list,
		"curl -s \"$URL/v1/sessions/$ID/tools/calls?wait_s=0\"" },
	{ HTTP_METHOD_POST, "/v1/sessions/{id}/tools/calls/{path}", 0, handle_tool_answer, NULL, "answerToolCall",
		"Answer a call", "The path ends with `call` of the call. A value, or an error that is raised in the cell.",
		&tool_answer_fields, NULL, 204, NULL, NULL, NULL },
	{ HTTP_METHOD_GET, "/v1/profiles", 0, handle_profiles, NULL, "listProfiles", "List executor profiles",
		"What code may say under each: imports, builtins, limits, what is refused.", NULL, NULL, 200, JSON,
		&shape_profile_list, "curl -s $URL/v1/profiles" },
	{ HTTP_METHOD_GET, "/health", ROUTE_PUBLIC, handle_health, NULL, "health", "Is the server alive?",
		NULL, NULL, NULL, 200, JSON, &shape_status, "curl -s $URL/health" },
	{ HTTP_METHOD_GET, "/readyz", ROUTE_PUBLIC, handle_ready, NULL, "ready",
		"Can it make sessions at once?",
		"503 until the interpreter is warm, and while the server is about to end.", NULL, NULL, 200,
		JSON, &shape_status, "curl -s $URL/readyz" },
	{ HTTP_METHOD_GET, "/version", ROUTE_PUBLIC, handle_version, NULL, "version", "Which server is this?",
		NULL, NULL, NULL, 200, JSON, &shape_version, "curl -s $URL/version" },
	{ HTTP_METHOD_GET, "/metrics", 0, handle_metrics, NULL, "metrics", "Figures for Prometheus", NULL,
		NULL, NULL, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, "curl -s $URL/metrics" },
	{ HTTP_METHOD_GET, "/openapi.json", ROUTE_PUBLIC, handle_openapi, NULL, "openapi",
		"This API as OpenAPI 3.1", NULL, NULL, NULL, 200, JSON, NULL, "curl -s $URL/openapi.json" },
	{ HTTP_METHOD_GET, "/docs", ROUTE_PUBLIC, handle_docs, NULL, "docs", "This API for people", NULL,
		NULL, NULL, 200, "text/html; charset=utf-8", NULL, "curl -s $URL/docs" },
	OPENENV_ROUTES,
	JUPYTER_ROUTES,
	MCP_ROUTES,
};
const size_t routes_count = ARRAY_LEN(routes);

/* ---- matching ------------------------------------------------------------ */

/* Where a pattern's variables lie in a path; 0 long when it has none. */
struct spans {
	const char *id, *path;
	size_t id_len, path_len;
};

static bool fits(const char *pattern, const char *path, struct spans *s)
{
	*s = (struct spans){ 0 };
	while (*pattern) {
		if (!strcmp(pattern, "{path}")) {
			s->path = path;
			s->path_len = strlen(path);
			return s->path_len > 0;
		}
		if (!strncmp(pattern, "{id}", 4)) {
			s->id = path;
			s->id_len = strcspn(path, "/");
			if (!s->id_len)
				return false;
			pattern += 4;
			path += s->id_len;
		} else if (*pattern++ != *path++) {
			return false;
		}
	}
	return !*path;
}

static int decode_spans(const struct spans *s, struct route_match *m)
{
	if (s->id && http_percent_decode(s->id, s->id_len, false, m->id, m->id_size) < 0)
		return -EINVAL;
	if (s->path && http_percent_decode(s->path, s->path_len, false, m->path, m->path_size) < 0)
		return -EINVAL;
	return 0;
}

int routes_match(enum http_method method, const char *path, struct route_match *m)
{
	struct spans s;
	if (method == HTTP_METHOD_HEAD)
		method = HTTP_METHOD_GET;
	m->route = NULL;
	m->path_known = false;
	for (size_t i = 0; i < routes_count; i++) {
		if (!fits(routes[i].pattern, path, &s))
			continue;
		m->path_known = true;
		if (routes[i].method != method)
			continue;
		m->route = &routes[i];
		return decode_spans(&s, m);
	}
	return m->path_known ? -EOPNOTSUPP : -ENOENT;
}

char *routes_allow(const char *path, char *buf, size_t size)
{
	struct spans s;
	size_t n = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < routes_count && n < size; i++) {
		if (!fits(routes[i].pattern, path, &s))
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s%s%s", n ? ", " : "",
			http_method_name(routes[i].method),
			routes[i].method == HTTP_METHOD_GET ? ", HEAD" : "");
	}
	if (n < size)
		snprintf(buf + n, size - n, ", OPTIONS");
	return buf;
}

/* ---- what was meant ------------------------------------------------------ */

/* The path with session ids written as in the patterns, so that they do not count as differences. */
static void generalise(const char *path, char out[NEAREST_WORD_MAX + 1])
{
	size_t n = 0;
	while (*path && n < NEAREST_WORD_MAX) {
		if (path[0] == '/' && path[1] == 's' && path[2] == '_') {
			n += (size_t)snprintf(out + n, NEAREST_WORD_MAX + 1 - n, "/{id}");
			path += 1 + strcspn(path + 1, "/");
		} else {
			out[n++] = *path++;
		}
	}
	out[n < NEAREST_WORD_MAX ? n : NEAREST_WORD_MAX] = '\0';
}

const char *routes_nearest(const char *path)
{
	const char *patterns[ARRAY_LEN(routes) + 1];
	char general[NEAREST_WORD_MAX + 1];
	for (size_t i = 0; i < routes_count; i++)
		patterns[i] = routes[i].pattern;
	patterns[routes_count] = NULL;
	generalise(path, general);
	return nearest_word(general, patterns);
}
