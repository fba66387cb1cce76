/* glovebox run: as `python3 FILE`, in a sandbox that is gone afterwards. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/fds.h"
#include "base/text.h"
#include "cli/backend.h"
#include "cli/cli.h"
#include "cli/run_internal.h"
#include "local/local.h"
#include "json/json_write.h"

#define AT(member) offsetof(struct run_options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{ "code", 'c', OPTION_TEXT, AT(code), .value = "CODE", .ends = true,
	  .help = "run this code; the command-line words after it are its arguments" },
	{ "timeout", 't', OPTION_SECONDS, AT(timeout), 0.1, 0, "SECONDS",
	  .help = "time limit; the exit code is then 124 (default: no limit)" },
	{ "profile", 0, OPTION_TEXT, AT(profile), .value = "NAME",
	  .help = "executor profile: python, smolagents, restricted, restrictedpython, tinyagent or one of your own (default: EXECUTOR_BACKEND, else python)" },
	{ "executor-backend", 0, OPTION_TEXT, AT(profile), .value = "NAME",
	  .help = "another name of --profile" },
	{ "import", 0, OPTION_ITEMS, AT(imports), .value = "MODULE",
	  .help = "allow the import of a module that the profile does not allow; numpy.* includes its submodules; may be repeated (ADDITIONAL_IMPORTS is read too)" },
	{ "exec", 0, OPTION_CHOICE, AT(exec), .value = "WHICH", .fallback = "system", .choices = local_exec_names,
	  .help = "programs that the code may start: those of the system, none, or any, its own files included" },
	{ "network", 0, OPTION_TEXT, AT(network), .value = "WHICH", .fallback = "none",
	  .help = "network of the code: none, loopback (a private one), or HOST:PORT rules separated by commas" },
	{ "allow", 0, OPTION_LIST, AT(allow), .value = "HOST:PORT",
	  .help = "allow connections to this address and to the private loopback only; may be repeated (docs/network.md)" },
	{ "memory", 'm', OPTION_SIZE, AT(memory), 16 << 20, 0, "SIZE",
	  .help = "memory limit; the code gets a MemoryError beyond it (default 2G)" },
	{ "rootfs", 0, OPTION_TEXT, AT(rootfs), .value = "DIRECTORY",
	  .help = "system tree that the code sees instead of this machine's own" },
	{ "disk", 0, OPTION_SIZE, AT(disk), 1 << 20, 0, "SIZE",
	  .help = "bytes in /workspace, and as many in /tmp (default 256M)" },
	{ "inodes", 0, OPTION_SIZE, AT(inodes), 64, 0, "N",
	  .help = "files in /workspace, and as many in /tmp (default 65536)" },
	{ "file-size", 0, OPTION_SIZE, AT(file_size), 4096, 0, "SIZE",
	  .help = "size of one file (default 1G)" },
	{ "open-files", 0, OPTION_COUNT, AT(open_files), 16, 4096, "N",
	  .help = "files that may be open at once (default 1024)" },
	{ "processes", 0, OPTION_COUNT, AT(processes), 1, 65536, "N",
	  .help = "processes and threads at once (default 256)" },
	{ "cpus", 0, OPTION_NUMBER, AT(cpus), 0.01, 1024, "N",
	  .help = "CPU limit in cores, such as 0.5 (default: no limit)" },
	{ "cpu-time", 0, OPTION_SECONDS, AT(cpu_time), 0.1, 0, "SECONDS",
	  .help = "limit of CPU time (default: no limit)" },
	{ "total-output", 0, OPTION_SIZE, AT(total_output), 1024, 0, "SIZE",
	  .help = "limit of output; the code is ended beyond it (default 1G)" },
	{ "env", 'e', OPTION_ITEMS, AT(env), .value = "NAME=VALUE",
	  .help = "set an environment variable; may be repeated (your own environment is not passed on)" },
	{ "package", 'p', OPTION_ITEMS, AT(packages), .value = "PACKAGE",
	  .help = "install a package, such as 'pandas>=2'; installed once, then cached; may be repeated" },
	{ "dir", 0, OPTION_TEXT, AT(dir), .value = "DIRECTORY",
	  .help = "directory whose files the code sees in its working directory, read-only (default: that of FILE, unless it is your home directory)" },
	{ "out", 0, OPTION_TEXT, AT(out), .value = "DIRECTORY",
	  .help = "copy the files that the code wrote in its working directory to this one, at the end" },
	{ "mount", 0, OPTION_ITEMS, AT(mounts), .value = "DIRECTORY:/PLACE",
	  .help = "directory that the code sees at /PLACE, read-only: /NAME, or a name below /mnt; may be repeated" },
	{ "stdin", 0, OPTION_TEXT, AT(stdin_file), .value = "FILE",
	  .help = "file for input() and sys.stdin; - is the standard input of this command" },
	{ "display", 0, OPTION_FLAG, AT(display),
	  .help = "give the code a screen for windows" },
	{ "display-size", 0, OPTION_TEXT, AT(display_size), .value = "WxH",
	  .help = "size of the screen in pixels (default 1024x768)" },
	{ "screenshot", 0, OPTION_TEXT, AT(screenshot), .value = "FILE",
	  .help = "save a picture of the screen (.png or .jpg) when its windows are completely painted; then the windows are closed, so that the code can end" },
	{ "render-timeout", 0, OPTION_SECONDS, AT(render_timeout), 0.01, LIMIT_RENDER_SECONDS, "SECONDS",
	  .help = "time for windows to be painted after the code has ended; the process is kept alive meanwhile (default 0.5)" },
	{ "record", 0, OPTION_TEXT, AT(record), .value = "FILE",
	  .help = "record the screen while the code runs: .webm, .mp4 or .gif (needs ffmpeg), or an animated .png" },
	{ "json", 0, OPTION_FLAG, AT(json),
	  .help = "print the whole observation as JSON at the end, instead of the output while the code runs" },
	CLI_HELP(struct run_options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "run",
	.usage = "[options] [FILE | - | -c CODE] [ARGUMENT…]",
	.about =
		"Runs Python in a new sandbox, which is removed afterwards. No server is needed.\n"
		"Without FILE and -c the code is read from standard input, when that is a pipe or a file.\n"
		"The exit code is that of the code; 124: time limit, 130: Ctrl-C, 125: the sandbox could not be started.",
	.rows = rows,
	.examples = "  glovebox run -c 'print(6 * 7)'\n"
		    "  glovebox run --timeout 10 --memory 512M script.py one two\n"
		    "  echo 'print(input())' > echo.py; date | glovebox run --stdin - echo.py\n"
		    "  echo 'print(6 * 7)' | glovebox run\n"
		    "  glovebox run --dir data --out results script.py\n"
		    "  glovebox run --mount /srv/models:/models script.py\n"
		    "  glovebox run --package rich script.py\n"
		    "  glovebox run --screenshot out.png window.py\n"
		    "  glovebox run --json -c '1 / 0' | jq .error.type\n",
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
	int r = standard ? read_standard_input(max, ret, ret_len)
			 : fd_read_file(name, max, ret, ret_len);
	if (r == -EFBIG) {
		error_set(e, r, "%s is larger than %zu MB", standard ? "standard input" : name,
			max >> 20);
		return error_remedy(e, "let the code read large data from a file instead");
	}
	return r < 0 ? error_set_errno(e, r, "%s", standard ? "standard input" : name) : 0;
}

static int read_code(
	const struct run_options *o, const char *name, struct error *e, char **ret, size_t *ret_len)
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
		r = local_execute(l,
			&(struct cell_request){ .code = code.data, .code_len = code.len },
			&(struct cell_observer){ .on_done = ignore_done }, &status, e);
	if (r == 0 && status != CELL_OK)
		r = error_set(e, -ECANCELED, "the code was not started (%s)",
			cell_status_name((enum cell_status)status));
	return r;
}

static int execute(struct run *run, const char *name, char *const *words,
	const struct cell_request *request, struct error *e)
{
	int r = *words ? set_arguments(run->local, name, words, e) : 0;
	if (r == 0)
		r = local_execute(run->local, request,
			run->options->json ? &run_observer_json : &run_observer_live, run, e);
	return r;
}

static int print_json(struct run *run)
{
	if (run->json_error < 0) {
		cli_complain(page.verb, "the observation does not fit into memory");
		return CLI_FAILED;
	}
	buffer_append_char(&run->json, '\n');
	return fd_write_waiting(STDOUT_FILENO, run->json.data, run->json.len) < 0 ? CLI_PIPE
										  : run->exit_code;
}

static struct session_limits limits_of(const struct run_options *o)
{
	return (struct session_limits){ .disk_bytes = o->disk,
		.inodes = o->inodes,
		.file_bytes = o->file_size,
		.open_files = o->open_files,
		.processes = o->processes,
		.total_output_bytes = o->total_output,
		.cpus = o->cpus,
		.cpu_s = o->cpu_time };
}

/* "1280x800" */
static int parse_size(const char *text, struct display_params *ret, struct error *e)
{
	unsigned width, height;
	char rest;
	if (!text)
		return 0;
	if (sscanf(text, "%5ux%5u%c", &width, &height, &rest) != 2 || width < 64 || height < 64 ||
		width > LIMIT_DISPLAY_SIDE || height > LIMIT_DISPLAY_SIDE) {
		error_set(e, -EINVAL, "--display-size: '%.40s': invalid size", text);
		return error_remedy(e, "write WIDTHxHEIGHT, each from 64 to %d, such as 1280x800",
			LIMIT_DISPLAY_SIDE);
	}
	ret->width = width;
	ret->height = height;
	return 0;
}

static int check_picture(const struct run_options *o, struct cell_request *request, struct error *e)
{
	const char *dot = o->screenshot ? strrchr(o->screenshot, '.') : NULL;
	if (!o->screenshot)
		return 0;
	if (!dot || (!text_eq(dot, ".png") && !text_eq(dot, ".jpg") && !text_eq(dot, ".jpeg"))) {
		error_set(
			e, -EINVAL, "--screenshot: '%.60s': unknown file extension", o->screenshot);
		return error_remedy(e, "use .png or .jpg");
	}
	request->has_screenshot = true;
	request->screenshot.format = text_eq(dot, ".png") ? SHOT_PNG : SHOT_JPEG;
	request->screenshot.render_ms = (uint32_t)(o->render_timeout * 1000);
	return 0;
}

static int check_film(const struct run_options *o, struct cell_request *request, struct error *e)
{
	static const struct {
		const char *ending;
		enum film_format format;

	} endings[] = { { ".apng", FILM_APNG }, { ".png", FILM_APNG }, { ".webm", FILM_WEBM },
		{ ".mp4", FILM_MP4 }, { ".gif", FILM_GIF } };
	const char *dot = o->record ? strrchr(o->record, '.') : NULL;
	if (!o->record)
		return 0;
	for (size_t i = 0; dot && i < ARRAY_LEN(endings); i++)
		if (text_eq(dot, endings[i].ending)) {
			request->record = true;
			request->recording.format = endings[i].format;
			return film_check(endings[i].format, e);
		}
	error_set(e, -EINVAL, "--record: '%.60s': unknown file extension", o->record);
	return error_remedy(e, "use .webm, .mp4, .gif or .png");
}

struct inputs {
	struct cell_request request; /* points into the others */
	struct display_params screen;
	char *code, *input;
};

static void inputs_finish(struct inputs *in)
{
	free(in->code);
	free(in->input);
}

/* Everything that the command line names is read before a sandbox is made. */
static int prepare(struct run *run, const char *name, struct inputs *in, struct error *e)
{
	const struct run_options *o = run->options;
	struct cell_request *request = &in->request;
	int r = check_env(o->env, e);
	if (r == 0)
		r = parse_size(o->display_size, &in->screen, e);
	if (r == 0)
		r = check_picture(o, request, e);
	if (r == 0)
		r = check_film(o, request, e);
	if (r == 0)
		r = run_dir_find(run, name, e);
	if (r == 0)
		r = run_mounts_find(run, e);
	if (r == 0)
		r = run_dir_check_out(o, e);
	if (r == 0)
		r = read_code(o, name, e, &in->code, &request->code_len);
	if (r == 0 && o->stdin_file)
		r = read_text(o->stdin_file, LIMIT_STDIN_BYTES, e, &in->input, &request->stdin_len);

	run->film = request->recording.format;
	request->code = in->code;
	request->stdin_text = in->input;
	request->final = true;
	return r;
}

static int create_sandbox(struct run *run, struct backend *backend,
	const struct display_params *screen, struct error *e)
{
	static char *no_modules[] = { NULL };
	const struct run_options *o = run->options;
	_cleanup_free_ char *shown = NULL;

	if (run_dir_shown(run, fetched_shown(&backend->fetched), &shown) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	int r = local_create(
		&(struct local_config){ .env = o->env,
			.packages = fetched_package(&backend->fetched),
			.shown = shown,
			.mounts = run->mounts.n ? run->mounts.asked : NULL,
			.mount_names = run->mounts.n ? run->mounts.names : NULL,
			.profile = backend->profile,
			.imports = backend->imports,
			.imports_below = backend->imports_below,
			.preload = no_modules,
			.timeout_s = o->timeout,
			.memory_bytes = o->memory,
			.exec = (enum jail_exec)o->exec,
			.limits = limits_of(o),
			.rootfs = o->rootfs,
			.display = o->display || o->display_size || o->screenshot || o->record,
			.display_size = *screen,
			.network = o->network,
			.allow = o->allow },
		e, &run->local);
	return r == 0 ? run_dir_link(run, e) : r;
}

static int fail(const struct error *e, int code)
{
	cli_show_error(page.verb, e);
	return code;
}

static int run_code(const struct run_options *o, const char *name, char *const *words)
{
	struct error e = { 0 };
	_cleanup_(run_mounts_finish) struct run run = { .options = o,
		.is_terminal = isatty(STDOUT_FILENO) };
	_cleanup_(inputs_finish) struct inputs in = { 0 };
	struct backend backend;

	if (prepare(&run, name, &in, &e) < 0)
		return fail(&e, CLI_USAGE);
	if (backend_open(&backend, page.verb, o->profile, o->imports, o->packages, &e) < 0)
		return fail(&e, CLI_NO_START);

	int r = create_sandbox(&run, &backend, &in.screen, &e);
	if (r == 0)
		r = execute(&run, name, words, &in.request, &e);
	if (r == 0 && o->record)
		run_save_recording(&run);
	bool saved = r < 0 || run_dir_save(&run);
	local_destroy(run.local);
	backend_finish(&backend);
	if (r < 0)
		return fail(&e, CLI_NO_START);

	int exit_code = o->json ? print_json(&run) : run.exit_code;
	if ((run.no_picture || !saved) && exit_code == 0)
		exit_code = CLI_FAILED;
	buffer_finish(&run.json);
	return exit_code;
}

/* A pipe or a file is the standard input: not a terminal, nor /dev/null. */
static bool is_given_code(void)
{
	struct stat st;
	return fstat(STDIN_FILENO, &st) == 0 &&
	       (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

int cli_run(int argc, char **argv)
{
	struct run_options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, false, &code);

	if (first >= 0) {
		const char *name = o.code ? "-c" : first < argc ? argv[first++] : NULL;
		if (!name && is_given_code() && !text_eq(o.stdin_file, "-"))
			name = "-";
		if (!name)
			code = cli_usage(page.verb,
				"nothing to run: give a FILE, - for standard input, or -c CODE");
		else if (text_eq(name, "-") && text_eq(o.stdin_file, "-"))
			code = cli_usage(
				page.verb, "standard input cannot be both the code and its input");
		else
			code = run_code(&o, name, argv + first);
	}

	options_finish(rows, &o);
	return code;
}
