/* glovebox run: as `python3 FILE`, in a sandbox that is gone afterwards. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/answers.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/backend.h"
#include "cli/cli.h"
#include "local/local.h"
#include "json/json_write.h"
#include "session/display/film.h"

enum { SIGNAL_BASE = 128 }; /* exit codes of what a signal ended, as shells count */

struct options {
	double timeout;
	uint64_t memory, disk, inodes, file_size, total_output;
	unsigned processes, open_files;
	double cpus, cpu_time;
	int exec;
	char *network, **allow;
	char **env, **packages, **imports;
	char *rootfs, *profile, *code, *stdin_file;
	char *screenshot, *record, *display_size;
	double render_timeout;
	bool display, json, help;
};

#define AT(member) offsetof(struct options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{ "code", 'c', OPTION_TEXT, AT(code), .value = "CODE", .ends = true,
	  .help = "run this text; what follows are its arguments" },
	{ "timeout", 't', OPTION_SECONDS, AT(timeout), 0.1, 0, "SECONDS",
	  .help = "end the code after this long, with exit code 124 (default: no limit)" },
	{ "profile", 0, OPTION_TEXT, AT(profile), .value = "NAME",
	  .help = "executor profile: python, smolagents, restricted, restrictedpython, tinyagent or one of your own (default: EXECUTOR_BACKEND, else python)" },
	{ "executor-backend", 0, OPTION_TEXT, AT(profile), .value = "NAME",
	  .help = "another name of --profile" },
	{ "import", 0, OPTION_ITEMS, AT(imports), .value = "MODULE",
	  .help = "a module the code may import beyond its profile's; numpy.* with all below it; may be repeated (besides those of ADDITIONAL_IMPORTS)" },
	{ "exec", 0, OPTION_CHOICE, AT(exec), .value = "WHICH", .fallback = "system", .choices = local_exec_names,
	  .help = "programs the code may start: those of the system, none, or any, also what it wrote itself" },
	{ "network", 0, OPTION_TEXT, AT(network), .value = "WHICH", .fallback = "none",
	  .help = "what the code may reach: none, loopback (a private one), or HOST:PORT rules with commas between them" },
	{ "allow", 0, OPTION_LIST, AT(allow), .value = "HOST:PORT",
	  .help = "let the code reach this, and nothing else but its own loopback; may be repeated (see docs/network.md)" },
	{ "memory", 'm', OPTION_SIZE, AT(memory), 16 << 20, 0, "SIZE",
	  .help = "memory the code may use; a MemoryError beyond it (default 2G)" },
	{ "rootfs", 0, OPTION_TEXT, AT(rootfs), .value = "DIRECTORY",
	  .help = "system tree the code sees instead of this machine's own" },
	{ "disk", 0, OPTION_SIZE, AT(disk), 1 << 20, 0, "SIZE",
	  .help = "files in /workspace, and as much in /tmp (default 256M)" },
	{ "inodes", 0, OPTION_SIZE, AT(inodes), 64, 0, "N",
	  .help = "how many files may be in each (default 65536)" },
	{ "file-size", 0, OPTION_SIZE, AT(file_size), 4096, 0, "SIZE",
	  .help = "size of one file (default 1G)" },
	{ "open-files", 0, OPTION_COUNT, AT(open_files), 16, 4096, "N",
	  .help = "files that may be open at once (default 1024)" },
	{ "processes", 0, OPTION_COUNT, AT(processes), 1, 65536, "N",
	  .help = "processes and threads at once (default 256)" },
	{ "cpus", 0, OPTION_NUMBER, AT(cpus), 0.01, 1024, "N",
	  .help = "processors' worth of time, such as 0.5 (default: as much as there is)" },
	{ "cpu-time", 0, OPTION_SECONDS, AT(cpu_time), 0.1, 0, "SECONDS",
	  .help = "end the code after so much processor time (default: no limit)" },
	{ "total-output", 0, OPTION_SIZE, AT(total_output), 1024, 0, "SIZE",
	  .help = "end the code when it printed more than this (default 1G)" },
	{ "env", 'e', OPTION_ITEMS, AT(env), .value = "NAME=VALUE",
	  .help = "a variable of the code's environment; may be repeated (yours is not passed on)" },
	{ "package", 'p', OPTION_ITEMS, AT(packages), .value = "PACKAGE",
	  .help = "a package the code needs, such as 'pandas>=2'; installed once, from then on at hand; may be repeated" },
	{ "stdin", 0, OPTION_TEXT, AT(stdin_file), .value = "FILE",
	  .help = "what input() and sys.stdin read; - is this command's own standard input" },
	{ "display", 0, OPTION_FLAG, AT(display),
	  .help = "give the code a screen of its own for windows" },
	{ "display-size", 0, OPTION_TEXT, AT(display_size), .value = "WxH",
	  .help = "its size in pixels (default 1024x768)" },
	{ "screenshot", 0, OPTION_TEXT, AT(screenshot), .value = "FILE",
	  .help = "a picture of the screen (.png or .jpg) once its windows have settled; they are closed then, so that the code can end" },
	{ "render-timeout", 0, OPTION_SECONDS, AT(render_timeout), 0.01, LIMIT_RENDER_SECONDS, "SECONDS",
	  .help = "how long its windows may take to be painted after the code has ended, while its process is kept alive (default 0.5)" },
	{ "record", 0, OPTION_TEXT, AT(record), .value = "FILE",
	  .help = "a film of the screen while the code runs: .webm, .mp4 or .gif (which the program ffmpeg makes), or .png, animated" },
	{ "json", 0, OPTION_FLAG, AT(json),
	  .help = "print the whole observation as JSON at the end, instead of the output as it comes" },
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "run",
	.usage = "[options] FILE | - | -c CODE [ARGUMENT…]",
	.about = "Runs Python in a sandbox of its own: no server is needed, nothing of it is left "
		 "afterwards.\n"
		 "The exit code is the code's own; 124: the time limit, 130: Ctrl-C, 125: it could not be "
		 "started.",
	.rows = rows,
	.examples = "  glovebox run -c 'print(6 * 7)'\n"
		    "  glovebox run --timeout 10 --memory 512M script.py one two\n"
		    "  echo 'print(input())' > echo.py; date | glovebox run --stdin - echo.py\n"
		    "  glovebox run --package rich script.py\n"
		    "  glovebox run --screenshot out.png window.py\n"
		    "  glovebox run --json -c '1 / 0' | jq .error.type\n",
};

struct run {
	const struct options *options;
	struct local *local;
	unsigned recording; /* its id; 0: none */
	enum film_format film;
	bool is_terminal, pipe_closed, started;
	int exit_code;
	bool no_picture;
	struct buffer json;
	int json_error;
};

/* ---- what is read ----------------------------------------------------- */

/* Not through /dev/stdin, which cannot be opened when it is a socket. */
static int read_standard_input(size_t max, char **ret, size_t *ret_len)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(max + 1);
	for (;;) {
		int r = buffer_reserve(&b, 1);
		if (r < 0)
			return r == -ENOBUFS ? -EFBIG : r;
		ssize_t n = read(STDIN_FILENO, b.data + b.len, b.cap - b.len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		b.len += n > 0 ? (size_t)n : 0;
	}
	if (b.len > max || !buffer_cstr(&b))
		return -EFBIG;
	*ret = buffer_take(&b, ret_len);
	return 0;
}

/* Reads a file, or standard input for "-". */
static int read_text(const char *name, size_t max, struct error *e, char **ret, size_t *ret_len)
{
	bool standard = text_eq(name, "-");
	int r = standard ? read_standard_input(max, ret, ret_len) : fd_read_file(name, max, ret, ret_len);
	if (r == -EFBIG) {
		error_set(e, r, "%s is larger than %zu MB", standard ? "standard input" : name, max >> 20);
		return error_remedy(e, "let the code read large data from a file instead");
	}
	return r < 0 ? error_set_errno(e, r, "%s", standard ? "standard input" : name) : 0;
}

static int read_code(const struct options *o, const char *name, struct error *e, char **ret, size_t *ret_len)
{
	int r = 0;
	if (o->code) {
		*ret = strdup(o->code);
		*ret_len = strlen(o->code);
		r = *ret ? 0 : error_set_errno(e, -ENOMEM, "the code");
	} else {
		r = read_text(name, LIMIT_CODE_BYTES, e, ret, ret_len);
		if (r == -ENOENT && strpbrk(name, "(=; \n"))
			error_remedy(e, "code itself is given with -c: glovebox run -c '…'");
	}
	if (r < 0)
		return r;
	if (!text_is_utf8(*ret, *ret_len) || strlen(*ret) != *ret_len) {
		error_set(e, -EILSEQ, "%s is not UTF-8 text", o->code ? "the code" : name);
		return error_remedy(e, "convert it: iconv -f latin1 -t utf-8 FILE");
	}
	return 0;
}

static int check_env(char *const *env, struct error *e)
{
	for (; env && *env; env++) {
		const char *equals = strchr(*env, '=');
		if (!equals || equals == *env) {
			error_set(e, -EINVAL, "--env: '%.60s' has no name and value", *env);
			return error_remedy(e, "write NAME=VALUE");
		}
	}
	return 0;
}

/* ---- what is shown ---------------------------------------------------- */

/* The reader of our output left: python would have died of SIGPIPE at its next write. */
static void pass_through(struct run *run, int fd, const char *data, size_t len)
{
	if (run->pipe_closed || cli_write(fd, data, len) == 0)
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

/* As python, a script shows what it prints; what it gives to display() is text for people at a terminal only.
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
	cli_write(STDERR_FILENO, text, len);
	if (len && text[len - 1] != '\n')
		cli_write(STDERR_FILENO, "\n", 1);
}

/* Limits that stopped the code; its own error says nothing of them. */
static bool is_ours(const char *code)
{
	return text_eq(code, "cpu_limit") || text_eq(code, "output_limit");
}

static bool is_limit(const char *code)
{
	static const char *const codes[] = { "disk_full", "file_too_large", "too_many_files", "too_many_processes" };
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (text_eq(code, codes[i]))
			return true;
	return is_ours(code);
}

/* Some errors say themselves what to do. */
static bool has_unsaid_remedy(const struct cell_error *error)
{
	return *error->remedy && !text_starts(error->code, "policy_") && !memmem(error->traceback, error->traceback_len, error->remedy, strlen(error->remedy));
}

/* The traceback as python prints it (which says nothing at sys.exit), then a sentence for the ends that are
 * ours. */
static void explain(const struct run *run, const struct observation *o)
{
	const struct cell_error *error = o->error;
	if (error && !text_eq(error->type, "SystemExit"))
		write_line(error->traceback, error->traceback_len);
	if (error && text_starts(error->code, "policy_") && *error->remedy)
		cli_complain(page.verb, "refused by the profile: %s", error->remedy);
	if (error && !run->started)
		cli_complain(
			page.verb, "%s%s%s", error->message, *error->remedy ? "\n  " : "", error->remedy);
	else if (error && is_limit(error->code))
		cli_complain(page.verb, "%s%s%s", is_ours(error->code) ? error->message : "a limit was reached", *error->remedy ? "\n  " : "",
			error->remedy);
	else if (o->status == CELL_TIMEOUT)
		cli_complain(
			page.verb, "the code took longer than %g s and was ended", run->options->timeout);
	else if (o->status == CELL_INTERRUPTED && o->state_lost)
		cli_complain(page.verb, "the code did not stop when it was interrupted and was killed");
	else if (o->status == CELL_OUT_OF_MEMORY)
		cli_complain(page.verb, "the code reached its memory limit (--memory SIZE sets another)");
	else if (o->status == CELL_KILLED && error)
		cli_complain(page.verb, "%s", error->message);
	else if (error && o->status == CELL_ERROR && has_unsaid_remedy(error))
		cli_complain(page.verb, "%s", error->remedy);
}

static int write_observation(struct buffer *out, const struct observation *o)
{
	struct json_writer w;
	json_writer_init(&w, out);
	answer_put_observation(&w, o);
	return json_writer_end(&w);
}

/* The picture that was asked for, or why there is none. */
static void save_screenshot(struct run *run, const struct screenshot *s)
{
	const char *name = run->options->screenshot;
	_cleanup_fd_ int fd = -1;
	if (!s || !s->data) {
		cli_complain(page.verb, "no picture was taken: %s%s%s", s ? s->text : "the code did not run", s && *s->remedy ? "\n  " : "",
			s ? s->remedy : "");
		run->no_picture = true;
		return;
	}
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int r = fd < 0 ? -errno : fd_write_full(fd, s->data, s->len);
	if (r < 0) {
		cli_complain(page.verb, "%s: %s", name, strerror(-r));
		run->no_picture = true;
	} else if (s->no_window) {
		cli_complain(page.verb, "%s shows an empty screen: the code opened no window", name);
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
static void save_recording(struct run *run)
{
	struct error e = { 0 };
	int fd, r = local_recording(run->local, run->recording, run->film, &e, &fd);
	if (r == 0) {
		r = copy_to(run->options->record, fd);
		if (r < 0)
			error_set(&e, r, "%s: %s", run->options->record, strerror(-r));
	}
	if (r < 0) {
		cli_complain(page.verb, "no film was made: %s%s%s", e.text, *e.remedy ? "\n  " : "", e.remedy);
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
	else if (!run->pipe_closed && !(number && o->status == CELL_KILLED)) /* who ended it knows why */
		explain(run, o);
}

/* ---- running ---------------------------------------------------------- */

/* A cell that makes sys.argv what the command line says. JSON strings are Python strings. */
static int argv_code(struct buffer *out, const char *name, char *const *words)
{
	struct json_writer w;
	buffer_append_str(out, "__import__('sys').argv[:] = ");
	json_writer_init(&w, out);
	json_open_array(&w);
	json_put_cstr(&w, name);
	for (; *words; words++)
		json_put_cstr(&w, *words);
	json_close(&w);
	return json_writer_end(&w);
}

static void ignore_done(void *userdata, const struct observation *o)
{
	int *status = userdata;
	*status = (int)o->status;
}

static int set_arguments(struct local *l, const char *name, char *const *words, struct error *e)
{
	_cleanup_buffer_ struct buffer code = BUFFER_INIT(LIMIT_CODE_BYTES);
	int status = CELL_OK, r = argv_code(&code, name, words);
	if (r == 0)
		r = local_execute(l, &(struct cell_request){ .code = code.data, .code_len = code.len },
			&(struct cell_observer){ .on_done = ignore_done }, &status, e);
	if (r == 0 && status != CELL_OK)
		r = error_set(e, -ECANCELED, "the code was not started (%s)",
			cell_status_name((enum cell_status)status));
	return r;
}

static int execute(struct run *run, const char *name, char *const *words, const struct cell_request *request,
	struct error *e)
{
	const struct cell_observer live = { .on_started = on_started,
		.on_output = on_output,
		.on_display = on_display,
		.on_done = on_done,
		.uncapped = true };
	const struct cell_observer at_end = { .on_started = on_started, .on_done = on_done };
	int r = *words ? set_arguments(run->local, name, words, e) : 0;
	if (r == 0)
		r = local_execute(run->local, request, run->options->json ? &at_end : &live, run, e);
	return r;
}

static int print_json(struct run *run)
{
	if (run->json_error < 0) {
		cli_complain(page.verb, "the observation does not fit into memory");
		return CLI_FAILED;
	}
	buffer_append_char(&run->json, '\n');
	return cli_write(STDOUT_FILENO, run->json.data, run->json.len) < 0 ? CLI_PIPE : run->exit_code;
}

static struct session_limits limits_of(const struct options *o)
{
	return (struct session_limits){ .disk_bytes = o->disk, .inodes = o->inodes, .file_bytes = o->file_size, .open_files = o->open_files,
		.processes = o->processes, .total_output_bytes = o->total_output, .cpus = o->cpus, .cpu_s = o->cpu_time };
}

/* "1280x800" */
static int parse_size(const char *text, struct display_params *ret, struct error *e)
{
	unsigned width, height;
	char rest;
	if (!text)
		return 0;
	if (sscanf(text, "%5ux%5u%c", &width, &height, &rest) != 2 || width < 64 || height < 64 || width > LIMIT_DISPLAY_SIDE ||
		height > LIMIT_DISPLAY_SIDE) {
		error_set(e, -EINVAL, "--display-size: '%.40s' is no size", text);
		return error_remedy(e, "write WIDTHxHEIGHT, each from 64 to %d, such as 1280x800", LIMIT_DISPLAY_SIDE);
	}
	ret->width = width;
	ret->height = height;
	return 0;
}

static int check_picture(const struct options *o, struct cell_request *request, struct error *e)
{
	const char *dot = o->screenshot ? strrchr(o->screenshot, '.') : NULL;
	if (!o->screenshot)
		return 0;
	if (!dot || (!text_eq(dot, ".png") && !text_eq(dot, ".jpg") && !text_eq(dot, ".jpeg"))) {
		error_set(e, -EINVAL, "--screenshot: '%.60s' names no format", o->screenshot);
		return error_remedy(e, "give it the ending .png or .jpg");
	}
	request->has_screenshot = true;
	request->screenshot.format = text_eq(dot, ".png") ? SHOT_PNG : SHOT_JPEG;
	request->screenshot.render_ms = (uint32_t)(o->render_timeout * 1000);
	return 0;
}

static int check_film(const struct options *o, struct cell_request *request, struct error *e)
{
	static const struct {
		const char *ending;
		enum film_format format;
	} endings[] = { { ".apng", FILM_APNG }, { ".png", FILM_APNG }, { ".webm", FILM_WEBM }, { ".mp4", FILM_MP4 }, { ".gif", FILM_GIF } };
	const char *dot = o->record ? strrchr(o->record, '.') : NULL;
	if (!o->record)
		return 0;
	for (size_t i = 0; dot && i < ARRAY_LEN(endings); i++)
		if (text_eq(dot, endings[i].ending)) {
			request->record = true;
			request->recording.format = endings[i].format;
			return film_check(endings[i].format, e);
		}
	error_set(e, -EINVAL, "--record: '%.60s' names no format", o->record);
	return error_remedy(e, "give it the ending .webm, .mp4, .gif or .png");
}

static int run_code(const struct options *o, const char *name, char *const *words)
{
	static char *no_modules[] = { NULL };
	struct error e = { 0 };
	_cleanup_free_ char *code = NULL, *input = NULL;
	struct cell_request request = { 0 };
	struct run run = { .options = o, .is_terminal = isatty(STDOUT_FILENO) };
	struct display_params screen = { 0 };
	int r = check_env(o->env, &e);
	if (r == 0)
		r = parse_size(o->display_size, &screen, &e);
	if (r == 0)
		r = check_picture(o, &request, &e);
	if (r == 0)
		r = check_film(o, &request, &e);
	run.film = request.recording.format;
	if (r == 0)
		r = read_code(o, name, &e, &code, &request.code_len);
	if (r == 0 && o->stdin_file)
		r = read_text(o->stdin_file, LIMIT_STDIN_BYTES, &e, &input, &request.stdin_len);
	if (r < 0) {
		cli_show_error(page.verb, &e);
		return CLI_USAGE;
	}
	request.code = code;
	request.stdin_text = input;
	request.final = true;
	struct backend backend;
	if (backend_open(&backend, page.verb, o->profile, o->imports, o->packages, &e) < 0) {
		cli_show_error(page.verb, &e);
		return CLI_NO_START;
	}
	r = local_create(&(struct local_config){ .env = o->env,
				 .packages = fetched_package(&backend.fetched),
				 .shown = fetched_shown(&backend.fetched),
				 .profile = backend.profile,
				 .imports = backend.imports,
				 .preload = no_modules,
				 .timeout_s = o->timeout,
				 .memory_bytes = o->memory,
				 .exec = (enum jail_exec)o->exec,
				 .limits = limits_of(o),
				 .rootfs = o->rootfs,
				 .display = o->display || o->display_size || o->screenshot || o->record,
				 .display_size = screen,
				 .network = o->network,
				 .allow = o->allow },
		&e, &run.local);
	if (r == 0)
		r = execute(&run, name, words, &request, &e);
	if (r == 0 && o->record)
		save_recording(&run);
	local_destroy(run.local);
	backend_finish(&backend);
	if (r < 0) {
		cli_show_error(page.verb, &e);
		return CLI_NO_START;
	}
	int exit_code = o->json ? print_json(&run) : run.exit_code;
	if (run.no_picture && exit_code == 0)
		exit_code = CLI_FAILED;
	buffer_finish(&run.json);
	return exit_code;
}

int cli_run(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, false, &code);
	if (first >= 0) {
		const char *name = o.code ? "-c" : first < argc ? argv[first++] : NULL;
		if (!name)
			code = cli_usage(
				page.verb, "nothing to run: give a FILE, - for standard input, or -c CODE");
		else if (text_eq(name, "-") && text_eq(o.stdin_file, "-"))
			code = cli_usage(page.verb, "standard input cannot be both the code and its input");
		else
			code = run_code(&o, name, argv + first);
	}
	options_finish(rows, &o);
	return code;
}
