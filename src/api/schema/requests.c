#include "api/schema/requests.h"

#include "base/limits.h"

/* Above what any server allows: the session table knows its own maxima and says them. */
#define SIZE_MOST ((double)(1ULL << 50))
#define YEAR_SECONDS 31536000.0

/* ---- rows that several tables share ------------------------------------- */

static const struct field limits_table[] = {
	{ "timeout_s", FIELD_NUMBER, .offset = offsetof(struct session_limits, timeout_s),
		.min = 0.1, .max = 3600, .default_text = "30", .example = "10",
		.help = "Limit on the wall time of one cell, in seconds." },
	{ "output_bytes", FIELD_UINT, .offset = offsetof(struct session_limits, output_bytes),
		.min = 1024, .max = SIZE_MOST, .default_text = "1 MiB",
		.help = "Bytes of stdout and of stderr, each, kept in an observation (head and tail)." },
	{ "memory_bytes", FIELD_UINT, .offset = offsetof(struct session_limits, memory_bytes),
		.min = 16 << 20, .max = SIZE_MOST, .default_text = "the server's",
		.example = "536870912",
		.help = "Memory of the session, including its files; beyond this limit the code gets a MemoryError, or is killed." },
	{ "processes", FIELD_UINT, .offset = offsetof(struct session_limits, processes), .min = 1,
		.max = 65536, .default_text = "256", .help = "Processes and threads at once." },
	{ "cpus", FIELD_NUMBER, .offset = offsetof(struct session_limits, cpus), .min = 0.01,
		.max = 1024, .default_text = "no limit", .example = "0.5",
		.help = "Number of CPUs that the session may use; 0.5 is half of a CPU. Needs control groups." },
	{ "cpu_s", FIELD_NUMBER, .offset = offsetof(struct session_limits, cpu_s), .min = 0.1,
		.max = 86400.0 * 365, .default_text = "no limit", .example = "20",
		.help = "CPU seconds of one cell, all its processes together; beyond this limit the cell is interrupted (cpu_limit)." },
	{ "session_cpu_s", FIELD_NUMBER, .offset = offsetof(struct session_limits, session_cpu_s),
		.min = 0.1, .max = 86400.0 * 365, .default_text = "no limit", .example = "600",
		.help = "CPU seconds of the whole session; the session ends when they are used up." },
	{ "inodes", FIELD_UINT, .offset = offsetof(struct session_limits, inodes), .min = 64,
		.max = 1 << 30, .default_text = "65536",
		.help = "Number of files and directories in /workspace and in /tmp, each." },
	{ "file_bytes", FIELD_UINT, .offset = offsetof(struct session_limits, file_bytes),
		.min = 4096, .max = SIZE_MOST, .default_text = "1 GiB",
		.help = "Size of one file; writing beyond it fails with EFBIG." },
	{ "open_files", FIELD_UINT, .offset = offsetof(struct session_limits, open_files),
		.min = 16, .max = 1 << 20, .default_text = "1024",
		.help = "Open files of one process." },
	{ "total_output_bytes", FIELD_UINT,
		.offset = offsetof(struct session_limits, total_output_bytes), .min = 1024,
		.max = SIZE_MOST, .default_text = "1 GiB",
		.help = "Total output of a cell, shown or not; beyond this limit the cell is stopped (output_limit)." },
	{ "disk_bytes", FIELD_UINT, .offset = offsetof(struct session_limits, disk_bytes),
		.min = 1 << 20, .max = SIZE_MOST, .default_text = "the server's",
		.help = "Size of /workspace and of /tmp, each." },
	{ "log_bytes", FIELD_UINT, .offset = offsetof(struct session_limits, log_bytes),
		.min = 1024, .max = SIZE_MOST, .default_text = "the server's",
		.help = "Bytes of output kept for GET …/logs." },
};
static const struct fields limits_fields = FIELDS("Limits", limits_table);

/* In the order of enum jail_exec. */
static const char *const exec_names[] = { "system", "none", "any", NULL };

#define SESSION_ROWS(base)                                                                                                         \
	{ "name", FIELD_WORD, .offset = (base) + offsetof(struct session_params, name), .min = 1,                                  \
		.max = LIMIT_NAME_BYTES, .example = "\"analysis\"",                                                                \
		.help = "A name that you choose, to find the session by." },                                                       \
		{ "env", FIELD_ENV, .offset = (base) + offsetof(struct session_params, env),                                       \
			.max = LIMIT_ENV_COUNT, .max_bytes = LIMIT_ENV_BYTES,                                                      \
			.example = "{\"MODE\":\"test\"}",                                                                          \
			.help = "Environment variables of the interpreter." },                                                     \
		{ "mounts", FIELD_ENV, .offset = (base) + offsetof(struct session_params, mounts),                                 \
			.max = JAIL_MOUNTS_MAX, .max_bytes = LIMIT_ENV_BYTES,                                                      \
			.example = "{\"data\":\"/data\"}",                                                                         \
			.help = "Directories that the server's setting `mount` names, read-only: each "                            \
				"name and where it is, /NAME or below /mnt." },                                                    \
		{ "volumes", FIELD_ENV,                                                                                            \
			.offset = (base) + offsetof(struct session_params, volumes),                                               \
			.max = JAIL_MOUNTS_MAX, .max_bytes = LIMIT_ENV_BYTES,                                                      \
			.example = "{\"results\":\"/mnt/results\",\"data\":\"/mnt/data:ro\"}",                                     \
			.help = "Volumes (POST /v1/volumes): each name and where it is, below /mnt; `:ro` for "                    \
				"reading. A session can write to one volume." },                                                   \
		{ "preload", FIELD_WORDS,                                                                                          \
			.offset = (base) + offsetof(struct session_params, preload),                                               \
			.max = LIMIT_PRELOAD_COUNT, .max_bytes = LIMIT_NAME_BYTES,                                                 \
			.example = "[\"json\",\"numpy\"]",                                                                         \
			.help = "Modules to import before the first cell." },                                                      \
		{ "metadata", FIELD_JSON,                                                                                          \
			.offset = (base) + offsetof(struct session_params, metadata),                                              \
			.max = LIMIT_METADATA_BYTES, .example = "{\"task\":\"42\"}",                                               \
			.help = "Data that you choose; returned unchanged. Lists of sessions can be filtered by "                  \
				"metadata." },                                                                                     \
		{ "profile", FIELD_NAMED,                                                                                          \
			.offset = (base) + offsetof(struct session_params, profile),                                               \
			.max = LIMIT_PROFILE_BYTES, .default_text = "the server's, python",                                        \
			.example = "\"smolagents\"",                                                                               \
			.help = "What the code may import and call: the name of an executor profile (GET /v1/profiles "            \
				"lists them), or a profile of your own as an object." },                                           \
		{ "executor_backend", FIELD_NAMED,                                                                                 \
			.offset = (base) + offsetof(struct session_params, profile),                                               \
			.max = LIMIT_PROFILE_BYTES, .example = "\"restrictedpython\"",                                             \
			.help = "Another name of `profile`, used by coding_env." },                                                \
		{ "additional_imports", FIELD_WORDS,                                                                               \
			.offset = (base) + offsetof(struct session_params, additional_imports),                                    \
			.max = LIMIT_PROFILE_NAMES, .max_bytes = LIMIT_NAME_BYTES,                                                 \
			.example = "[\"numpy\"]",                                                                                  \
			.help = "Modules that the code may import in addition to those of its profile; \"numpy.*\" includes "      \
				"all submodules, \"*\" allows any module." },                                                      \
		{ "exec", FIELD_CHOICE, FIELD_HAS_FLAG,                                                                            \
			.flag_offset = (base) + offsetof(struct session_params, has_exec),                                         \
			.offset = (base) + offsetof(struct session_params, exec),                                                  \
			.choices = exec_names, .default_text = "the server's",                                                     \
			.example = "\"none\"",                                                                                     \
			.help = "Which programs code may start: those of the read-only system, none, "                             \
				"or any, including programs that the code wrote itself." },                                        \
		{ "network", FIELD_NETWORK,                                                                                        \
			.offset = (base) + offsetof(struct session_params, network),                                               \
			.max = LIMIT_NETWORK_RULES, .max_bytes = 288, .default_text = "none",                                      \
			.example = "\"loopback\"",                                                                                 \
			.help = "What the session may reach: none, loopback (a private interface), or {\"allow\": "                \
				"[\"pypi.org:443\", …]}: only these destinations, through a proxy." },                             \
		{ "limits", FIELD_OBJECT,                                                                                          \
			.offset = (base) + offsetof(struct session_params, limits),                                                \
			.object = &limits_fields,                                                                                  \
			.help = "Limits; an omitted limit has the server's default." },                                            \
		{ "ttl_s", FIELD_NUMBER,                                                                                           \
			.offset = (base) + offsetof(struct session_params, ttl_s), .min = 1,                                       \
			.max = YEAR_SECONDS, .default_text = "the server's",                                                       \
			.help = "The session ends this many seconds after its creation." },                                        \
		{ "idle_timeout_s", FIELD_NUMBER,                                                                                  \
			.offset = (base) + offsetof(struct session_params, idle_timeout_s),                                        \
			.min = 1, .max = YEAR_SECONDS, .default_text = "the server's",                                             \
			.help = "The session ends this many seconds after its last cell." },                                       \
		{ "pause_on_expiry", FIELD_BOOL,                                                                                   \
			.offset = (base) + offsetof(struct session_params, pause_on_expiry),                                       \
			.default_text = "false",                                                                                   \
			.help = "When one of these times is over, pause the session instead of ending it." },                      \
		{ "private_ports", FIELD_BOOL,                                                                                     \
			.offset = (base) + offsetof(struct session_params, private_ports),                                         \
			.default_text = "false",                                                                                   \
			.help = "A key is needed for its ports (GET …/ports), also on a server without tokens." },                 \
		{ "seed", FIELD_UINT, FIELD_HAS_FLAG,                                                                              \
			.offset = (base) + offsetof(struct session_params, seed),                                                  \
			.flag_offset = (base) + offsetof(struct session_params, has_seed),                                         \
			.max = 4294967295.0,                                                                                       \
			.help = "Seed of random and numpy.random, so that runs can be repeated." },                                \
		{ "transactions", FIELD_BOOL, FIELD_HAS_FLAG,                                                                      \
			.offset = (base) + offsetof(struct session_params, transactions),                                          \
			.flag_offset = (base) + offsetof(struct session_params, has_transactions),                                 \
			.default_text = "the server's",                                                                            \
			.help = "If a cell kills the interpreter, restore the variables from before the cell." },                  \
		{ "keep_files_bytes", FIELD_UINT, FIELD_HAS_FLAG,                                                                  \
			.offset = (base) + offsetof(struct session_params, keep_files_bytes),                                      \
			.flag_offset = (base) + offsetof(struct session_params, has_keep_files),                                   \
			.max = SIZE_MOST, .default_text = "64 MiB",                                                                \
			.help = "A rollback also restores /workspace, /tmp and /dev/shm, up to this total size; 0: files stay." }, \
	{                                                                                                                          \
		"keep_checkpoints", FIELD_UINT, FIELD_HAS_FLAG,                                                                    \
			.offset = (base) + offsetof(struct session_params, keep_checkpoints),                                      \
			.flag_offset = (base) +                                                                                    \
				       offsetof(struct session_params, has_keep_checkpoints),                                      \
			.max = LIMIT_KEPT_CELLS, .default_text = "1", .example = "5",                                              \
			.help = "Number of cells that can be undone; their snapshots are kept in addition to named checkpoints."   \
	}

#define PACKAGES_ROW(base)                                                                                    \
	{                                                                                                     \
		"packages", FIELD_WORDS,                                                                      \
			.offset = (base) + offsetof(struct session_params, want_packages),                    \
			.max = LIMIT_PACKAGES, .max_bytes = LIMIT_PACKAGE_BYTES,                              \
			.example = "[\"rich\",\"pandas>=2\"]",                                                \
			.help = "Packages to install, in pip's notation; the server keeps each installation." \
	}

#define CODE_ROW(base)                                                             \
	{                                                                          \
		"code", FIELD_TEXT, FIELD_REQUIRED | FIELD_NUL_ALLOWED,            \
			.offset = (base) + offsetof(struct execute_request, code), \
			.max = LIMIT_CODE_BYTES, .example = "\"print(6 * 7)\"",    \
			.help = "Python source."                                   \
	}

#define CELL_ROWS(base)                                                                                \
	{                                                                                              \
		"stdin", FIELD_TEXT, FIELD_NUL_ALLOWED,                                                \
		.offset = (base) + offsetof(struct execute_request, input),                            \
		.max = LIMIT_STDIN_BYTES, .example = "\"yes\\n\"",                                     \
		.help = "Text that input() and sys.stdin read; without it input() fails at once."      \
	},                                                                                             \
	{                                                                                              \
		"timeout_s", FIELD_NUMBER,                                                             \
			.offset = (base) + offsetof(struct execute_request, timeout_s),                \
			.min = 0.1, .max = 3600, .default_text = "the session's", .example = "10",     \
			.help = "Limit on the wall time of this cell, in seconds: it is interrupted, " \
				"and killed after a grace period."                                     \
	}

#define VALUE_ROWS(base)                                                                                                         \
	{ "variables", FIELD_JSON, .offset = (base) + offsetof(struct execute_request, variables),                               \
		.max = LIMIT_VARIABLES_BYTES, .example = "{\"rows\":[1,2,3]}",                                                   \
		.help = "Variables set in the session before the code runs, by name; typed values are objects with "             \
			"a `__type__`." },                                                                                       \
		{ "typed_result", FIELD_BOOL,                                                                                    \
			.offset = (base) + offsetof(struct execute_request, typed_result),                                       \
			.default_text = "false",                                                                                 \
			.help = "Also return the result as application/vnd.glovebox.value+json, where types that "               \
				"JSON lacks are objects with a `__type__`." },                                                   \
		{ "data_forms", FIELD_BOOL,                                                                                      \
			.offset = (base) + offsetof(struct execute_request, data_forms),                                         \
			.default_text = "false",                                                                                 \
			.help = "Also return data frames as application/vnd.glovebox.table+json and matplotlib figures as "      \
				"application/vnd.glovebox.chart+json." },                                                        \
	{                                                                                                                        \
		"printed_final_answer", FIELD_BOOL,                                                                              \
			.offset = (base) + offsetof(struct execute_request, printed_answer),                                     \
			.default_text = "false",                                                                                 \
			.help = "The text printed after `final_answer:` (or after `Answer:` at the beginning of stdout) is the " \
				"final answer, as if it had been passed to final_answer()."                                      \
	}

#define DETACH_ROW(base)                                                                           \
	{                                                                                          \
		"detach", FIELD_BOOL, .offset = (base) + offsetof(struct execute_request, detach), \
		.default_text = "false",                                                           \
		.help = "Let the cell continue if the client disconnects; the log has its output." \
	},                                                                                         \
	{                                                                                          \
		"transaction", FIELD_BOOL, FIELD_HAS_FLAG,                                         \
			.offset = (base) + offsetof(struct execute_request, transaction),          \
			.flag_offset = (base) + offsetof(struct execute_request, has_transaction), \
			.default_text = "true",                                                    \
			.help = "If the cell kills the interpreter, roll back to before the cell." \
	}

/* ---- bodies ------------------------------------------------------------- */

static const struct field session_table[] = { SESSION_ROWS(0), PACKAGES_ROW(0), DISPLAY_ROW(0) };
const struct fields session_fields = FIELDS("SessionFields", session_table);

#define CREATE_SESSION offsetof(struct create_request, session)
static const struct field create_table[] = {
	SESSION_ROWS(CREATE_SESSION),
	PACKAGES_ROW(CREATE_SESSION),
	DISPLAY_ROW(CREATE_SESSION),
	{ "from", FIELD_WORD, .offset = offsetof(struct create_request, from), .min = 1,
		.max = LIMIT_NAME_BYTES,
		.help = "The id of a session or of a checkpoint; the new session starts with its state, as a fork does. Of the other fields only name, "
			"metadata, ttl_s, idle_timeout_s and reseed can be combined with from." },
	{ "reseed", FIELD_BOOL, FIELD_HAS_FLAG, .offset = offsetof(struct create_request, reseed),
		.flag_offset = offsetof(struct create_request, has_reseed), .default_text = "true",
		.help = "With from: the new session draws other random numbers than its source." },
};
const struct fields create_fields = FIELDS("SessionRequest", create_table);

static const struct field packages_table[] = {
	PACKAGES_ROW(0),
	{ "imports", FIELD_WORDS, .offset = offsetof(struct session_params, additional_imports),
		.max = LIMIT_PACKAGES, .max_bytes = LIMIT_NAME_BYTES, .example = "[\"yaml\"]",
		.help = "Modules that the session needs; the server finds the packages that contain them." },
};
const struct fields packages_fields = FIELDS("PackagesRequest", packages_table);

#define CONTEXT_ROW(base)                                                                       \
	{                                                                                       \
		"context", FIELD_WORD,                                                          \
			.offset = (base) + offsetof(struct execute_request, context), .min = 1, \
			.max = LIMIT_NAME_BYTES, .default_text = "default",                     \
			.help = "The context that runs the cell (POST …/contexts)."           \
	}

static const struct field execute_table[] = { CODE_ROW(0), CELL_ROWS(0), CONTEXT_ROW(0),
	DETACH_ROW(0), SCREENSHOT_ROWS(0), RECORD_ROW(0), VALUE_ROWS(0) };
const struct fields execute_fields = FIELDS("ExecuteRequest", execute_table);

const char *const script_languages[] = {
	[SCRIPT_PYTHON] = "python",
	[SCRIPT_BASH] = "bash",
	[SCRIPT_PYTEST] = "pytest",
	[SCRIPT_LANGUAGE_COUNT] = NULL,
};

#define RUN_SESSION offsetof(struct run_request, session)
#define RUN_EXECUTE offsetof(struct run_request, execute)
static const struct field run_table[] = {
	CODE_ROW(RUN_EXECUTE),
	CELL_ROWS(RUN_EXECUTE),
	SCREENSHOT_ROWS(RUN_EXECUTE),
	RECORD_ROW(RUN_EXECUTE),
	VALUE_ROWS(RUN_EXECUTE),
	{ "files", FIELD_FILES, .offset = offsetof(struct run_request, files),
		.max = LIMIT_RUN_FILES, .max_bytes = LIMIT_RUN_FILES_BYTES,
		.example = "{\"data/in.csv\":\"a,b\\n1,2\\n\"}",
		.help = "Files put into /workspace before the code runs: path and content, a text or "
			"{\"base64\": \"…\"}." },
	{ "language", FIELD_CHOICE, .offset = offsetof(struct run_request, language),
		.choices = script_languages, .default_text = "python",
		.help = "Language of the code: a Python program, a bash script, or tests for pytest." },
	{ "argv", FIELD_WORDS, .offset = offsetof(struct run_request, arguments),
		.max = LIMIT_ARGUMENTS, .max_bytes = LIMIT_ARGUMENT_BYTES,
		.example = "[\"--verbose\"]", .help = "Arguments of the program: sys.argv[1:]." },
	SESSION_ROWS(RUN_SESSION),
	PACKAGES_ROW(RUN_SESSION),
	DISPLAY_ROW(RUN_SESSION),
};
const struct fields run_fields = FIELDS("RunRequest", run_table);

static const struct field fork_table[] = {
	{ "count", FIELD_UINT, .offset = offsetof(struct fork_body, count), .min = 1,
		.max = LIMIT_FORKS, .default_text = "1", .example = "8",
		.help = "Number of forks." },
	{ "at", FIELD_WORD, .offset = offsetof(struct fork_body, at), .min = 1,
		.max = LIMIT_NAME_BYTES,
		.help = "A checkpoint, by id or name; default: the present state of the session." },
	{ "reseed", FIELD_BOOL, FIELD_HAS_FLAG, .offset = offsetof(struct fork_body, reseed),
		.flag_offset = offsetof(struct fork_body, has_reseed), .default_text = "true",
		.help = "Each fork draws other random numbers: random, numpy.random and the generators among the variables are reseeded." },
};
const struct fields fork_fields = FIELDS("ForkRequest", fork_table);

static const struct field checkpoint_table[] = {
	{ "name", FIELD_WORD, .offset = offsetof(struct checkpoint_request, name), .min = 1,
		.max = LIMIT_NAME_BYTES, .example = "\"clean data\"",
		.help = "A name that you choose; default: the number of the last cell." },
};
const struct fields checkpoint_fields = FIELDS("CheckpointRequest", checkpoint_table);

static const struct field rollback_table[] = {
	{ "checkpoint", FIELD_WORD, .offset = offsetof(struct checkpoint_request, checkpoint),
		.min = 1, .max = LIMIT_NAME_BYTES, .example = "\"clean data\"",
		.help = "The id or the name of a checkpoint; if several have the name, the newest." },
	{ "undo", FIELD_BOOL, .offset = offsetof(struct checkpoint_request, undo),
		.default_text = "false", .help = "Roll back to before the last cell." },
};
const struct fields rollback_fields = FIELDS("RollbackRequest", rollback_table);

const struct fields no_fields = { .name = "Empty" };

/* ---- tools -------------------------------------------------------------- */

#define TOOLS_ROW(base)                                                                                          \
	{                                                                                                        \
		"tools", FIELD_LIST, FIELD_REQUIRED,                                                             \
			.offset = (base) + offsetof(struct tools_request, tools),                                \
			.max = LIMIT_TOOLS,                                                                      \
			.example =                                                                               \
				"[{\"name\":\"add\",\"parameters\":{\"type\":\"object\",\"properties\":"         \
				"{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]}}]",                        \
			.help = "Functions that the code can call in the client: name, description, parameters " \
				"(a JSON schema), returns, timeout_s, max_calls, async, source, input. They "    \
				"replace the earlier tools."                                                     \
	}

static const struct field tool_error_table[] = {
	{ "type", FIELD_WORD, FIELD_REQUIRED, .offset = offsetof(struct tool_error, type), .min = 1,
		.max = LIMIT_NAME_BYTES, .example = "\"ValueError\"",
		.help = "The exception's class; a built-in exception of Python is raised as itself, any other as ToolError." },
	{ "message", FIELD_TEXT, .offset = offsetof(struct tool_error, message),
		.max = LIMIT_ERROR_BYTES, .help = "What is wrong." },
};
static const struct fields tool_error_fields = FIELDS("ToolError", tool_error_table);

#define ANSWER_ROWS(base)                                                                     \
	{ "value", FIELD_VALUE, .offset = (base) + offsetof(struct tool_answer, value),       \
		.example = "42", .help = "The value that the function returns." },            \
	{                                                                                     \
		"error", FIELD_OBJECT,                                                        \
			.offset = (base) + offsetof(struct tool_answer, error),               \
			.object = &tool_error_fields,                                         \
			.help = "The exception that the function raises, instead of a value." \
	}

static const struct field tools_table[] = { TOOLS_ROW(0) };
const struct fields tools_fields = FIELDS("ToolsRequest", tools_table);

static const struct field tool_answer_table[] = { ANSWER_ROWS(0) };
const struct fields tool_answer_fields = FIELDS("ToolAnswer", tool_answer_table);

/* ---- WebSocket messages ------------------------------------------------- */

const char *const socket_types[] = { "execute", "interrupt", "ping", "tools", "tool_result", NULL };

#define SOCKET_ROWS                                                                              \
	{ "id", FIELD_ID, FIELD_REQUIRED, .offset = offsetof(struct socket_request, id),         \
		.max = 128, .example = "\"1\"",                                                  \
		.help = "Chosen by the client; every message about this request has this id." }, \
	{                                                                                        \
		"type", FIELD_WORD, FIELD_REQUIRED,                                              \
			.offset = offsetof(struct socket_request, type), .max = 32,              \
			.choices = socket_types, .example = "\"execute\"", .help = "Request."    \
	}

#define SOCKET_EXECUTE offsetof(struct socket_request, execute)
static const struct field socket_execute_table[] = { SOCKET_ROWS, CODE_ROW(SOCKET_EXECUTE),
	CELL_ROWS(SOCKET_EXECUTE), DETACH_ROW(SOCKET_EXECUTE), SCREENSHOT_ROWS(SOCKET_EXECUTE),
	RECORD_ROW(SOCKET_EXECUTE), VALUE_ROWS(SOCKET_EXECUTE) };
const struct fields socket_execute_fields = FIELDS("SocketExecute", socket_execute_table);

static const struct field socket_tools_table[] = { SOCKET_ROWS,
	TOOLS_ROW(offsetof(struct socket_request, tools)) };
const struct fields socket_tools_fields = FIELDS("SocketTools", socket_tools_table);

#define SOCKET_ANSWER offsetof(struct socket_request, answer)
static const struct field socket_answer_table[] = { SOCKET_ROWS,
	{ "call", FIELD_UINT, FIELD_REQUIRED,
		.offset = SOCKET_ANSWER + offsetof(struct tool_answer, call), .min = 1,
		.max = 9007199254740991.0, .example = "1",
		.help = "`call` of the tool_call message." },
	ANSWER_ROWS(SOCKET_ANSWER) };
const struct fields socket_answer_fields = FIELDS("SocketToolResult", socket_answer_table);

static const struct field socket_plain_table[] = { SOCKET_ROWS };
const struct fields socket_plain_fields = FIELDS("SocketMessage", socket_plain_table);

/* ---- what they mean ------------------------------------------------------ */

void execute_cell_request(const struct execute_request *q, struct cell_request *ret)
{
	*ret = (struct cell_request){ .code = q->code.data,
		.code_len = q->code.len,
		.stdin_text = q->input.data,
		.stdin_len = q->input.len,
		.timeout_s = q->timeout_s,
		.detach = q->detach,
		.no_transaction = q->has_transaction && !q->transaction,
		.strict = q->transaction,
		.variables = q->variables,
		.typed_result = q->typed_result,
		.data_forms = q->data_forms,
		.printed_answer = q->printed_answer,
		.has_screenshot = q->capture_screenshot || q->has_screenshot,
		.end_screenshot = q->screenshot.end,
		.on_block = q->on_block,
		.record = q->record,
		.recording = q->recording };
	screenshot_options(&q->screenshot, &ret->screenshot);
	if (q->has_render_timeout)
		ret->screenshot.render_ms = render_ms_of(q->render_timeout);
}

/* ---- query strings ------------------------------------------------------ */

static const char *const state_names[] = { "starting", "idle", "busy", "paused", NULL };
static const char *const stream_names[] = { "stdout", "stderr", NULL };

static const struct field session_query_table[] = {
	{ "name", FIELD_WORD, .offset = offsetof(struct session_query, name), .min = 1,
		.max = LIMIT_NAME_BYTES, .help = "Only sessions with this name." },
	{ "state", FIELD_WORD, .offset = offsetof(struct session_query, state), .max = 16,
		.choices = state_names, .help = "Only sessions in this state." },
	{ "metadata", FIELD_MATCH, .offset = offsetof(struct session_query, metadata), .max = 8,
		.help = "metadata.KEY=value: only sessions whose metadata has this value at KEY." },
	{ "limit", FIELD_UINT, .offset = offsetof(struct session_query, limit), .min = 1,
		.max = LIMIT_PAGE, .default_text = "100",
		.help = "Maximum number of entries of a page." },
	{ "cursor", FIELD_UINT, .offset = offsetof(struct session_query, cursor),
		.max = 9007199254740991.0, .help = "`next` of the previous page." },
	{ "usage", FIELD_BOOL, .offset = offsetof(struct session_query, usage),
		.default_text = "false",
		.help = "Also return the memory and CPU time of each session." },
};
const struct fields session_query_fields = FIELDS("SessionQuery", session_query_table);

static const struct field log_query_table[] = {
	{ "cell", FIELD_UINT, FIELD_HAS_FLAG, .offset = offsetof(struct log_query, cell),
		.flag_offset = offsetof(struct log_query, has_cell), .max = 4294967295.0,
		.help = "Only the output of this cell." },
	{ "stream", FIELD_WORD, .offset = offsetof(struct log_query, stream), .max = 16,
		.choices = stream_names, .help = "Only this stream." },
	{ "after", FIELD_UINT, .offset = offsetof(struct log_query, after),
		.max = 9007199254740991.0, .default_text = "0",
		.help = "`next` of the previous page; 0 is the beginning." },
	{ "limit", FIELD_UINT, .offset = offsetof(struct log_query, limit), .min = 1,
		.max = LIMIT_PAGE, .default_text = "1000",
		.help = "Maximum number of entries of a page (a page also ends at 1 MiB of text)." },
};
const struct fields log_query_fields = FIELDS("LogQuery", log_query_table);

static const struct field list_query_table[] = {
	{ "path", FIELD_WORD, .offset = offsetof(struct list_query, path), .max = LIMIT_PATH_BYTES,
		.help = "A directory below /workspace; default: all of /workspace." },
	{ "recursive", FIELD_BOOL, .offset = offsetof(struct list_query, recursive),
		.default_text = "false", .help = "Also list the contents of subdirectories." },
	{ "watch", FIELD_BOOL, .offset = offsetof(struct list_query, watch),
		.default_text = "false",
		.help = "Follow the directory instead: an event stream of the changes in it." },
	{ "limit", FIELD_UINT, .offset = offsetof(struct list_query, limit), .min = 1,
		.max = 10 * LIMIT_PAGE, .default_text = "1000",
		.help = "Maximum number of entries." },
};
const struct fields list_query_fields = FIELDS("FileQuery", list_query_table);

static const struct field calls_query_table[] = {
	{ "wait_s", FIELD_NUMBER, .offset = offsetof(struct calls_query, wait_s), .max = 60,
		.default_text = "30",
		.help = "Seconds to wait for a call before answering with an empty list." },
};
const struct fields calls_query_fields = FIELDS("CallsQuery", calls_query_table);
