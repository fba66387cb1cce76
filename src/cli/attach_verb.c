/* glovebox attach: the cells of a session as they happen, and cells of one's own. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/paths.h"
#include "base/text.h"
#include "cli/attach_show.h"
#include "cli/cli.h"
#include "cli/prompt.h"
#include "json/json_read.h"
#include "json/json_write.h"

enum { TARGET_MAX = 256, LOOK_MS = 5, SHOWN_MS = 10000 };

struct options {
	struct client_options client;
	unsigned last;
	bool watch, help;
};

/* clang-format off */
static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	{ "watch", 'w', OPTION_FLAG, offsetof(struct options, watch), .flag_only = true,
	  .help = "show the cells only, and read no input" },
	{ "last", 'n', OPTION_COUNT, offsetof(struct options, last), 0, 1000, "N", .fallback = "5", .flag_only = true,
	  .help = "show this many earlier cells first" },
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "attach",
	.usage = "[options] SESSION",
	.about =
		"Shows the cells of a session of a server while any client runs them, and runs the lines that you type as cells of the\n"
		"session. A line that ends with a colon, a comma, a backslash or an open bracket begins a block, which ends\n"
		"with an empty line. Ctrl-C interrupts the running cell, Ctrl-D detaches; the session stays.",
	.rows = rows,
	.examples = "  glovebox attach analysis\n"
		    "  glovebox attach --watch analysis\n"
		    "  echo 'print(6 * 7)' | glovebox attach analysis\n",
	.environment = true,
};

struct attached {
	const struct options *options;
	struct client *client;
	char *id;
	struct attach_shared *shared;
	struct prompt *prompt;
	struct buffer cell; /* lines so far */
	bool block;         /* it ends with an empty line */
	pid_t viewer;
	bool failed; /* a cell could not be sent */
};

/* ---- sending a cell ------------------------------------------------------------------ */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

static int write_code(struct buffer *b, const char *code, size_t len)
{
	struct json_writer w;
	json_writer_init(&w, b);
	json_open_object(&w);
	json_field_text(&w, "code", code, len);
	json_close(&w);
	int r = json_writer_end(&w);
	return r < 0 ? r : buffer_cstr(b) ? 0 : -ENOMEM;
}

static int ignore_answer(const char *data, size_t len, void *userdata)
{
	(void)data;
	(void)len;
	(void)userdata;
	return 0;
}

/* In a process of its own, so that Ctrl-C can be passed on meanwhile. Exits with 0 when it ran. */
static void __attribute__((noreturn)) send_cell(const struct attached *a)
{
	_cleanup_buffer_ struct buffer body = BUFFER_INIT(0);
	struct client *c = NULL;
	struct error e = { 0 };
	char target[TARGET_MAX];
	signal(SIGINT, SIG_IGN);
	snprintf(target, sizeof(target), "/v1/sessions/%.64s/execute", a->id);
	int r = client_create(&a->options->client, &e, &c);
	if (r == 0 && (r = write_code(&body, a->cell.data, a->cell.len)) < 0)
		error_set_errno(&e, r, "the cell");
	if (r == 0)
		r = client_stream(c, "POST", target, NULL, &body, ignore_answer, NULL, &e);
	if (r < 0)
		cli_show_error(page.verb, &e);
	_exit(r < 0 ? CLI_FAILED : CLI_OK);
}

static void pass_interrupt(struct attached *a)
{
	_cleanup_json_ json_t *answer = NULL;
	char target[TARGET_MAX];
	struct error e = { 0 };
	interrupted = 0;
	snprintf(target, sizeof(target), "/v1/sessions/%.64s/interrupt", a->id);
	if (client_send(a->client, "POST", target, "{}", &e, &answer) < 0)
		cli_show_error(page.verb, &e);
}

static void look_later(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * 1000000L }, NULL);
}

/*
 * The output process shows the end of a cell; a prompt that is printed earlier would be in the
 * middle of the output.
 */
static void run_cell(struct attached *a)
{
	unsigned before = a->shared->n_done;
	int status = 0;
	while (a->cell.len && a->cell.data[a->cell.len - 1] == '\n')
		a->cell.len--;
	memcpy(a->shared->own, a->cell.data, a->cell.len);
	a->shared->own_len = a->cell.len;
	fflush(NULL);
	pid_t sender = fork();
	if (sender == 0)
		send_cell(a);
	while (sender > 0 && waitpid(sender, &status, 0) < 0 && errno == EINTR)
		if (interrupted)
			pass_interrupt(a);
	bool ran = sender > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	a->failed |= !ran;
	for (unsigned ms = 0;
		ran && a->shared->n_done == before && !a->shared->ended && ms < SHOWN_MS;
		ms += LOOK_MS)
		look_later();
	a->shared->own_len = 0;
}

/* ---- input --------------------------------------------------------------------------- */

/* This prompt cannot parse Python, so the last character decides whether a line begins a block. */
static bool begins_block(const char *line)
{
	size_t n = strlen(line);
	while (n && strchr(" \t\r\n", line[n - 1]))
		n--;
	return n && (strchr(":,\\([{", line[n - 1]) || *line == '@');
}

static void take_line(struct attached *a, const char *line)
{
	bool blank = strspn(line, " \t\r\n") == strlen(line);
	if (a->cell.len == 0 && blank)
		return;
	if (a->cell.len + strlen(line) > sizeof(a->shared->own) ||
		buffer_append_str(&a->cell, line) < 0 || !text_is_utf8(a->cell.data, a->cell.len)) {
		cli_complain(
			page.verb, "a cell is UTF-8 text of at most %d MB", LIMIT_CODE_BYTES >> 20);
		a->cell.len = 0;
		return;
	}

	a->block |= begins_block(line);
	if (a->block && !blank)
		return;
	run_cell(a);
	a->cell.len = 0;
	a->block = false;
}

static void loop(struct attached *a)
{
	for (unsigned ms = 0; !a->shared->ready && !a->shared->ended && ms < SHOWN_MS;
		ms += LOOK_MS)
		look_later();
	while (!a->shared->ended) {
		const char *line;
		enum prompt_event event = prompt_read(a->prompt, a->cell.len > 0, &line);
		if (event == PROMPT_LINE) {
			take_line(a, line);
		} else if (event == PROMPT_INTERRUPT) {
			a->cell.len = 0;
			a->block = false;
			interrupted = 0;
		} else {
			break;
		}
	}

	if (a->cell.len && !a->shared->ended)
		run_cell(a); /* a pipe that ended inside a block */
	if (prompt_is_terminal(a->prompt))
		printf("\n");
}

static void complete(void *userdata, const char *line, size_t len, struct prompt_matches *ret)
{
	struct attached *a = userdata;
	_cleanup_buffer_ struct buffer code = BUFFER_INIT(0), body = BUFFER_INIT(0);
	_cleanup_json_ json_t *answer = NULL;
	char target[TARGET_MAX];
	snprintf(target, sizeof(target), "/v1/sessions/%.64s/complete", a->id);
	if (buffer_append(&code, a->cell.data, a->cell.len) < 0 ||
		buffer_append(&code, line, len) < 0 || !buffer_cstr(&code) ||
		write_code(&body, code.data, code.len) < 0 ||
		client_send(a->client, "POST", target, body.data, NULL, &answer) < 0)
		return;
	_cleanup_free_ char *text = json_dumps(answer, JSON_COMPACT);
	if (text)
		prompt_read_matches(code.data, text, strlen(text), ret);
}

/* ---- the whole ----------------------------------------------------------------------- */

static int follow(const struct attached *a, struct error *e)
{
	return attach_follow(&(struct attach_view){ .client = &a->options->client,
				     .id = a->id,
				     .last = a->options->last,
				     .echo_own = !a->options->watch && !isatty(STDIN_FILENO),
				     .shared = a->shared },
		e);
}

static void __attribute__((noreturn)) view(const struct attached *a)
{
	struct error e = { 0 };
	signal(SIGINT, SIG_IGN);
	int r = follow(a, &e);
	if (r < 0 && r != -EPIPE)
		cli_show_error(page.verb, &e);
	a->shared->ended = true;
	_exit(r < 0 ? CLI_FAILED : CLI_OK);
}

static int type_cells(struct attached *a, struct error *e)
{
	_cleanup_free_ char *history = paths_home_file(
		"XDG_STATE_HOME", ".local/state", "glovebox/history");
	int r = prompt_create(history, &a->prompt);
	if (r < 0)
		return error_set_errno(e, r, "the prompt");
	prompt_set_completion(a->prompt, complete, a);
	/* without SA_RESTART: the wait for a cell ends, and the interrupt is passed on */
	sigaction(SIGINT, &(struct sigaction){ .sa_handler = on_interrupt }, NULL);
	fflush(NULL);
	a->viewer = fork();
	if (a->viewer == 0)
		view(a);
	if (a->viewer > 0)
		loop(a);
	prompt_destroy(a->prompt);
	if (a->viewer < 0)
		return error_set_errno(e, -errno, "a process for the output");
	kill(a->viewer, SIGTERM);
	waitpid(a->viewer, NULL, 0);
	return 0;
}

static int run_attach(const struct options *o, const char *word)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	_cleanup_free_ char *id = NULL;
	struct attached a = { .options = o, .cell = BUFFER_INIT(0) };
	struct error e = { 0 };
	signal(SIGPIPE, SIG_IGN);
	int r = client_create(&o->client, &e, &c);
	if (r == 0)
		r = client_find_session(c, word, &e, &id);
	a.client = c;
	a.id = id;
	a.shared = mmap(
		NULL, sizeof(*a.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r == 0 && a.shared == MAP_FAILED)
		r = error_set_errno(&e, -errno, "memory for the cells");
	if (r == 0)
		r = o->watch ? follow(&a, &e) : type_cells(&a, &e);
	if (a.shared != MAP_FAILED)
		munmap(a.shared, sizeof(*a.shared));
	buffer_finish(&a.cell);
	if (r == -EPIPE)
		return CLI_PIPE;
	if (r < 0)
		cli_show_error(page.verb, &e);
	return r < 0 || a.failed ? CLI_FAILED : CLI_OK;
}

int cli_attach(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);
	if (first >= 0 && argc - first != 1)
		code = cli_usage(page.verb, argc == first ? "which session? Give its id or name"
							  : "give only one session");
	else if (first >= 0)
		code = run_attach(&o, argv[first]);
	options_finish(rows, &o);
	return code;
}
