/* glovebox shell: Python's prompt, with the interpreter in a sandbox. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/fds.h"
#include "base/paths.h"
#include "base/text.h"
#include "cli/backend.h"
#include "cli/bash_cell.h"
#include "cli/cli.h"
#include "cli/cli_words.h"
#include "cli/prompt.h"
#include "cli/show_picture.h"
#include "local/local.h"

struct options {
	double timeout;
	uint64_t memory;
	int exec;
	char *network, **allow;
	char **env, **preload, **packages, **imports;
	char *profile;
	bool bash, save, help;
};

#define AT(member) offsetof(struct options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{ "bash", 0, OPTION_FLAG, AT(bash),
	  .help = "lines are commands of bash, which keeps its directory, variables and functions" },
	{ "timeout", 't', OPTION_SECONDS, AT(timeout), 0.1, 0, "SECONDS",
	  .help = "time limit of a cell; a cell that exceeds it is interrupted (default: no limit)" },
	{ "profile", 0, OPTION_TEXT, AT(profile), .value = "NAME",
	  .help = "executor profile: python, smolagents, restricted, restrictedpython, tinyagent or one of your own (default: EXECUTOR_BACKEND, else python)" },
	{ "executor-backend", 0, OPTION_TEXT, AT(profile), .value = "NAME",
	  .help = "another name of --profile" },
	{ "import", 0, OPTION_ITEMS, AT(imports), .value = "MODULE",
	  .help = "allow the import of a module that the profile does not allow; numpy.* includes its submodules; may be repeated" },
	{ "exec", 0, OPTION_CHOICE, AT(exec), .value = "WHICH", .fallback = "system", .choices = local_exec_names,
	  .help = "programs that the code may start: those of the system, none, or any, its own files included" },
	{ "network", 0, OPTION_TEXT, AT(network), .value = "WHICH", .fallback = "none",
	  .help = "network of the code: none, loopback (a private interface), or HOST:PORT rules separated by commas" },
	{ "allow", 0, OPTION_LIST, AT(allow), .value = "HOST:PORT",
	  .help = "allow connections to this address and to the private loopback only; may be repeated (docs/network.md)" },
	{ "memory", 'm', OPTION_SIZE, AT(memory), 16 << 20, 0, "SIZE",
	  .help = "memory limit; the code gets a MemoryError beyond it (default 2G)" },
	{ "env", 'e', OPTION_ITEMS, AT(env), .value = "NAME=VALUE",
	  .help = "set an environment variable; may be repeated" },
	{ "preload", 0, OPTION_LIST, AT(preload), .value = "MODULES", .fallback = "none",
	  .help = "modules to import before the first prompt" },
	{ "package", 'p', OPTION_ITEMS, AT(packages), .value = "PACKAGE",
	  .help = "install a package, such as 'pandas>=2'; installed once, then cached; may be repeated" },
	{ "save", 0, OPTION_FLAG, AT(save), .fallback = "yes",
	  .help = "save pictures of cells as glovebox-N.png in this directory (--no-save: only print their names)" },
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "shell",
	.usage = "[options]",
	.about =
		"Starts an interactive session of Python, or of bash, in a sandbox. No server is needed. Ctrl-C interrupts, "
		"Ctrl-D ends.\n"
		"Lines that begin with % are commands of the shell: %help, %undo, %checkpoint, %fork, %tree, %reset, %quit.",
	.rows = rows,
	.examples = "  glovebox shell\n"
		    "  glovebox shell --preload numpy,pandas --memory 4G\n"
		    "  glovebox shell --bash\n",
};

struct shell {
	const struct options *options;
	struct local *local;
	struct backend backend;
	bool opened;
	struct prompt *prompt;
	struct buffer cell; /* lines so far */
	unsigned n_saved;
	bool line_open; /* the last output did not end its line */
	bool over;
	int exit_code;
	const char *line; /* of the command that runs */
};

/* ---- what a cell shows ------------------------------------------------ */

static void on_output(void *userdata, enum stream stream, const char *data, size_t len)
{
	struct shell *sh = userdata;
	fd_write_waiting(stream == STREAM_STDOUT ? STDOUT_FILENO : STDERR_FILENO, data, len);
	if (len)
		sh->line_open = data[len - 1] != '\n';
}

static void end_open_line(struct shell *sh)
{
	if (sh->line_open && prompt_is_terminal(sh->prompt))
		fd_write_waiting(STDOUT_FILENO, "\n", 1);
	sh->line_open = false;
}

static bool may_save(const struct shell *sh)
{
	return sh->options->save && prompt_is_terminal(sh->prompt);
}

static void on_display(void *userdata, const struct bundle *b)
{
	struct shell *sh = userdata;
	end_open_line(sh);
	display_print(b, may_save(sh), &sh->n_saved);
}

/* A command of bash that failed: what it printed says why. */
static bool is_exit_status(const struct cell_error *error)
{
	static const char words[] = "exit status ";
	const char *at = error->message_len ? memmem(error->message, error->message_len, words,
						      sizeof(words) - 1)
					    : NULL;
	if (!at || !text_eq(error->type, "subprocess.CalledProcessError"))
		return false;
	size_t len = error->message_len - (size_t)(at - error->message);
	fprintf(stderr, "(%.*s)\n", (int)(len - (at[len - 1] == '.')), at);
	return true;
}

static void print_error(const struct observation *o, bool bash)
{
	const struct cell_error *error = o->error;
	if (bash && is_exit_status(error))
		return;
	if (error->traceback_len) {
		fd_write_waiting(STDERR_FILENO, error->traceback, error->traceback_len);
		if (error->traceback[error->traceback_len - 1] != '\n')
			fd_write_waiting(STDERR_FILENO, "\n", 1);
	} else {
		fprintf(stderr, "%s%s%.*s\n", error->type,
			*error->type && error->message_len ? ": " : "", (int)error->message_len,
			error->message);
	}
	char remedy[EDGE_TEXT_MAX];
	if (*error->remedy)
		fprintf(stderr, "(%s)\n", cli_remedy(error->remedy, remedy));
}

static void on_done(void *userdata, const struct observation *o)
{
	struct shell *sh = userdata;
	end_open_line(sh);
	if (o->result)
		display_print(o->result, may_save(sh), &sh->n_saved);
	if (o->error)
		print_error(o, sh->options->bash);
	if (o->status == CELL_TIMEOUT)
		fprintf(stderr, "(the cell took longer than %g s)\n", sh->options->timeout);
	if (o->died)
		fprintf(stderr, "(before this cell %s. %s)\n", o->died->why, o->died->remedy);
	else if (o->state_lost && !(o->error && *o->error->remedy))
		fprintf(stderr,
			"(the interpreter had to be replaced: the variables are lost, the files are kept)\n");
}

/* ---- life ------------------------------------------------------------- */

static int begin(struct shell *sh, struct error *e)
{
	const struct options *o = sh->options;
	if (!sh->opened &&
		backend_open(&sh->backend, page.verb, o->profile, o->imports, o->packages, e) < 0)
		return e->err;
	sh->opened = true;
	return local_create(&(struct local_config){ .env = o->env,
				    .packages = fetched_package(&sh->backend.fetched),
				    .shown = fetched_shown(&sh->backend.fetched),
				    .profile = sh->backend.profile,
				    .imports = sh->backend.imports,
				    .imports_below = sh->backend.imports_below,
				    .preload = o->preload,
				    .timeout_s = o->timeout,
				    .memory_bytes = o->memory,
				    .exec = (enum jail_exec)o->exec,
				    .network = o->network,
				    .allow = o->allow },
		e, &sh->local);
}

/* The session is gone (a second Ctrl-C ends it): go on with a new one. */
static int begin_again(struct shell *sh, struct error *e)
{
	local_destroy(sh->local);
	sh->local = NULL;
	fprintf(stderr, "(the session has ended; this is a new one)\n");
	return begin(sh, e);
}

/* The code of the cell: lines of bash are a cell of the interpreter that keeps the shell's state. */
static int wrap_cell(const struct shell *sh, struct buffer *code)
{
	static const char shell[] = "%%shell\n";
	int r = sh->options->bash ? buffer_append(code, shell, sizeof(shell) - 1) : 0;
	return r < 0 ? r : buffer_append(code, sh->cell.data, sh->cell.len);
}

static void run_cell(struct shell *sh)
{
	_cleanup_buffer_ struct buffer code = BUFFER_INIT(0);
	const struct cell_observer observer = { .on_output = on_output,
		.on_display = on_display,
		.on_done = on_done,
		.uncapped = true };
	struct error e = { 0 };
	int r = wrap_cell(sh, &code) < 0
			? error_set(&e, -ENOMEM, "out of memory")
			: local_execute(sh->local,
				  &(struct cell_request){ .code = code.data, .code_len = code.len },
				  &observer, sh, &e);
	int number = local_signal(sh->local);

	if (r < 0) {
		cli_show_error(page.verb, &e);
		r = begin_again(sh, &e);
		if (r < 0)
			cli_show_error(page.verb, &e);
	}

	if (r < 0 || number == SIGTERM || number == SIGHUP) {
		sh->over = true;
		sh->exit_code = r < 0 ? CLI_NO_START : 128 + number;
	}
}

/* ---- the shell's own commands ----------------------------------------- */

static void do_help(struct shell *sh)
{
	bool bash = sh->options->bash;
	printf("%%undo [NAME]        restores variables and files from before the last cell, or from a checkpoint\n"
	       "%%checkpoint [NAME]  takes a checkpoint of variables and files\n"
	       "%%fork [NAME]        continues in a copy of the session (or of a checkpoint)\n"
	       "%%tree               lists the checkpoints\n"
	       "%%reset              starts a fresh %s: variables are lost, files in /workspace stay\n"
	       "%%quit               ends the shell (so do Ctrl-D and exit)\n"
	       "%%help               prints this text\n"
	       "Ctrl-C interrupts a running cell; a second Ctrl-C ends the session.\n"
	       "A block (%s, …) ends with an empty line.\n",
		bash ? "shell" : "interpreter", bash ? "do, then, {" : "def, for");
	if (bash)
		printf("Commands have no terminal; for vim or top: `glovebox exec -t` with a session of a server.\n");
}

/*
 * What stands behind a command, without blanks around it; NULL when there is nothing. The line's
 * own memory.
 */
static const char *argument(char *line)
{
	char *at = line + strspn(line, " \t");
	at += strcspn(at, " \t\r\n");
	at += strspn(at, " \t\r\n");
	for (size_t n = strlen(at); n && strchr(" \t\r\n", at[n - 1]); n--)
		at[n - 1] = '\0';
	return *at ? at : NULL;
}

static void change_history(struct shell *sh, enum local_history kind, const char *said)
{
	struct error e = { 0 };
	_cleanup_free_ char *line = sh->line ? strdup(sh->line) : NULL;
	int r = local_history(sh->local, kind, line ? argument(line) : NULL, &e);
	if (text_eq(e.slug, "checkpoint_not_found"))
		error_remedy(&e, "%%tree lists the checkpoints.");
	if (r < 0)
		cli_show_error(page.verb, &e);
	else
		printf("(%s)\n", said);
}

static void do_checkpoint(struct shell *sh)
{
	change_history(sh, LOCAL_CHECKPOINT, "took a checkpoint; %undo NAME restores it");
}

static void do_undo(struct shell *sh)
{
	change_history(sh, LOCAL_ROLLBACK, "restored variables and files");
}

static void do_fork(struct shell *sh)
{
	change_history(sh, LOCAL_FORK, "this is now a fork; its source session is unchanged");
}

static void do_tree(struct shell *sh)
{
	struct checkpoint_info c;
	if (!local_checkpoint(sh->local, 0, &c))
		printf("(no checkpoints; %%checkpoint takes one)\n");
	for (unsigned i = 0; local_checkpoint(sh->local, i, &c); i++)
		printf("%s %-24s after cell %-4u %6.1f MB\n", c.current ? "*" : "-",
			c.name ? c.name : "(automatic)", c.cell, (double)c.size_bytes / 1e6);
}

static void do_reset(struct shell *sh)
{
	struct error e = { 0 };
	if (local_reset(sh->local, &e) < 0)
		cli_show_error(page.verb, &e);
	else
		printf("(a fresh interpreter)\n");
}

static void do_quit(struct shell *sh)
{
	sh->over = true;
}

static const struct command {
	const char *word;
	void (*run)(struct shell *sh);
} commands[] = {
	{ "%help", do_help },
	{ "%reset", do_reset },
	{ "%undo", do_undo },
	{ "%rollback", do_undo },
	{ "%checkpoint", do_checkpoint },
	{ "%fork", do_fork },
	{ "%tree", do_tree },
	{ "%quit", do_quit },
	{ "%exit", do_quit },
	/* exit() and quit() of Python would only end the cell. */
	{ "exit", do_quit },
	{ "quit", do_quit },
	{ "exit()", do_quit },
	{ "quit()", do_quit },
};

/* True when the line was for the shell. */
static bool run_command(struct shell *sh, const char *line)
{
	size_t start = strspn(line, " \t"), len = strcspn(line + start, " \t\r\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (strlen(commands[i].word) == len &&
			!strncmp(commands[i].word, line + start, len)) {
			sh->line = line;
			commands[i].run(sh);
			sh->line = NULL;
			return true;
		}
	}

	if (line[start] != '%')
		return false;
	printf("Unknown command %.*s; %%help lists the commands.\n", (int)len, line + start);
	return true;
}

/* ---- the loop --------------------------------------------------------- */

static void take_line(struct shell *sh, const char *line)
{
	bool blank = strspn(line, " \t\r\n") == strlen(line);
	if (sh->cell.len == 0 && (blank || run_command(sh, line)))
		return;
	if (buffer_append_str(&sh->cell, line) < 0 || !text_is_utf8(sh->cell.data, sh->cell.len)) {
		cli_complain(
			page.verb, "a cell is UTF-8 text of at most %d MB", LIMIT_CODE_BYTES >> 20);
		sh->cell.len = 0;
		return;
	}

	/*
	 * As Python's own prompt: without the last newline, so that a block goes on until an empty
	 * line.
	 */
	bool complete = sh->options->bash
				? bash_cell_is_complete(sh->cell.data, sh->cell.len)
				: local_is_complete(sh->local, sh->cell.data,
					  sh->cell.len - (sh->cell.data[sh->cell.len - 1] == '\n'));
	if (!complete)
		return;
	run_cell(sh);
	sh->cell.len = 0;
}

static void loop(struct shell *sh)
{
	while (!sh->over) {
		const char *line;
		enum prompt_event event = prompt_read(sh->prompt, sh->cell.len > 0, &line);
		if (event == PROMPT_LINE)
			take_line(sh, line);
		else if (event == PROMPT_INTERRUPT)
			sh->cell.len = 0;
		else
			break;
	}

	if (sh->cell.len && !sh->over)
		run_cell(sh); /* a pipe that ended inside a block */
	if (prompt_is_terminal(sh->prompt) && !sh->over)
		printf("\n");
}

static void complete(void *userdata, const char *line, size_t len, struct prompt_matches *ret)
{
	struct shell *sh = userdata;
	_cleanup_buffer_ struct buffer code = BUFFER_INIT(LIMIT_CODE_BYTES);
	_cleanup_free_ char *answer = NULL;
	if (buffer_append(&code, sh->cell.data, sh->cell.len) == 0 &&
		buffer_append(&code, line, len) == 0 && buffer_cstr(&code) &&
		(answer = local_complete(sh->local, code.data, code.len)))
		prompt_read_matches(code.data, answer, strlen(answer), ret);
}

/* What --preload named and could not be imported. */
static void tell_missing_modules(struct shell *sh)
{
	enum { PATIENCE_S = 60 };
	if (!sh->options->preload || !*sh->options->preload ||
		!local_wait_ready(sh->local, PATIENCE_S))
		return;
	const char *report = local_preload_report(sh->local);
	if (*report)
		fprintf(stderr, "not preloaded: %s", report);
}

static int run_shell(const struct options *o)
{
	struct shell sh = { .options = o, .cell = BUFFER_INIT(LIMIT_CODE_BYTES) };
	_cleanup_free_ char *history_path = paths_home_file("XDG_STATE_HOME", ".local/state",
		o->bash ? "glovebox/history-bash" : "glovebox/history");
	struct error e = { 0 };
	int r = begin(&sh, &e);

	if (r == 0)
		r = prompt_create(history_path, &sh.prompt);
	if (r < 0) {
		if (!*e.text)
			error_set_errno(&e, r, "the prompt");
		cli_show_error(page.verb, &e);
		sh.exit_code = CLI_NO_START;
	} else {
		if (prompt_is_terminal(sh.prompt))
			printf("Glovebox %s: %s in a sandbox. %%help for help, Ctrl-D to end.\n",
				GLOVEBOX_VERSION, o->bash ? "bash" : "Python");
		if (o->bash)
			prompt_set_marks(sh.prompt, "$", ">");
		else
			prompt_set_completion(sh.prompt, complete, &sh);
		tell_missing_modules(&sh);
		loop(&sh);
	}

	prompt_destroy(sh.prompt);
	local_destroy(sh.local);
	backend_finish(&sh.backend);
	buffer_finish(&sh.cell);
	return sh.exit_code;
}

int cli_shell(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, false, &code);
	if (first >= 0 && first < argc)
		code = cli_usage(page.verb, "unexpected argument '%.60s'", argv[first]);
	else if (first >= 0)
		code = run_shell(&o);
	options_finish(rows, &o);
	return code;
}
