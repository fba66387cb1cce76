/* The tools that MCP offers: one table for their descriptions, arguments and results. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "dialects/mcp/mcp.h"
#include "dialects/common/reset_packages.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "json/json_read.h"

/* ---- arguments -------------------------------------------------------------------------- */

#define AT(member) .offset = offsetof(struct mcp_arguments, member)
#define SESSION_HELP "The session to use, from an earlier result. Leave it out to start a new session."

#define SESSION_ROW { .name = "session_id", .type = FIELD_WORD, AT(session_id), .max = 64, .help = SESSION_HELP }
#define SESSION_REQUIRED \
	{ .name = "session_id", .type = FIELD_WORD, .flags = FIELD_REQUIRED, AT(session_id), .max = 64, .help = "The session to use." }
#define CODE_ROW \
	{ .name = "code", .type = FIELD_TEXT, .flags = FIELD_REQUIRED, AT(code), .max = LIMIT_CODE_BYTES, .help = "Python source to run." }
#define COMMAND_ROW \
	{ .name = "command", .type = FIELD_TEXT, .flags = FIELD_REQUIRED, AT(command), .max = 128 * 1024 - 1, .help = "Shell command, run by bash." }
#define TIMEOUT_ROW \
	{ .name = "timeout_s", .type = FIELD_NUMBER, AT(timeout_s), .min = 0.1, .max = 3600, .default_text = "30", .help = "Time limit in seconds." }
#define CWD_ROW { .name = "cwd", .type = FIELD_WORD, AT(cwd), .max = LIMIT_PATH_BYTES, .help = "Working directory; /workspace when left out." }
#define PACKAGES_ROW \
	{ .name = "packages", .type = FIELD_WORDS, AT(packages), .max = 32, .max_bytes = 256, .help = "Packages to install first, such as \"rich\" or \"pandas>=2\"." }
#define SCREENSHOT_ROW \
	{ .name = "screenshot", .type = FIELD_BOOL, AT(screenshot), .default_text = "false", .help = "Also return a picture of the windows that the code opens." }
#define DETACH_ROW \
	{ .name = "detach", .type = FIELD_BOOL, AT(detach), .default_text = "false", .help = "Return a task at once; needs a client with the tasks extension." }
#define PATH_ROW \
	{ .name = "path", .type = FIELD_WORD, .flags = FIELD_REQUIRED, AT(path), .min = 1, .max = LIMIT_PATH_BYTES, .help = "Path below /workspace." }
#define FOLDER_ROW { .name = "path", .type = FIELD_WORD, AT(path), .max = LIMIT_PATH_BYTES, .help = "Directory below /workspace; all of it when left out." }
#define CONTENT_ROW \
	{ .name = "content", .type = FIELD_TEXT, .flags = FIELD_REQUIRED | FIELD_NUL_ALLOWED, AT(content), .max = LIMIT_BODY_BYTES, .help = "The file's content." }
#define ENCODING_ROW \
	{ .name = "encoding", .type = FIELD_CHOICE, AT(encoding), .choices = encodings, .default_text = "utf-8", .help = "How content is written." }
#define OFFSET_ROW { .name = "offset", .type = FIELD_UINT, AT(offset), .max = 1e15, .default_text = "0", .help = "First byte to read." }
#define LIMIT_ROW \
	{ .name = "limit", .type = FIELD_UINT, AT(limit), .min = 1, .max = 1 << 20, .default_text = "30000", .help = "Most bytes to read." }
#define RECURSIVE_ROW \
	{ .name = "recursive", .type = FIELD_BOOL, .flags = FIELD_HAS_FLAG, AT(recursive), \
		.flag_offset = offsetof(struct mcp_arguments, has_recursive), .default_text = "true", .help = "Also list what subdirectories contain." }
#define TO_ROW { .name = "to", .type = FIELD_WORD, AT(to), .max = 128, .help = "Id or name of a checkpoint; leave it out to undo the last cell." }
#define COUNT_ROW { .name = "count", .type = FIELD_UINT, AT(count), .min = 1, .max = 64, .default_text = "1", .help = "How many copies to make." }
#define WINDOW_ROW { .name = "window", .type = FIELD_UINT, AT(window), .max = 4294967295.0, .help = "Id of one window; the whole screen when left out." }

static const char *const encodings[] = { "utf-8", "base64", NULL };

/* clang-format off */
static const struct field run_python_rows[] = { CODE_ROW, SESSION_ROW, TIMEOUT_ROW, PACKAGES_ROW, SCREENSHOT_ROW, DETACH_ROW };
static const struct field run_shell_rows[] = { COMMAND_ROW, SESSION_ROW, TIMEOUT_ROW, CWD_ROW };
static const struct field write_file_rows[] = { PATH_ROW, CONTENT_ROW, ENCODING_ROW, SESSION_ROW };
static const struct field read_file_rows[] = { SESSION_REQUIRED, PATH_ROW, OFFSET_ROW, LIMIT_ROW };
static const struct field list_files_rows[] = { SESSION_REQUIRED, FOLDER_ROW, RECURSIVE_ROW };
static const struct field rollback_rows[] = { SESSION_REQUIRED, TO_ROW };
static const struct field fork_rows[] = { SESSION_REQUIRED, COUNT_ROW };
static const struct field close_rows[] = { SESSION_REQUIRED };
static const struct field screenshot_rows[] = { SESSION_REQUIRED, WINDOW_ROW };
static const struct field python_rows[] = { CODE_ROW };
static const struct field all_rows[] = { SESSION_ROW, CODE_ROW, COMMAND_ROW, CONTENT_ROW, CWD_ROW, FOLDER_ROW, TO_ROW, PACKAGES_ROW };
/* clang-format on */

static const struct fields run_python_fields = FIELDS("RunPython", run_python_rows);
static const struct fields run_shell_fields = FIELDS("RunShell", run_shell_rows);
static const struct fields write_file_fields = FIELDS("WriteFile", write_file_rows);
static const struct fields read_file_fields = FIELDS("ReadFile", read_file_rows);
static const struct fields list_files_fields = FIELDS("ListFiles", list_files_rows);
static const struct fields rollback_fields_mcp = FIELDS("Rollback", rollback_rows);
static const struct fields fork_fields_mcp = FIELDS("ForkSession", fork_rows);
static const struct fields close_fields = FIELDS("CloseSession", close_rows);
static const struct fields screenshot_fields_mcp = FIELDS("Screenshot", screenshot_rows);
static const struct fields python_fields = FIELDS("Python", python_rows);
extern const struct fields mcp_all_fields;
const struct fields mcp_all_fields = FIELDS("All", all_rows); /* to free what any of the tables filled in */

/* ---- results ------------------------------------------------------------------------------ */

#define FILES_SCHEMA \
	"\"files\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}," \
	"\"size\":{\"type\":\"integer\"},\"change\":{\"type\":\"string\"}}}}"
/* A failed call has null where a successful one has a value, so that one schema describes both. */
#define ERROR_SCHEMA "\"error\":{\"type\":[\"object\",\"null\"],\"properties\":{\"type\":{\"type\":\"string\"}," \
	"\"message\":{\"type\":\"string\"},\"traceback\":{\"type\":\"string\"},\"line\":{\"type\":[\"integer\",\"null\"]}," \
	"\"remediation\":{\"type\":\"string\"}}}"
#define ID_SCHEMA "\"session_id\":{\"type\":[\"string\",\"null\"]}"
#define OBJECT_SCHEMA(members) "{\"type\":\"object\",\"properties\":{" members "," ERROR_SCHEMA "},\"required\":[\"error\"]}"

static const char run_schema[] = OBJECT_SCHEMA(ID_SCHEMA
	",\"status\":{\"type\":\"string\",\"enum\":[\"ok\",\"error\",\"timeout\",\"interrupted\",\"out_of_memory\",\"killed\","
	"\"refused\",\"running\"]},\"exit_code\":{\"type\":\"integer\"},\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"},"
	"\"result\":{\"type\":[\"string\",\"null\"]}," FILES_SCHEMA ",\"state_lost\":{\"type\":\"boolean\"},"
	"\"rolled_back\":{\"type\":\"boolean\"},\"truncated\":{\"type\":\"boolean\"}");
static const char file_schema[] = OBJECT_SCHEMA(ID_SCHEMA ",\"path\":{\"type\":[\"string\",\"null\"]},\"size\":{\"type\":[\"integer\",\"null\"]}");
static const char read_schema[] = OBJECT_SCHEMA(
	ID_SCHEMA ",\"path\":{\"type\":[\"string\",\"null\"]},\"size\":{\"type\":[\"integer\",\"null\"]},"
		  "\"offset\":{\"type\":[\"integer\",\"null\"]},\"truncated\":{\"type\":[\"boolean\",\"null\"]}");
static const char list_schema[] = OBJECT_SCHEMA(
	ID_SCHEMA ",\"files\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
		  "\"size\":{\"type\":\"integer\"},\"type\":{\"type\":\"string\"}}}},\"truncated\":{\"type\":\"boolean\"}");
static const char rollback_schema[] = OBJECT_SCHEMA(ID_SCHEMA ",\"checkpoint\":{\"type\":[\"string\",\"null\"]},\"cell\":{\"type\":[\"integer\",\"null\"]}");
static const char fork_schema[] = OBJECT_SCHEMA("\"session_ids\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}");
static const char session_schema[] = OBJECT_SCHEMA(ID_SCHEMA);
static const char screen_schema[] = OBJECT_SCHEMA(
	ID_SCHEMA ",\"width\":{\"type\":[\"integer\",\"null\"]},\"height\":{\"type\":[\"integer\",\"null\"]},\"note\":{\"type\":[\"string\",\"null\"]}");

static const char computer_schema[] =
	"{\"type\":\"object\",\"properties\":{\"session_id\":{\"type\":\"string\",\"description\":\"The session to use.\"},"
	"\"action\":{\"type\":\"string\",\"enum\":[\"key\",\"type\",\"mouse_move\",\"left_click\",\"left_click_drag\",\"right_click\","
	"\"middle_click\",\"double_click\",\"triple_click\",\"left_mouse_down\",\"left_mouse_up\",\"scroll\",\"hold_key\",\"wait\","
	"\"cursor_position\",\"screenshot\"],\"description\":\"What to do.\"},"
	"\"coordinate\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"description\":\"[x, y] on the screen.\"},"
	"\"start_coordinate\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"description\":\"Where a drag starts.\"},"
	"\"text\":{\"type\":\"string\",\"description\":\"Text to type, or keys such as ctrl+s.\"},"
	"\"scroll_direction\":{\"type\":\"string\",\"enum\":[\"up\",\"down\",\"left\",\"right\"]},"
	"\"scroll_amount\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},"
	"\"duration\":{\"type\":\"number\",\"description\":\"Seconds, for hold_key and wait.\"}},"
	"\"required\":[\"session_id\",\"action\"],\"additionalProperties\":false}";

/* ---- the table ------------------------------------------------------------------------------ */

const struct mcp_tool mcp_tools[] = {
	{ .name = "run_python",
		.title = "Run Python",
		.description =
			"Run Python code in a sandboxed session. Variables, imports and files in /workspace are kept between calls that "
			"pass the same session_id; leave session_id out to start a new session. Returns what was printed, the value of "
			"the last expression, errors with their traceback, and matplotlib figures as pictures. numpy, pandas and "
			"matplotlib are installed. Set screenshot to see windows (tkinter, turtle, pygame). If the code crashes the "
			"interpreter or runs into its time limit, the session goes back to the state before the call. No network unless "
			"the server allows it.",
		.input = &run_python_fields,
		.output_schema = run_schema,
		.call = mcp_call_run_python },
	{ .name = "run_shell",
		.title = "Run a shell command",
		.description =
			"Run a bash command in a session, beside its Python interpreter and with the same files. Starts in /workspace. "
			"Every command is a new shell: variables and cd do not carry over to the next command. Returns stdout, stderr and "
			"the exit code. Leave session_id out to start a new session.",
		.input = &run_shell_fields,
		.output_schema = run_schema,
		.call = mcp_call_run_shell },
	{ .name = "write_file",
		.title = "Write a file",
		.description = "Write a file below /workspace of a session. Creates missing directories and replaces an existing file. "
			       "Leave session_id out to start a new session.",
		.input = &write_file_fields,
		.output_schema = file_schema,
		.flags = MCP_IDEMPOTENT | MCP_DESTRUCTIVE,
		.call = mcp_call_write_file },
	{ .name = "read_file",
		.title = "Read a file",
		.description = "Read a file below /workspace of a session. Text is returned as text, pictures as pictures, other files "
			       "in base64. Use offset and limit to page through a long file.",
		.input = &read_file_fields,
		.output_schema = read_schema,
		.flags = MCP_READ_ONLY | MCP_IDEMPOTENT | MCP_NEEDS_SESSION,
		.call = mcp_call_read_file },
	{ .name = "list_files",
		.title = "List files",
		.description = "List the files below /workspace of a session, with their sizes.",
		.input = &list_files_fields,
		.output_schema = list_schema,
		.flags = MCP_READ_ONLY | MCP_IDEMPOTENT | MCP_NEEDS_SESSION,
		.call = mcp_call_list_files },
	{ .name = "rollback",
		.title = "Undo",
		.description = "Put a session back to the state before its last cell, or to a checkpoint: variables and files are as "
			       "they were then.",
		.input = &rollback_fields_mcp,
		.output_schema = rollback_schema,
		.flags = MCP_DESTRUCTIVE | MCP_NEEDS_SESSION,
		.call = mcp_call_rollback },
	{ .name = "fork_session",
		.title = "Fork a session",
		.description = "Copy a live session in milliseconds: each copy has the same variables and files and goes its own way "
			       "from here. Use it to try several ideas from one state.",
		.input = &fork_fields_mcp,
		.output_schema = fork_schema,
		.flags = MCP_NEEDS_SESSION,
		.call = mcp_call_fork },
	{ .name = "close_session",
		.title = "Close a session",
		.description = "End a session. Its variables, files and processes are gone. Idle sessions end by themselves.",
		.input = &close_fields,
		.output_schema = session_schema,
		.flags = MCP_DESTRUCTIVE | MCP_IDEMPOTENT | MCP_NEEDS_SESSION,
		.call = mcp_call_close },
	{ .name = "screenshot",
		.title = "Take a screenshot",
		.description = "Return a picture of a session's screen, also while code runs in it.",
		.input = &screenshot_fields_mcp,
		.output_schema = screen_schema,
		.flags = MCP_READ_ONLY | MCP_NEEDS_DISPLAY | MCP_NEEDS_SESSION,
		.call = mcp_call_screenshot },
	{ .name = "computer",
		.title = "Use mouse and keyboard",
		.description = "Use the mouse and the keyboard on a session's screen: click, type, scroll, drag. Returns a picture of "
			       "the screen after the action. Coordinates are pixels of that picture.",
		.input_schema = computer_schema,
		.output_schema = screen_schema,
		.flags = MCP_NEEDS_DISPLAY | MCP_NEEDS_SESSION,
		.call = mcp_call_computer },
};
const size_t mcp_tools_count = ARRAY_LEN(mcp_tools);

const struct mcp_tool mcp_python_tool = { .name = "python",
	.title = "Python",
	.description = "Run Python code. Variables are kept between calls. Print what you want to see.",
	.input = &python_fields,
	.output_schema = run_schema,
	.call = mcp_call_python };

/* ---- listing -------------------------------------------------------------------------------- */

bool mcp_tool_offered(const struct mcp *home, const struct mcp_tool *t)
{
	char *const *names = home->config.tools;
	if (t->flags & MCP_NEEDS_DISPLAY && !home->config.display)
		return false;
	for (; names && *names; names++)
		if (text_eq(*names, t->name))
			return true;
	return !home->config.tools;
}

static void put_annotations(struct json_writer *w, const struct mcp *home, const struct mcp_tool *t)
{
	json_key(w, "annotations");
	json_open_object(w);
	json_field_cstr(w, "title", t->title);
	json_field_bool(w, "readOnlyHint", t->flags & MCP_READ_ONLY);
	json_field_bool(w, "destructiveHint", t->flags & MCP_DESTRUCTIVE);
	json_field_bool(w, "idempotentHint", t->flags & MCP_IDEMPOTENT);
	json_field_bool(w, "openWorldHint", home->config.open_world);
	json_close(w);
}

static void put_tool(struct json_writer *w, const struct mcp *home, const struct mcp_tool *t)
{
	json_open_object(w);
	json_field_cstr(w, "name", t->name);
	json_field_cstr(w, "title", t->title);
	json_field_cstr(w, "description", t->description);
	json_key(w, "inputSchema");
	if (t->input)
		fields_write_schema(t->input, w);
	else
		json_put_raw(w, t->input_schema, strlen(t->input_schema));
	json_field_raw(w, "outputSchema", t->output_schema, strlen(t->output_schema));
	put_annotations(w, home, t);
	json_close(w);
}

void mcp_tools_list(struct mcp_request *r)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (json_object_get(r->params, "cursor")) {
		mcp_fail(r, MCP_INVALID_PARAMS, 200, "unknown cursor: the list of tools has one page", NULL);
		return;
	}

	mcp_begin_result(r, &w, &b);
	json_key(&w, "tools");
	json_open_array(&w);
	if (r->client && r->client->python_tool)
		put_tool(&w, r->home, &mcp_python_tool);
	else
		for (size_t i = 0; i < mcp_tools_count; i++)
			if (mcp_tool_offered(r->home, &mcp_tools[i]))
				put_tool(&w, r->home, &mcp_tools[i]);
	json_close(&w);
	json_field_uint(&w, "ttlMs", 300000);
	json_field_cstr(&w, "cacheScope", "public");
	mcp_respond(r, &w, &b);
}

/* ---- results ---------------------------------------------------------------------------------- */

void mcp_put_text(struct json_writer *w, const char *text, size_t len)
{
	json_open_object(w);
	json_field_cstr(w, "type", "text");
	json_field_text(w, "text", text, len);
	json_close(w);
}

void mcp_put_image(struct json_writer *w, const char *mime, const char *base64, size_t len)
{
	json_open_object(w);
	json_field_cstr(w, "type", "image");
	json_field_text(w, "data", base64, len);
	json_field_cstr(w, "mimeType", mime);
	json_close(w);
}

/* The result object of a tool, for a response or for a task. */
static void put_result(struct json_writer *w, const struct buffer *content, const struct buffer *structured, bool is_error)
{
	json_field_raw(w, "content", content->data, content->len);
	if (structured && structured->len)
		json_field_raw(w, "structuredContent", structured->data, structured->len);
	json_field_bool(w, "isError", is_error);
}

void mcp_send_result(struct mcp_request *r, struct buffer *content, struct buffer *structured, bool is_error)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (r->task) {
		json_writer_init(&w, &b);
		json_open_object(&w);
		put_result(&w, content, structured, is_error);
		json_close(&w);
		mcp_task_take(r, &b);
		mcp_cancel(r); /* nobody waits for a response */
		return;
	}
	mcp_begin_result(r, &w, &b);
	put_result(&w, content, structured, is_error);
	mcp_respond(r, &w, &b);
}

void mcp_tool_done(struct mcp_request *r, const struct buffer *text, const struct buffer *structured, bool is_error)
{
	_cleanup_buffer_ struct buffer content = BUFFER_INIT(0), copy = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &content);
	json_open_array(&w);
	mcp_put_text(&w, text->data ? text->data : "", text->len);
	json_close(&w);
	buffer_append(&copy, structured->data, structured->len);
	mcp_send_result(r, &content, &copy, is_error);
}

void mcp_tool_error(struct mcp_request *r, const char *text, const char *remedy)
{
	_cleanup_buffer_ struct buffer said = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct json_writer w;

	buffer_append_str(&said, text);
	if (remedy && *remedy)
		buffer_printf(&said, "\n%s", remedy);
	json_writer_init(&w, &structured);
	json_open_object(&w);
	json_field_cstr(&w, "session_id", *r->session ? r->session : NULL);
	json_key(&w, "error");
	json_open_object(&w);
	json_field_cstr(&w, "type", "ToolError");
	json_field_text(&w, "message", text, strlen(text));
	json_field_cstr(&w, "traceback", "");
	json_field_null(&w, "line");
	json_field_cstr(&w, "remediation", remedy ? remedy : "");
	json_close(&w);
	json_close(&w);
	mcp_tool_done(r, &said, &structured, true);
}

void mcp_tool_error_of(struct mcp_request *r, const struct error *e)
{
	bool gone = text_eq(e->slug, "session_not_found") || text_eq(e->slug, "session_gone");
	mcp_tool_error(r, e->text, gone ? "Leave session_id out to start a new session." : e->remedy);
}

/* ---- calling ------------------------------------------------------------------------------------ */

static const struct mcp_tool *find_tool(const struct mcp_request *r, const char *name)
{
	if (r->client && r->client->python_tool)
		return text_eq(name, mcp_python_tool.name) ? &mcp_python_tool : NULL;
	for (size_t i = 0; i < mcp_tools_count; i++)
		if (text_eq(name, mcp_tools[i].name) && mcp_tool_offered(r->home, &mcp_tools[i]))
			return &mcp_tools[i];
	return NULL;
}

static int read_arguments(struct mcp_request *r, struct error *e)
{
	_cleanup_json_ json_t *none = NULL;
	const json_t *given = json_object_get(r->params, "arguments");
	if (!given)
		given = none = json_object();
	if (!json_is_object(given))
		return error_set(e, -EINVAL, "arguments must be an object");

	r->arguments = calloc(1, sizeof(*r->arguments));
	if (!r->arguments)
		return error_set(e, -ENOMEM, "the server is out of memory");
	if (r->tool->input)
		return fields_decode(r->tool->input, given, r->arguments, e);
	const char *id = json_string_value(json_object_get(given, "session_id"));
	if (id)
		r->arguments->session_id = strdup(id);
	return id ? 0 : error_set(e, -EINVAL, "$.session_id: is required");
}

void mcp_tools_call(struct mcp_request *r)
{
	struct error e = { 0 };
	struct session *s = NULL;
	char text[160];
	const char *name = json_string_value(json_object_get(r->params, "name"));

	r->tool = name ? find_tool(r, name) : NULL;
	if (!r->tool) {
		snprintf(text, sizeof(text), "unknown tool: %.100s", name ? name : "(params.name must be a string)");
		mcp_fail(r, MCP_INVALID_PARAMS, 200, text, NULL);
		return;
	}
	if (read_arguments(r, &e) < 0 || api_check_open(r->home->api, &e) < 0) {
		mcp_tool_error(r, e.text, e.remedy);
		return;
	}
	if (r->tool->flags & MCP_NEEDS_SESSION) {
		snprintf(r->session, sizeof(r->session), "%s", r->arguments->session_id);
		if (api_session(r->home->api, r->arguments->session_id, r->owner, &e, &s) < 0) {
			*r->session = '\0';
			mcp_tool_error_of(r, &e);
			return;
		}
	}
	r->tool->call(r, s);
}
