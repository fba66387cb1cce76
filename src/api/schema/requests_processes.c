#include "api/schema/requests_processes.h"

#include <signal.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"

#define SIDE_MOST 4096

static const struct field terminal_table[] = {
	{ "rows", FIELD_UINT, .offset = offsetof(struct terminal_size, rows), .min = 1,
		.max = SIDE_MOST, .default_text = "24", .help = "Rows of the terminal." },
	{ "cols", FIELD_UINT, .offset = offsetof(struct terminal_size, columns), .min = 1,
		.max = SIDE_MOST, .default_text = "80", .help = "Columns of the terminal." },
};
const struct fields process_resize_fields = FIELDS("TerminalSize", terminal_table);

static const char *const encodings[] = { "text", "base64", NULL };

static const struct field process_table[] = {
	{ "cmd", FIELD_TEXT, .offset = offsetof(struct process_body, command), .min = 1,
		.max = LIMIT_PROCESS_BYTES, .example = "\"ls -l | head\"",
		.help = "A command for bash (sh if bash is not installed). Give either cmd or argv." },
	{ "argv", FIELD_WORDS, .offset = offsetof(struct process_body, argv),
		.max = LIMIT_PROCESS_ARGS, .max_bytes = LIMIT_PROCESS_BYTES,
		.help = "A program and its arguments, without a shell." },
	{ "cwd", FIELD_WORD, .offset = offsetof(struct process_body, cwd), .min = 1,
		.max = LIMIT_PATH_BYTES, .default_text = "/workspace",
		.help = "Working directory of the process, absolute or below /workspace." },
	{ "env", FIELD_ENV, .offset = offsetof(struct process_body, env), .max = LIMIT_ENV_COUNT,
		.max_bytes = LIMIT_ENV_BYTES, .example = "{\"MODE\":\"test\"}",
		.help = "Environment variables in addition to those of the session." },
	{ "stdin", FIELD_TEXT, FIELD_NUL_ALLOWED, .offset = offsetof(struct process_body, input),
		.max = LIMIT_STDIN_BYTES,
		.help = "Text for its standard input, which is closed after the text." },
	{ "stdin_open", FIELD_BOOL, .offset = offsetof(struct process_body, keep_input),
		.default_text = "false", .help = "Keep its standard input open for POST …/stdin." },
	{ "timeout_s", FIELD_NUMBER, .offset = offsetof(struct process_body, timeout_s), .min = 0.1,
		.max = LIMIT_PROCESS_SECONDS, .default_text = "none", .example = "60",
		.help = "Wall time after which its process group is killed." },
	{ "pty", FIELD_OBJECT, FIELD_OR_BOOL | FIELD_HAS_FLAG,
		.offset = offsetof(struct process_body, terminal),
		.flag_offset = offsetof(struct process_body, has_terminal),
		.object = &process_resize_fields,
		.help = "Run the process in its own terminal (true, or the terminal's size). stdout and stderr are then one stream, stdout." },
	{ "background", FIELD_BOOL, .offset = offsetof(struct process_body, background),
		.default_text = "false",
		.help = "Answer when the process has started, and let it continue when the client disconnects." },
	{ "tag", FIELD_WORD, .offset = offsetof(struct process_body, tag), .min = 1,
		.max = LIMIT_NAME_BYTES, .help = "A name that you choose." },
	{ "encoding", FIELD_WORD, .offset = offsetof(struct process_body, encoding), .max = 8,
		.choices = encodings, .default_text = "text",
		.help = "Encoding of the output in events: text, or its bytes in base64." },
};
const struct fields process_fields = FIELDS("ProcessRequest", process_table);

static const struct field input_table[] = {
	{ "text", FIELD_TEXT, FIELD_NUL_ALLOWED, .offset = offsetof(struct process_input, text),
		.max = LIMIT_STDIN_BYTES, .example = "\"yes\\n\"", .help = "Text to write." },
	{ "base64", FIELD_WORD, .offset = offsetof(struct process_input, base64),
		.max = LIMIT_STDIN_BYTES, .help = "Bytes to write, in base64, instead of text." },
	{ "close", FIELD_BOOL, .offset = offsetof(struct process_input, close),
		.default_text = "false",
		.help = "Close the standard input: the process reads the end of file." },
};
const struct fields process_input_fields = FIELDS("ProcessInput", input_table);

static const struct field signal_table[] = {
	{ "signal", FIELD_WORD, .offset = offsetof(struct process_signal_body, name), .max = 16,
		.default_text = "TERM", .example = "\"INT\"", .help = "The name of the signal." },
};
const struct fields process_signal_fields = FIELDS("ProcessSignal", signal_table);

static const struct field stream_table[] = {
	{ "after", FIELD_UINT, .offset = offsetof(struct process_stream_query, after),
		.max = 9007199254740991.0, .default_text = "0",
		.help = "Continue after this position, which is the id of the last event received." },
	{ "encoding", FIELD_WORD, .offset = offsetof(struct process_stream_query, encoding),
		.max = 8, .choices = encodings, .default_text = "text",
		.help = "Encoding of the output: text, or its bytes in base64." },
};
const struct fields process_stream_query_fields = FIELDS("ProcessStreamQuery", stream_table);

static const struct field context_table[] = {
	{ "cwd", FIELD_WORD, .offset = offsetof(struct context_body, cwd), .min = 1,
		.max = LIMIT_PATH_BYTES, .default_text = "/workspace",
		.help = "Working directory of the new interpreter at its start." },
};
const struct fields context_fields = FIELDS("ContextRequest", context_table);

int process_signal_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = { { "HUP", SIGHUP }, { "INT", SIGINT }, { "QUIT", SIGQUIT },
		{ "KILL", SIGKILL }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "TERM", SIGTERM },
		{ "CONT", SIGCONT }, { "STOP", SIGSTOP }, { "TSTP", SIGTSTP },
		{ "WINCH", SIGWINCH } };
	if (!strncmp(name, "SIG", 3))
		name += 3;
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (text_eq(signals[i].name, name))
			return signals[i].number;
	return -1;
}
