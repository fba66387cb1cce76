#include "api/schema/requests.h"

#include "base/limits.h"

/* Above what any server allows: the session table knows its own maxima and says them. */
#define SIZE_MOST ((double)(1ULL << 50))
#define YEAR_SECONDS 31536000.0

/* ---- rows that several tables share ------------------------------------- */

static const struct field limits_table[] = {
	{ "timeout_s", FIELD_NUMBER, .offset = offsetof(struct session_limits, timeout_s), .min = 0.1,
		.max = 3600, .default_text = "30", .example = "10",
		.help = "Wall time of one cell, in seconds." },
	{ "output_bytes", FIELD_UINT, .offset = offsetof(struct session_limits, output_bytes), .min = 1024,
		.max = SIZE_MOST, .default_text = "1 MiB",
		.help = "Bytes of stdout and of stderr, each, kept in an observation (head and tail)." },
	{ "memory_bytes", FIELD_UINT, .offset = offsetof(struct session_limits, memory_bytes),
		.min = 16 << 20, .max = SIZE_MOST, .default_text = "the server's", .example = "536870912",
		.help = "Memory of the session, files included; beyond it the code gets a MemoryError, or is killed." },
	{ "processes", FIELD_UINT, .offset = offsetof(struct session_limits, processes), .min = 1,
		.max = 65536, .default_text = "256", .help = "Processes and threads at once." },
	{ "cpus", FIELD_NUMBER, .offset = offsetof(struct session_limits, cpus), .min = 0.01,
		.max = 1024, .default_text = "no limit", .example = "0.5",
		.help = "Processors' worth of time; 0.5 is half of one. Needs control groups." },
	{ "cpu_s", FIELD_NUMBER, .offset = offsetof(struct session_limits, cpu_s), .min = 0.1, .max = 86400.0 * 365,
		.default_text = "no limit", .example = "20",
		.help = "Processor seconds of one cell, all its processes together; beyond it the cell is interrupted (cpu_limit)." },
	{ "session_cpu_s", FIELD_NUMBER, .offset = offsetof(struct session_limits, session_cpu_s), .min = 0.1, .max = 86400.0 * 365,
		.default_text = "no limit", .example = "600",
		.help = "Processor seconds of the whole session, which ends when they are used up." },
	{ "inodes", FIELD_UINT, .offset = offsetof(struct session_limits, inodes), .min = 64, .max = 1 << 30,
		.default_text = "65536", .help = "Files and directories in /workspace and in /tmp, each." },
	{ "file_bytes", FIELD_UINT, .offset = offsetof(struct session_limits, file_bytes), .min = 4096, .max = SIZE_MOST,
		.default_text = "1 GiB", .help = "Size of one file; writing beyond it fails with EFBIG." },
	{ "open_files", FIELD_UINT, .offset = offsetof(struct session_limits, open_files), .min = 16, .max = 1 << 20,
		.default_text = "1024", .help = "Descriptors of one process." },
	{ "total_output_bytes", FIELD_UINT, .offset = offsetof(struct session_limits, total_output_bytes), .min = 1024, .max = SIZE_MOST,
		.default_text = "1 GiB", .help = "What a cell may print at all, shown or not; beyond it it is stopped (output_limit)." },
	{ "disk_bytes", FIELD_UINT, .offset = offsetof(struct session_limits, disk_bytes), .min = 1 << 20,
		.max = SIZE_MOST, .default_text = "the server's",
		.help = "Size of /workspace and of /tmp, each." },
	{ "log_bytes", FIELD_UINT, .offset = offsetof(struct session_limits, log_bytes), .min = 1024,
		.max = SIZE_MOST, .default_text = "the server's", .help = "Output kept for GET …/logs." },
};
static const struct fields limits_fields = FIELDS("Limits", limits_table);

/* In the order of enum jail_exec. */
static const char *const exec_names[] = { "system", "none", "any", NULL };

#define SESSION_ROWS(base)                                                                                  \
	{ "name", FIELD_WORD, .offset = (base) + offsetof(struct session_params, name), .min = 1,           \
		.max = LIMIT_NAME_BYTES, .example = "\"analysis\"",                                         \
		.help = "A name of your own, to find it by." },                                             \
		{ "env", FIELD_ENV, .offset = (base) + offsetof(struct session_params, env),                \
			.max = LIMIT_ENV_COUNT, .max_bytes = LIMIT_ENV_BYTES,                               \
			.example = "{\"MODE\":\"test\"}",                                                   \
			.help = "Environment variables of the interpreter." },                              \
		{ "preload", FIELD_WORDS, .offset = (base) + offsetof(struct session_params, preload),      \
			.max = LIMIT_PRELOAD_COUNT, .max_bytes = LIMIT_NAME_BYTES,                          \
			.example = "[\"json\",\"numpy\"]",                                                  \
			.help = "Modules to import before the first cell." },                               \
		{ "metadata", FIELD_JSON, .offset = (base) + offsetof(struct session_params, metadata),     \
			.max = LIMIT_METADATA_BYTES, .example = "{\"task\":\"42\"}",                        \
			.help = "Data of your own, kept and given back as it is; lists can be filtered by " \
				"it." },                                                                    \
		{ "profile", FIELD_NAMED, .offset = (base) + offsetof(struct session_params, profile),      \
			.max = LIMIT_PROFILE_BYTES, .default_text = "the server's, python",                 \
			.example = "\"smolagents\"",                                                        \
			.help = "What the code may say: the name of an executor profile (GET /v1/profiles " \
				"lists them), or one of your own as an object." },                          \
		{ "executor_backend", FIELD_NAMED, .offset = (base) + offsetof(struct session_params, profile), \
			.max = LIMIT_PROFILE_BYTES, .example = "\"restrictedpython\"",                      \
			.help = "Another name of `profile`, as coding_env has it." },                       \
		{ "additional_imports", FIELD_WORDS,                                                        \
			.offset = (base) + offsetof(struct session_params, additional_imports),             \
			.max = LIMIT_PROFILE_NAMES, .max_bytes = LIMIT_NAME_BYTES,                          \
			.example = "[\"numpy\"]",                                                           \
			.help = "Modules the code may import beyond those of its profile; \"numpy.*\" with " \
				"all below, \"*\" for any." },                                               \
		{ "exec", FIELD_CHOICE, FIELD_HAS_FLAG, .flag_offset = (base) + offsetof(struct session_params, has_exec), .offset = (base) + offsetof(struct session_params, exec),           \
			.choices = exec_names, .default_text = "the server's", .example = "\"none\"",           \
			.help = "Which programs code may start: those of the read-only system, none, "      \
				"or any, also what it wrote itself." },                                   \
		{ "network", FIELD_NETWORK, .offset = (base) + offsetof(struct session_params, network),    \
			.max = LIMIT_NETWORK_RULES, .max_bytes = 288, .default_text = "none", .example = "\"loopback\"",      \
			.help = "What it may reach: none, loopback (a private one), or {\"allow\": "        \
				"[\"pypi.org:443\", …]}: exactly those, through a proxy." },                \
		{ "limits", FIELD_OBJECT, .offset = (base) + offsetof(struct session_params, limits),       \
			.object = &limits_fields,                                                           \
			.help = "Limits; what is left out is the server's default." },                      \
		{ "ttl_s", FIELD_NUMBER, .offset = (base) + offsetof(struct session_params, ttl_s),         \
			.min = 1, .max = YEAR_SECONDS, .default_text = "the server's",                      \
			.help = "It ends this long after its creation." },                                  \
		{ "idle_timeout_s", FIELD_NUMBER,                                                           \
			.offset = (base) + offsetof(struct session_params, idle_timeout_s), .min = 1,       \
			.max = YEAR_SECONDS, .default_text = "the server's",                                \
			.help = "It ends this long after its last cell." },                                 \
	{                                                                                                   \
		"seed", FIELD_UINT, FIELD_HAS_FLAG,                                                         \
			.offset = (base) + offsetof(struct session_params, seed),                           \
			.flag_offset = (base) + offsetof(struct session_params, has_seed),                  \
			.max = 4294967295.0,                                                                \
			.help = "random and numpy.random start from it, so that runs can be repeated."      \
	},                                                                                                  \
	{                                                                                                   \
		"transactions", FIELD_BOOL, FIELD_HAS_FLAG,                                                 \
			.offset = (base) + offsetof(struct session_params, transactions),                   \
			.flag_offset = (base) + offsetof(struct session_params, has_transactions),          \
			.default_text = "the server's",                                                     \
			.help = "A cell that ends the interpreter does not cost the variables of before."  \
	},                                                                                                  \
	{                                                                                                   \
		"keep_files_bytes", FIELD_UINT, FIELD_HAS_FLAG,                                             \
			.offset = (base) + offsetof(struct session_params, keep_files_bytes),               \
			.flag_offset = (base) + offsetof(struct session_params, has_keep_files),            \
			.max = SIZE_MOST, .default_text = "64 MiB",                                         \
			.help = "Files under /workspace, /tmp and /dev/shm up to this size together go back too; 0: they stay." \
	},                                                                                                  \
	{                                                                                                   \
		"keep_checkpoints", FIELD_UINT, FIELD_HAS_FLAG,                                             \
			.offset = (base) + offsetof(struct session_params, keep_checkpoints),               \
			.flag_offset = (base) + offsetof(struct session_params, has_keep_checkpoints),      \
			.max = LIMIT_KEPT_CELLS, .default_text = "1", .example = "5",                       \
			.help = "Cells that can be undone: their copies are kept beside the named ones."    \
	}

#define PACKAGES_ROW(base)                                                                                  \
	{                                                                                                   \
		"packages", FIELD_WORDS, .offset = (base) + offsetof(struct session_params, want_packages), \
			.max = LIMIT_PACKAGES, .max_bytes = LIMIT_PACKAGE_BYTES,                            \
			.example = "[\"rich\",\"pandas>=2\"]",                                              \
			.help = "Packages to have, as pip writes them; installed once, from then on at hand."  \
	}

#define CODE_ROW(base)                                                                                      \
	{                                                                                                   \
		"code", FIELD_TEXT, FIELD_REQUIRED,                                                         \
			.offset = (base) + offsetof(struct execute_request, code), .max = LIMIT_CODE_BYTES, \
			.example = "\"print(6 * 7)\"", .help = "Python source."                             \
	}

#define CELL_ROWS(base)                                                                                    \
	{ "stdin", FIELD_TEXT, FIELD_NUL_ALLOWED,                                                          \
		.offset = (base) + offsetof(struct execute_request, input), .max = LIMIT_STDIN_BYTES,      \
		.example = "\"yes\\n\"",                                                                   \
		.help = "What input() and sys.stdin read; without it input() fails at once." },            \
	{                                                                                                  \
		"timeout_s", FIELD_NUMBER, .offset = (base) + offsetof(struct execute_request, timeout_s), \
					   .min = 0.1, .max = 3600, .default_text = "the session's",       \
					   .example = "10",                                                \
					   .help = "Wall time of this cell, in seconds: an interrupt "     \
						   "first, a kill after a grace."                          \
	}

#define VALUE_ROWS(base)                                                                                     \
	{ "variables", FIELD_JSON, .offset = (base) + offsetof(struct execute_request, variables),           \
		.max = LIMIT_VARIABLES_BYTES, .example = "{\"rows\":[1,2,3]}",                               \
		.help = "Values put into the session before the code runs, by name; typed ones as objects with " \
			"a `__type__`." },                                                                   \
	{                                                                                                    \
		"typed_result", FIELD_BOOL, .offset = (base) + offsetof(struct execute_request, typed_result), \
			.default_text = "false",                                                             \
			.help = "Also give the result as application/vnd.glovebox.value+json, where types that " \
				"JSON lacks are objects with a `__type__`."                                  \
	},                                                                                                   \
	{                                                                                                    \
		"printed_final_answer", FIELD_BOOL, .offset = (base) + offsetof(struct execute_request, printed_answer), \
			.default_text = "false",                                                             \
			.help = "What is printed behind `final_answer:` (or behind `Answer:` at the beginning of stdout) is the " \
				"final answer, as if final_answer() had got it."                             \
	}

#define DETACH_ROW(base)                                                                               \
	{                                                                                              \
		"detach", FIELD_BOOL,                                                                  \
			.offset = (base) + offsetof(struct execute_request, detach),                   \
			.default_text = "false",                                                       \
			.help = "Let the cell go on when the client leaves; its output is in the log." \
	},                                                                                             \
	{                                                                                              \
		"transaction", FIELD_BOOL, FIELD_HAS_FLAG,                                             \
			.offset = (base) + offsetof(struct execute_request, transaction),              \
			.flag_offset = (base) + offsetof(struct execute_request, has_transaction),     \
			.default_text = "true",                                                        \
			.help = "When the cell ends the interpreter, go back to before it."            \
	}

/* ---- bodies ------------------------------------------------------------- */

static const struct field session_table[] = { SESSION_ROWS(0), PACKAGES_ROW(0), DISPLAY_ROW(0) };
const struct fields session_fields = FIELDS("SessionFields", session_table);

#define CREATE_SESSION offsetof(struct create_request, session)
static const struct field create_table[] = {
	SESSION_ROWS(CREATE_SESSION),
	PACKAGES_ROW(CREATE_SESSION),
	DISPLAY_ROW(CREATE_SESSION),
	{ "from", FIELD_WORD, .offset = offsetof(struct create_request, from), .min = 1, .max = LIMIT_NAME_BYTES,
		.help = "The id of a session or of a checkpoint whose state it goes on from, as a fork does. Of the other fields only name, "
			"metadata, ttl_s, idle_timeout_s and reseed go with it." },
	{ "reseed", FIELD_BOOL, FIELD_HAS_FLAG, .offset = offsetof(struct create_request, reseed),
		.flag_offset = offsetof(struct create_request, has_reseed), .default_text = "true",
		.help = "With from: it draws other random numbers than the session it comes from." },
};
const struct fields create_fields = FIELDS("SessionRequest", create_table);

static const struct field packages_table[] = {
	PACKAGES_ROW(0),
	{ "imports", FIELD_WORDS, .offset = offsetof(struct session_params, additional_imports), .max = LIMIT_PACKAGES,
		.max_bytes = LIMIT_NAME_BYTES, .example = "[\"yaml\"]",
		.help = "Modules to have; the packages they come from are found." },
};
const struct fields packages_fields = FIELDS("PackagesRequest", packages_table);

static const struct field execute_table[] = { CODE_ROW(0), CELL_ROWS(0), DETACH_ROW(0), SCREENSHOT_ROWS(0),
	RECORD_ROW(0), VALUE_ROWS(0) };
const struct fields execute_fields = FIELDS("ExecuteRequest", execute_table);

#define RUN_SESSION offsetof(struct run_request, session)
#define RUN_EXECUTE offsetof(struct run_request, execute)
static const struct field run_table[] = {
	CODE_ROW(RUN_EXECUTE),
	CELL_ROWS(RUN_EXECUTE),
	SCREENSHOT_ROWS(RUN_EXECUTE),
	RECORD_ROW(RUN_EXECUTE),
	VALUE_ROWS(RUN_EXECUTE),
	{ "files", FIELD_FILES, .offset = offsetof(struct run_request, files), .max = LIMIT_RUN_FILES,
		.max_bytes = LIMIT_RUN_FILES_BYTES, .example = "{\"data/in.csv\":\"a,b\\n1,2\\n\"}",
		.help = "Files put into /workspace before the code runs: path and content, a text or "
			"{\"base64\": \"…\"}." },
	SESSION_ROWS(RUN_SESSION),
	PACKAGES_ROW(RUN_SESSION),
	DISPLAY_ROW(RUN_SESSION),
};
const struct fields run_fields = FIELDS("RunRequest", run_table);

static const struct field fork_table[] = {
	{ "count", FIELD_UINT, .offset = offsetof(struct fork_body, count), .min = 1, .max = LIMIT_FORKS, .default_text = "1", .example = "8",
		.help = "How many." },
	{ "at", FIELD_WORD, .offset = offsetof(struct fork_body, at), .min = 1, .max = LIMIT_NAME_BYTES,
		.help = "A checkpoint, by id or name; left out: as the session is now." },
	{ "reseed", FIELD_BOOL, FIELD_HAS_FLAG, .offset = offsetof(struct fork_body, reseed),
		.flag_offset = offsetof(struct fork_body, has_reseed), .default_text = "true",
		.help = "Each draws other random numbers: random, numpy.random and the generators among the variables." },
};
const struct fields fork_fields = FIELDS("ForkRequest", fork_table);

static const struct field checkpoint_table[] = {
	{ "name", FIELD_WORD, .offset = offsetof(struct checkpoint_request, name), .min = 1, .max = LIMIT_NAME_BYTES,
		.example = "\"clean data\"", .help = "A name of your own; left out: the number of the last cell." },
};
const struct fields checkpoint_fields = FIELDS("CheckpointRequest", checkpoint_table);

static const struct field rollback_table[] = {
	{ "checkpoint", FIELD_WORD, .offset = offsetof(struct checkpoint_request, checkpoint), .min = 1, .max = LIMIT_NAME_BYTES,
		.example = "\"clean data\"", .help = "An id or a name; of several with the name, the newest." },
	{ "undo", FIELD_BOOL, .offset = offsetof(struct checkpoint_request, undo), .default_text = "false",
		.help = "Back to before the last cell." },
};
const struct fields rollback_fields = FIELDS("RollbackRequest", rollback_table);

const struct fields no_fields = { .name = "Empty" };

/* ---- tools -------------------------------------------------------------- */

#define TOOLS_ROW(base)                                                                                     \
	{                                                                                                   \
		"tools", FIELD_LIST, FIELD_REQUIRED, .offset = (base) + offsetof(struct tools_request, tools), \
			.max = LIMIT_TOOLS,                                                                 \
			.example = "[{\"name\":\"add\",\"parameters\":{\"type\":\"object\",\"properties\":"    \
				   "{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]}}]",                \
			.help = "Functions of yours that the code can call: name, description, parameters "  \
				"(a JSON schema), returns, timeout_s, max_calls, async, source. In place of " \
				"those you gave before."                                                    \
	}

static const struct field tool_error_table[] = {
	{ "type", FIELD_WORD, FIELD_REQUIRED, .offset = offsetof(struct tool_error, type), .min = 1,
		.max = LIMIT_NAME_BYTES, .example = "\"ValueError\"",
		.help = "The exception's class; one of Python's own is raised as that, any other as ToolError." },
	{ "message", FIELD_TEXT, .offset = offsetof(struct tool_error, message), .max = LIMIT_ERROR_BYTES,
		.help = "What is wrong." },
};
static const struct fields tool_error_fields = FIELDS("ToolError", tool_error_table);

#define ANSWER_ROWS(base)                                                                                    \
	{ "value", FIELD_VALUE, .offset = (base) + offsetof(struct tool_answer, value), .example = "42",     \
		.help = "What the function returns in the session." },                                       \
	{                                                                                                    \
		"error", FIELD_OBJECT, .offset = (base) + offsetof(struct tool_answer, error),               \
				       .object = &tool_error_fields,                                         \
				       .help = "What it raises there, instead of a value."                   \
	}

static const struct field tools_table[] = { TOOLS_ROW(0) };
const struct fields tools_fields = FIELDS("ToolsRequest", tools_table);

static const struct field tool_answer_table[] = { ANSWER_ROWS(0) };
const struct fields tool_answer_fields = FIELDS("ToolAnswer", tool_answer_table);

/* ---- WebSocket messages ------------------------------------------------- */

const char *const socket_types[] = { "execute", "interrupt", "ping", "tools", "tool_result", NULL };

#define SOCKET_ROWS                                                                                  \
	{ "id", FIELD_ID, FIELD_REQUIRED, .offset = offsetof(struct socket_request, id), .max = 128, \
		.example = "\"1\"", .help = "Yours: every message about this one carries it." },     \
	{                                                                                            \
		"type", FIELD_WORD, FIELD_REQUIRED, .offset = offsetof(struct socket_request, type), \
						    .max = 32, .choices = socket_types,              \
						    .example = "\"execute\"", .help = "What to do."  \
	}

#define SOCKET_EXECUTE offsetof(struct socket_request, execute)
static const struct field socket_execute_table[] = { SOCKET_ROWS, CODE_ROW(SOCKET_EXECUTE),
	CELL_ROWS(SOCKET_EXECUTE), DETACH_ROW(SOCKET_EXECUTE), SCREENSHOT_ROWS(SOCKET_EXECUTE), RECORD_ROW(SOCKET_EXECUTE),
	VALUE_ROWS(SOCKET_EXECUTE) };
const struct fields socket_execute_fields = FIELDS("SocketExecute", socket_execute_table);

static const struct field socket_tools_table[] = { SOCKET_ROWS, TOOLS_ROW(offsetof(struct socket_request, tools)) };
const struct fields socket_tools_fields = FIELDS("SocketTools", socket_tools_table);

#define SOCKET_ANSWER offsetof(struct socket_request, answer)
static const struct field socket_answer_table[] = { SOCKET_ROWS,
	{ "call", FIELD_UINT, FIELD_REQUIRED, .offset = SOCKET_ANSWER + offsetof(struct tool_answer, call), .min = 1,
		.max = 9007199254740991.0, .example = "1", .help = "`call` of the tool_call message." },
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

static const char *const state_names[] = { "starting", "idle", "busy", NULL };
static const char *const stream_names[] = { "stdout", "stderr", NULL };

static const struct field session_query_table[] = {
	{ "name", FIELD_WORD, .offset = offsetof(struct session_query, name), .min = 1,
		.max = LIMIT_NAME_BYTES, .help = "Only those of this name." },
	{ "state", FIELD_WORD, .offset = offsetof(struct session_query, state), .max = 16,
		.choices = state_names, .help = "Only those in this state." },
	{ "metadata", FIELD_MATCH, .offset = offsetof(struct session_query, metadata), .max = 8,
		.help = "metadata.KEY=value: only those whose metadata has this value at KEY." },
	{ "limit", FIELD_UINT, .offset = offsetof(struct session_query, limit), .min = 1, .max = LIMIT_PAGE,
		.default_text = "100", .help = "Entries of one page." },
	{ "cursor", FIELD_UINT, .offset = offsetof(struct session_query, cursor), .max = 9007199254740991.0,
		.help = "`next` of the page before." },
};
const struct fields session_query_fields = FIELDS("SessionQuery", session_query_table);

static const struct field log_query_table[] = {
	{ "cell", FIELD_UINT, FIELD_HAS_FLAG, .offset = offsetof(struct log_query, cell),
		.flag_offset = offsetof(struct log_query, has_cell), .max = 4294967295.0,
		.help = "Only the output of this cell." },
	{ "stream", FIELD_WORD, .offset = offsetof(struct log_query, stream), .max = 16,
		.choices = stream_names, .help = "Only this stream." },
	{ "after", FIELD_UINT, .offset = offsetof(struct log_query, after), .max = 9007199254740991.0,
		.default_text = "0", .help = "`next` of the page before; 0 is the beginning." },
	{ "limit", FIELD_UINT, .offset = offsetof(struct log_query, limit), .min = 1, .max = LIMIT_PAGE,
		.default_text = "1000", .help = "Entries of one page (a page also ends at 1 MiB of text)." },
};
const struct fields log_query_fields = FIELDS("LogQuery", log_query_table);

static const struct field list_query_table[] = {
	{ "path", FIELD_WORD, .offset = offsetof(struct list_query, path), .max = LIMIT_PATH_BYTES,
		.help = "A directory below /workspace; the whole of it when left out." },
	{ "recursive", FIELD_BOOL, .offset = offsetof(struct list_query, recursive), .default_text = "false",
		.help = "Also what is in directories below." },
	{ "limit", FIELD_UINT, .offset = offsetof(struct list_query, limit), .min = 1, .max = 10 * LIMIT_PAGE,
		.default_text = "1000", .help = "Entries at most." },
};
const struct fields list_query_fields = FIELDS("FileQuery", list_query_table);

static const struct field calls_query_table[] = {
	{ "wait_s", FIELD_NUMBER, .offset = offsetof(struct calls_query, wait_s), .max = 60, .default_text = "30",
		.help = "Wait so long for a call before answering with none." },
};
const struct fields calls_query_fields = FIELDS("CallsQuery", calls_query_table);
