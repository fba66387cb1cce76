/* `glovebox run`: what a person sees of the code, and the exit code. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api/answers.h"
#include "base/cleanup.h"
#include "base/fds.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/cli_words.h"
#include "cli/run_internal.h"
#include "local/local.h"
#include "json/json_write.h"

enum { SIGNAL_BASE = 128 }; /* exit codes of what a signal ended, as shells count */

/* The reader of our output left: python would have died of SIGPIPE at its next write. */
static void pass_through(struct run *run, int fd, const char *data, size_t len)
{
	if (run->pipe_closed || fd_write_waiting(fd, data, len) == 0)
		return;
	run->pipe_closed = true;
	local_end(run->local);
}

static void on_started(void *userdata, unsigned cell)
{
	struct run *run = userdata;
	(void)cell;
	run->started = true;
}

static void on_output(void *userdata, enum stream stream, const char *data, size_t len)
{
	pass_through(userdata, stream == STREAM_STDOUT ? STDOUT_FILENO : STDERR_FILENO, data, len);
}

/*
 * As python, a script shows what it prints; what it gives to display() is text for people at a
 * terminal only.
 */
static void on_display(void *userdata, const struct bundle *b)
{
	struct run *run = userdata;
	if (!run->is_terminal)
		return;
	for (unsigned i = 0; i < b->n; i++) {
		if (text_eq(b->item[i].mime, "text/plain")) {
			pass_through(run, STDOUT_FILENO, b->item[i].data, b->item[i].len);
			pass_through(run, STDOUT_FILENO, "\n", 1);
		}
	}
}

static int exit_code_of(const struct run *run, const struct observation *o, int signal_number)
{
	if (run->pipe_closed)
		return CLI_PIPE;
	if (signal_number && o->status != CELL_OK &&
		o->status != CELL_ERROR) /* else it dealt with it, and ended as it liked */
		return SIGNAL_BASE + signal_number;
	if (!run->started)
		return CLI_NO_START;
	if (o->status == CELL_TIMEOUT)
		return CLI_TIMEOUT;
	if (o->status == CELL_INTERRUPTED)
		return CLI_INTERRUPT;
	if (o->status != CELL_OK && o->exit_code == 0)
		return CLI_FAILED;
	return o->exit_code;
}

static void write_line(const char *text, size_t len)
{
	fd_write_waiting(STDERR_FILENO, text, len);
	if (len && text[len - 1] != '\n')
		fd_write_waiting(STDERR_FILENO, "\n", 1);
}

/* Limits that stopped the code; its own error says nothing of them. */
static bool is_ours(const char *code)
{
	return text_eq(code, "cpu_limit") || text_eq(code, "output_limit");
}

static bool is_limit(const char *code)
{
	static const char *const codes[] = { "disk_full", "file_too_large", "too_many_files",
		"too_many_processes" };
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (text_eq(code, codes[i]))
			return true;
	return is_ours(code);
}

/* Some errors say themselves what to do. */
static bool has_unsaid_remedy(const struct cell_error *error)
{
	return *error->remedy && !text_starts(error->code, "policy_") &&
	       !memmem(error->traceback, error->traceback_len, error->remedy,
		       strlen(error->remedy));
}

/*
 * The traceback as python prints it (which says nothing at sys.exit), then a sentence for the ends
 * that are ours.
 */
static void explain(const struct run *run, const struct observation *o)
{
	const struct cell_error *error = o->error;
	char remedy[EDGE_TEXT_MAX];

	cli_remedy(error ? error->remedy : "", remedy);
	if (error)
		run_dir_advise(run, error->code, error->message, remedy, sizeof(remedy));
	if (error && !text_eq(error->type, "SystemExit"))
		write_line(error->traceback, error->traceback_len);
	if (error && text_starts(error->code, "policy_") && *remedy)
		cli_complain("run", "refused by the profile: %s", remedy);
	if (error && !run->started)
		cli_complain("run", "%s%s%s", error->message, *remedy ? "\n  " : "", remedy);
	else if (error && is_limit(error->code))
		cli_complain("run", "%s%s%s",
			is_ours(error->code) ? error->message : "a limit was reached",
			*remedy ? "\n  " : "", remedy);
	else if (o->status == CELL_TIMEOUT)
		cli_complain("run", "the code took longer than %g s and was ended",
			run->options->timeout);
	else if (o->status == CELL_INTERRUPTED && o->state_lost)
		cli_complain("run", "the code did not stop when it was interrupted and was killed");
	else if (o->status == CELL_OUT_OF_MEMORY)
		cli_complain(
			"run", "the code reached its memory limit (--memory SIZE sets another)");
	else if (o->status == CELL_KILLED && error)
		cli_complain("run", "%s", error->message);
	else if (error && o->status == CELL_ERROR && has_unsaid_remedy(error))
		cli_complain("run", "%s", remedy);
}

static int write_observation(struct buffer *out, const struct observation *o)
{
	struct json_writer w;
	struct observation said = *o;
	struct cell_error error;
	char remedy[EDGE_TEXT_MAX];
	if (o->error) {
		error = *o->error;
		error.remedy = cli_remedy(error.remedy, remedy);
		said.error = &error;
	}

	json_writer_init(&w, out);
	answer_put_observation(&w, &said);
	return json_writer_end(&w);
}

/* The picture that was asked for, or why there is none. */
static void save_screenshot(struct run *run, const struct screenshot *s)
{
	const char *name = run->options->screenshot;
	_cleanup_fd_ int fd = -1;
	char remedy[EDGE_TEXT_MAX];

	if (!s || !s->data) {
		cli_complain("run", "no picture was taken: %s%s%s",
			s ? s->text : "the code did not run", s && *s->remedy ? "\n  " : "",
			cli_remedy(s ? s->remedy : "", remedy));
		run->no_picture = true;
		return;
	}

	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int r = fd < 0 ? -errno : fd_write_full(fd, s->data, s->len);
	if (r < 0) {
		cli_complain("run", "%s: %s", name, strerror(-r));
		run->no_picture = true;
	} else if (s->no_window) {
		cli_complain("run", "%s shows an empty screen: the code opened no window", name);
	}
}

static int copy_to(const char *name, int from)
{
	char piece[65536];
	_cleanup_fd_ int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int r = fd < 0 ? -errno : 0;
	ssize_t n;
	for (off_t at = 0; r == 0 && (n = pread(from, piece, sizeof(piece), at)) != 0; at += n)
		r = n < 0 ? -errno : fd_write_full(fd, piece, (size_t)n);
	return r;
}

/* The film that was asked for, or why there is none. */
void run_save_recording(struct run *run)
{
	struct error e = { 0 };
	int fd, r = local_recording(run->local, run->recording, run->film, &e, &fd);
	if (r == 0) {
		r = copy_to(run->options->record, fd);
		if (r < 0)
			error_set(&e, r, "%s: %s", run->options->record, strerror(-r));
	}
	if (r < 0) {
		char remedy[EDGE_TEXT_MAX];
		cli_complain("run", "no film was made: %s%s%s", e.text, *e.remedy ? "\n  " : "",
			cli_remedy(e.remedy, remedy));
		run->no_picture = true;
	}
}

static void on_done(void *userdata, const struct observation *o)
{
	struct run *run = userdata;
	run->recording = o->recording;
	if (run->options->screenshot)
		save_screenshot(run, o->screenshot);
	int number = local_signal(run->local);
	run->exit_code = exit_code_of(run, o, number);
	if (run->options->json)
		run->json_error = write_observation(&run->json, o);
	else if (!run->pipe_closed &&
		 !(number && o->status == CELL_KILLED)) /* who ended it knows why */
		explain(run, o);
}

const struct cell_observer run_observer_live = {
	.on_started = on_started,
	.on_output = on_output,
	.on_display = on_display,
	.on_done = on_done,
	.uncapped = true,
};
const struct cell_observer run_observer_json = { .on_started = on_started, .on_done = on_done };
