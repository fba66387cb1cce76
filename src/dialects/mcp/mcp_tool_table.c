/*
 * The table of MCP's tools: what models read about them, their arguments and the schemas of their
 * results.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "base/text.h"
#include "dialects/mcp/mcp.h"

/* ---- arguments -------------------------------------------------------------------------- */

#define AT(member) .offset = offsetof(struct mcp_arguments, member)
#define SESSION_HELP \
	"The session to use, from an earlier result. Leave it out to start a new session."

#define SESSION_ROW                                                                  \
	{                                                                            \
		.name = "session_id", .type = FIELD_WORD, AT(session_id), .max = 64, \
		.help = SESSION_HELP                                                 \
	}
#define SESSION_REQUIRED                                                                           \
	{                                                                                          \
		.name = "session_id", .type = FIELD_WORD, .flags = FIELD_REQUIRED, AT(session_id), \
		.max = 64, .help = "The session to use."                                           \
	}
#define CODE_ROW                                                                                 \
	{                                                                                        \
		.name = "code", .type = FIELD_TEXT, .flags = FIELD_REQUIRED | FIELD_NUL_ALLOWED, \
		AT(code), .max = LIMIT_CODE_BYTES, .help = "Python source to run."               \
	}
#define COMMAND_ROW                                                                          \
	{                                                                                    \
		.name = "command", .type = FIELD_TEXT, .flags = FIELD_REQUIRED, AT(command), \
		.max = 128 * 1024 - 1, .help = "Shell command, run by bash."                 \
	}
#define TIMEOUT_ROW                                                                                    \
	{                                                                                              \
		.name = "timeout_s", .type = FIELD_NUMBER, AT(timeout_s), .min = 0.1, .max = 3600,     \
		.help = "Time limit in seconds; the tool's description says the default and the most." \
	}
#define CWD_ROW                                                                      \
	{                                                                            \
		.name = "cwd", .type = FIELD_WORD, AT(cwd), .max = LIMIT_PATH_BYTES, \
		.help = "Working directory; /workspace when left out."               \
	}
#define PACKAGES_ROW                                                                              \
	{                                                                                         \
		.name = "packages", .type = FIELD_WORDS, AT(packages), .max = 32,                 \
		.max_bytes = 256,                                                                 \
		.help = "Packages from PyPI to install first, such as \"rich\" or \"pandas>=2\"." \
	}
#define SCREENSHOT_ROW                                                                             \
	{                                                                                          \
		.name = "screenshot", .type = FIELD_BOOL, AT(screenshot), .default_text = "false", \
		.help = "Also return a picture of the windows that the code opens."                \
	}
#define DETACH_ROW                                                                         \
	{                                                                                  \
		.name = "detach", .type = FIELD_BOOL, AT(detach), .default_text = "false", \
		.help = "Return a task at once; needs a client with the tasks extension."  \
	}
#define PATH_ROW                                                                                 \
	{                                                                                        \
		.name = "path", .type = FIELD_WORD, .flags = FIELD_REQUIRED, AT(path), .min = 1, \
		.max = LIMIT_PATH_BYTES, .help = "Path below /workspace, such as data/a.csv."    \
	}
#define FOLDER_ROW                                                                     \
	{                                                                              \
		.name = "path", .type = FIELD_WORD, AT(path), .max = LIMIT_PATH_BYTES, \
		.help = "Directory below /workspace; all of it when left out."         \
	}
#define CONTENT_ROW                                                                                \
	{                                                                                          \
		.name = "content", .type = FIELD_TEXT,                                             \
		.flags = FIELD_REQUIRED | FIELD_NUL_ALLOWED, AT(content), .max = LIMIT_BODY_BYTES, \
		.help = "The file's content."                                                      \
	}
#define ENCODING_ROW                                                                          \
	{                                                                                     \
		.name = "encoding", .type = FIELD_CHOICE, AT(encoding), .choices = encodings, \
		.default_text = "utf-8", .help = "How content is written."                    \
	}
#define OFFSET_ROW                                                             \
	{                                                                      \
		.name = "offset", .type = FIELD_UINT, AT(offset), .max = 1e15, \
		.default_text = "0", .help = "First byte to read."             \
	}
#define LIMIT_ROW                                                                         \
	{                                                                                 \
		.name = "limit", .type = FIELD_UINT, AT(limit), .min = 1, .max = 1 << 20, \
		.default_text = "30000", .help = "Most bytes to read."                    \
	}
#define RECURSIVE_ROW                                                                            \
	{                                                                                        \
		.name = "recursive", .type = FIELD_BOOL, .flags = FIELD_HAS_FLAG, AT(recursive), \
		.flag_offset = offsetof(struct mcp_arguments, has_recursive),                    \
		.default_text = "true", .help = "Also list the contents of subdirectories."      \
	}
#define TO_ROW                                                                                                                \
	{                                                                                                                     \
		.name = "to", .type = FIELD_WORD, AT(to), .max = 128,                                                         \
		.help = "Id or name of a checkpoint that was taken through the HTTP API; leave it out to undo the last call." \
	}
#define COUNT_ROW                                                                    \
	{                                                                            \
		.name = "count", .type = FIELD_UINT, AT(count), .min = 1, .max = 64, \
		.default_text = "1", .help = "How many copies to make."              \
	}
#define WINDOW_ROW                                                                     \
	{                                                                              \
		.name = "window", .type = FIELD_UINT, AT(window), .max = 4294967295.0, \
		.help = "Id of one window; the whole screen when left out."            \
	}

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
const struct fields mcp_all_fields = FIELDS("All", all_rows);

/* ---- results ------------------------------------------------------------------------------ */

#define FILES_SCHEMA                                                                                                   \
	"\"files\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}," \
	"\"size\":{\"type\":\"integer\"},\"change\":{\"type\":\"string\"}}}}"
/* A failed call has null where a successful one has a value, so that one schema describes both. */
#define ERROR_SCHEMA                                                                                                        \
	"\"error\":{\"type\":[\"object\",\"null\"],\"properties\":{\"type\":{\"type\":\"string\"},"                         \
	"\"message\":{\"type\":\"string\"},\"traceback\":{\"type\":\"string\"},\"line\":{\"type\":[\"integer\",\"null\"]}," \
	"\"remediation\":{\"type\":\"string\"}}}"
#define ID_SCHEMA "\"session_id\":{\"type\":[\"string\",\"null\"]}"
#define OBJECT_SCHEMA(members)                                           \
	"{\"type\":\"object\",\"properties\":{" members "," ERROR_SCHEMA \
	"},\"required\":[\"error\"]}"

static const char run_schema[] = OBJECT_SCHEMA(ID_SCHEMA
	",\"status\":{\"type\":\"string\",\"enum\":[\"ok\",\"error\",\"timeout\",\"interrupted\",\"out_of_memory\",\"killed\","
	"\"refused\",\"running\"]},\"exit_code\":{\"type\":\"integer\"},\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"},"
	"\"result\":{\"type\":[\"string\",\"null\"]},\"final_answer\":{\"type\":\"string\"}," FILES_SCHEMA
	",\"state_lost\":{\"type\":\"boolean\"},"
	"\"rolled_back\":{\"type\":\"boolean\"},\"truncated\":{\"type\":\"boolean\"}");
static const char file_schema[] = OBJECT_SCHEMA(ID_SCHEMA
	",\"path\":{\"type\":[\"string\",\"null\"]},\"size\":{\"type\":[\"integer\",\"null\"]}");
static const char read_schema[] = OBJECT_SCHEMA(ID_SCHEMA
	",\"path\":{\"type\":[\"string\",\"null\"]},\"size\":{\"type\":[\"integer\",\"null\"]},"
	"\"offset\":{\"type\":[\"integer\",\"null\"]},\"truncated\":{\"type\":[\"boolean\",\"null\"]}");
static const char list_schema[] = OBJECT_SCHEMA(ID_SCHEMA
	",\"files\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
	"\"size\":{\"type\":\"integer\"},\"type\":{\"type\":\"string\"}}}},\"truncated\":{\"type\":\"boolean\"}");
static const char rollback_schema[] = OBJECT_SCHEMA(ID_SCHEMA
	",\"checkpoint\":{\"type\":[\"string\",\"null\"]},\"cell\":{\"type\":[\"integer\",\"null\"]}");
static const char fork_schema[] = OBJECT_SCHEMA(
	"\"session_ids\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}");
static const char session_schema[] = OBJECT_SCHEMA(ID_SCHEMA);
static const char screen_schema[] = OBJECT_SCHEMA(ID_SCHEMA
	",\"width\":{\"type\":[\"integer\",\"null\"]},\"height\":{\"type\":[\"integer\",\"null\"]},\"note\":{\"type\":[\"string\",\"null\"]},"
	"\"coordinate\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}");

static const char computer_schema[] =
	"{\"type\":\"object\",\"properties\":{\"session_id\":{\"type\":\"string\",\"description\":\"The session to use.\"},"
	"\"action\":{\"type\":\"string\",\"enum\":[\"key\",\"type\",\"mouse_move\",\"left_click\",\"left_click_drag\",\"right_click\","
	"\"middle_click\",\"double_click\",\"triple_click\",\"left_mouse_down\",\"left_mouse_up\",\"scroll\",\"hold_key\",\"wait\","
	"\"cursor_position\",\"screenshot\",\"zoom\"],\"description\":\"What to do.\"},"
	"\"coordinate\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"description\":\"[x, y] on the screen.\"},"
	"\"start_coordinate\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"description\":\"Where a drag starts.\"},"
	"\"text\":{\"type\":\"string\",\"description\":\"Text to type, or keys such as ctrl+s.\"},"
	"\"scroll_direction\":{\"type\":\"string\",\"enum\":[\"up\",\"down\",\"left\",\"right\"]},"
	"\"scroll_amount\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},"
	"\"region\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"description\":\"[x0, y0, x1, y1] on the screen, for zoom.\"},"
	"\"duration\":{\"type\":\"number\",\"description\":\"Seconds, for hold_key and wait.\"}},"
	"\"required\":[\"session_id\",\"action\"],\"additionalProperties\":false}";

/* ---- the table ------------------------------------------------------------------------------ */

const struct mcp_tool mcp_tools[] = {
	{ .name = "run_python",
		.title = "Run Python",
		.description =
			"Run Python in a sandboxed session. Leave session_id out to start one; pass the id from its result to later "
			"calls: variables, imports and files in /workspace are kept. Returns output, the value of the last expression, "
			"errors, changed files, and matplotlib figures as pictures. numpy, pandas and matplotlib are available. If the "
			"code kills the interpreter, the session is rolled back.",
		.about_windows =
			"Windows open on the session's screen: set screenshot; mainloop() returns at once.",
		.input = &run_python_fields,
		.output_schema = run_schema,
		.flags = MCP_RUNS_CODE,
		.call = mcp_call_run_python },
	{ .name = "run_shell",
		.title = "Run a shell command",
		.description =
			"Run a bash command in a session, with the same files as run_python. Every command is a new shell that starts in "
			"/workspace: cd and variables do not carry over, files do. Standard input is empty. Returns stdout, stderr and the "
			"exit code; one that is not 0 counts as an error. Leave session_id out to start a new session.",
		.input = &run_shell_fields,
		.output_schema = run_schema,
		.flags = MCP_RUNS_CODE,
		.call = mcp_call_run_shell },
	{ .name = "write_file",
		.title = "Write a file",
		.description =
			"Write a file below /workspace of a session. Creates missing directories and replaces an existing file. "
			"Leave session_id out to start a new session; the result says its id.",
		.input = &write_file_fields,
		.output_schema = file_schema,
		.flags = MCP_IDEMPOTENT | MCP_DESTRUCTIVE,
		.call = mcp_call_write_file },
	{ .name = "read_file",
		.title = "Read a file",
		.description =
			"Read a file below /workspace of a session. Pictures (PNG, JPEG, GIF, WebP) are returned as pictures, text as text, "
			"other bytes in base64. A call returns at most 30,000 bytes unless limit says more; where there is more, the result "
			"says the offset to read on from.",
		.input = &read_file_fields,
		.output_schema = read_schema,
		.flags = MCP_READ_ONLY | MCP_IDEMPOTENT | MCP_NEEDS_SESSION,
		.call = mcp_call_read_file },
	{ .name = "list_files",
		.title = "List files",
		.description =
			"List the files and directories below /workspace of a session, with their sizes, at most 1,000.",
		.input = &list_files_fields,
		.output_schema = list_schema,
		.flags = MCP_READ_ONLY | MCP_IDEMPOTENT | MCP_NEEDS_SESSION,
		.call = mcp_call_list_files },
	{ .name = "rollback",
		.title = "Undo",
		.description =
			"Undo the last run_python or run_shell of a session: variables and files are as they were before it. Calls "
			"without effect on the session, such as read_file, do not count. A session with open windows cannot be rolled back.",
		.input = &rollback_fields_mcp,
		.output_schema = rollback_schema,
		.flags = MCP_DESTRUCTIVE | MCP_NEEDS_SESSION,
		.call = mcp_call_rollback },
	{ .name = "fork_session",
		.title = "Fork a session",
		.description =
			"Copy a live session in milliseconds: each copy has the same variables and files and continues independently "
			"from here. Use it to try several ideas from one state. Copies have no screen; the session itself is unchanged.",
		.input = &fork_fields_mcp,
		.output_schema = fork_schema,
		.flags = MCP_NEEDS_SESSION,
		.call = mcp_call_fork },
	{ .name = "close_session",
		.title = "Close a session",
		.description =
			"End a session that is no longer needed. Its variables, files and processes are deleted.",
		.input = &close_fields,
		.output_schema = session_schema,
		.flags = MCP_DESTRUCTIVE | MCP_IDEMPOTENT | MCP_NEEDS_SESSION,
		.call = mcp_call_close },
	{ .name = "screenshot",
		.title = "Take a screenshot",
		.description =
			"Return a picture of a session's screen with all its windows, also while code runs in it.",
		.input = &screenshot_fields_mcp,
		.output_schema = screen_schema,
		.flags = MCP_READ_ONLY | MCP_NEEDS_DISPLAY | MCP_NEEDS_SESSION,
		.call = mcp_call_screenshot },
	{ .name = "computer",
		.title = "Use mouse and keyboard",
		.description =
			"Use the mouse and the keyboard on a session's screen: click, type, scroll, drag. Returns a picture of "
			"the screen after the action. Coordinates are pixels of that picture, [0, 0] at the top left. Open a window with "
			"run_python first.",
		.input_schema = computer_schema,
		.output_schema = screen_schema,
		.flags = MCP_NEEDS_DISPLAY | MCP_NEEDS_SESSION,
		.call = mcp_call_computer },
};
const size_t mcp_tools_count = ARRAY_LEN(mcp_tools);

const struct mcp_tool mcp_python_tool = { .name = "python",
	.title = "Python",
	.description =
		"Run Python code. Variables are kept between calls. Print what you want to see.",
	.input = &python_fields,
	.output_schema = run_schema,
	.flags = MCP_RUNS_CODE,
	.call = mcp_call_python };
