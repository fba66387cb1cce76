/* glovebox exec: a process in a session of a server, with its streams here. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/limits.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "http/sse.h"
#include "json/json_read.h"
#include "json/json_write.h"

enum { TARGET_MAX = 256, INPUT_AT_ONCE = 32 * 1024, NOT_FOUND = 127 };

struct options {
	struct client_options client;
	bool tty, detach, help;
	char *cwd, **env;
	double timeout_s;
};

/* clang-format off */
static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	{ "tty", 't', OPTION_FLAG, offsetof(struct options, tty), .flag_only = true,
	  .help = "run the program in a terminal, connected to yours if there is one" },
	{ "detach", 'd', OPTION_FLAG, offsetof(struct options, detach), .flag_only = true,
	  .help = "print the number of the process and leave it running" },
	{ "cwd", 'C', OPTION_TEXT, offsetof(struct options, cwd), .value = "DIR", .flag_only = true,
	  .help = "working directory of the program (default: /workspace)" },
	{ "env", 'e', OPTION_ITEMS, offsetof(struct options, env), .value = "NAME=VALUE", .flag_only = true,
	  .help = "set an environment variable; may be repeated" },
	{ "timeout", 0, OPTION_SECONDS, offsetof(struct options, timeout_s), .min = 0.1, .value = "SECONDS", .flag_only = true,
	  .help = "kill the program after this time" },
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "exec",
	.usage = "[options] SESSION [--] [COMMAND [ARGUMENT …]]",
	.about =
		"Runs a program in a session of a server, beside its interpreter. The program uses the standard streams of\n"
		"this command, which returns the program's exit code. Without COMMAND, bash is started. The program ends when\n"
		"this command ends, unless it was started with -d.",
	.rows = rows,
	.examples = "  glovebox exec analysis -- ls -l\n"
		    "  glovebox exec -t analysis\n"
		    "  glovebox exec -d analysis -- sleep 60\n",
	.environment = true,
};

/* ---- starting -------------------------------------------------------------------------------- */

static void window(unsigned *ret_rows, unsigned *ret_columns)
{
	struct winsize size = { 0 };
	bool known = ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col;
	*ret_rows = known ? size.ws_row : 24;
	*ret_columns = known ? size.ws_col : 80;
}

static void put_size(struct json_writer *w)
{
	unsigned lines, columns;
	window(&lines, &columns);
	json_open_object(w);
	json_field_uint(w, "rows", lines);
	json_field_uint(w, "cols", columns);
	json_close(w);
}

static void put_environment(struct json_writer *w, char *const *env)
{
	json_key(w, "env");
	json_open_object(w);
	for (; env && *env; env++) {
		size_t n = strcspn(*env, "=");
		json_key_text(w, *env, n);
		json_put_cstr(w, (*env)[n] ? *env + n + 1 : "");
	}
	json_close(w);
}

static int write_request(const struct options *o, char **argv, struct buffer *b)
{
	static char *shell[] = { (char *)"bash", NULL };
	struct json_writer w;

	json_writer_init(&w, b);
	json_open_object(&w);
	json_key(&w, "argv");
	json_open_array(&w);
	for (argv = *argv ? argv : shell; *argv; argv++)
		json_put_cstr(&w, *argv);
	json_close(&w);
	json_field_bool(&w, "background", o->detach);
	json_field_cstr(&w, "encoding", "base64");
	json_field_bool(&w, "stdin_open", !o->detach);
	if (o->cwd)
		json_field_cstr(&w, "cwd", o->cwd);
	if (o->timeout_s > 0)
		json_field_double(&w, "timeout_s", o->timeout_s);
	put_environment(&w, o->env);
	if (o->tty) {
		json_key(&w, "pty");
		put_size(&w);
	}

	json_close(&w);
	int r = json_writer_end(&w);
	return r < 0 ? r : buffer_cstr(b) ? 0 : -ENOMEM;
}

/* ---- input: in a process of its own, which has a connection of its own -------------- */

static volatile sig_atomic_t resized;

static void on_resize(int sig)
{
	(void)sig;
	resized = 1;
}

static void send_size(struct client *c, const char *target)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	_cleanup_json_ json_t *answer = NULL;
	char address[TARGET_MAX + 32];
	struct json_writer w;
	snprintf(address, sizeof(address), "%.280s/resize", target);
	json_writer_init(&w, &b);
	put_size(&w);
	resized = 0;
	if (json_writer_end(&w) == 0 && buffer_cstr(&b))
		client_send(c, "POST", address, b.data, NULL, &answer);
}

static int send_input(struct client *c, const char *target, const char *data, size_t len)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	_cleanup_json_ json_t *answer = NULL;
	char address[TARGET_MAX + 32];
	struct error e = { 0 };
	struct json_writer w;

	snprintf(address, sizeof(address), "%.280s/stdin", target);
	json_writer_init(&w, &b);
	json_open_object(&w);
	if (len)
		json_field_base64(&w, "base64", data, len);
	else
		json_field_bool(&w, "close", true);
	json_close(&w);
	if (json_writer_end(&w) < 0 || !buffer_cstr(&b))
		return -ENOMEM;
	return client_send(c, "POST", address, b.data, &e, &answer);
}

static void __attribute__((noreturn)) pass_input(const struct options *o, const char *target)
{
	static char data[INPUT_AT_ONCE];
	struct client *c;
	ssize_t n;

	if (client_create(&o->client, NULL, &c) < 0)
		_exit(1);
	/* without SA_RESTART, so that a resize interrupts read() and the new size is sent */
	if (o->tty)
		sigaction(SIGWINCH, &(struct sigaction){ .sa_handler = on_resize }, NULL);
	for (;;) {
		n = read(STDIN_FILENO, data, sizeof(data));
		if (n < 0 && errno == EINTR) {
			if (resized)
				send_size(c, target);
			continue;
		}
		if (send_input(c, target, data, n > 0 ? (size_t)n : 0) < 0 || n <= 0)
			_exit(0);
	}
}

/* ---- output ------------------------------------------------------------------------- */

/* The server ends the process when this stream breaks off. */
struct output {
	struct sse_reader sse;
	const struct options *options;
	char target[TARGET_MAX]; /* of the session's processes */
	pid_t input;             /* the process that passes our input on; 0: none */
	int exit_code;           /* -1: it has not ended */
};

static void begin_input(struct output *out, const json_t *started)
{
	char target[TARGET_MAX + 24];
	snprintf(target, sizeof(target), "%s/%lld", out->target,
		(long long)json_integer_value(json_object_get(started, "id")));
	out->input = fork();
	if (out->input == 0)
		pass_input(out->options, target);
}

static int on_event(const char *event, const char *id, const char *data, size_t len, void *userdata)
{
	struct output *out = userdata;
	_cleanup_buffer_ struct buffer bytes = BUFFER_INIT(0);
	json_t *tree = NULL;

	(void)id;
	if (json_read(data, len, NULL, &tree) < 0)
		return -EPROTO;
	_cleanup_json_ json_t *owned = tree;
	const char *text = json_string_value(json_object_get(owned, "base64"));
	if (text_eq(event, "started"))
		begin_input(out, owned);
	if (text_eq(event, "exit"))
		out->exit_code = (int)json_integer_value(json_object_get(owned, "exit_code"));
	if (!text || text_base64_decode(&bytes, text, strlen(text)) < 0)
		return 0;
	return fd_write_waiting(
		text_eq(event, "stderr") ? STDERR_FILENO : STDOUT_FILENO, bytes.data, bytes.len);
}

static int on_data(const char *data, size_t len, void *userdata)
{
	struct output *out = userdata;
	return sse_feed(&out->sse, data, len);
}

/* ---- the whole ---------------------------------------------------------------------- */

static struct termios before;

static bool make_raw(void)
{
	struct termios raw;
	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return false;
	raw = before;
	cfmakeraw(&raw);
	return tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static int detach(struct client *c, const char *target, const struct buffer *body, struct error *e)
{
	_cleanup_json_ json_t *answer = NULL;
	int r = client_send(c, "POST", target, body->data, e, &answer);
	if (r == 0)
		printf("%lld\n", (long long)json_integer_value(json_object_get(answer, "id")));
	return r;
}

static int run_in(
	const struct options *o, struct client *c, const char *id, char **argv, struct error *e)
{
	_cleanup_buffer_ struct buffer body = BUFFER_INIT(0);
	struct output out = { .options = o, .exit_code = -1 };
	int r = write_request(o, argv, &body);

	if (r < 0)
		return error_set(e, r, "the command is too long");
	snprintf(out.target, sizeof(out.target), "/v1/sessions/%.64s/processes", id);
	if (o->detach)
		return detach(c, out.target, &body, e);
	bool raw = o->tty && make_raw();
	sse_reader_init(&out.sse, LIMIT_OUT_QUEUE_BYTES, on_event, &out);
	r = client_stream(c, "POST", out.target, "text/event-stream", &body, on_data, &out, e);
	sse_reader_finish(&out.sse);
	if (out.input > 0) {
		kill(out.input, SIGKILL);
		waitpid(out.input, NULL, 0);
	}

	if (raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
	if (out.exit_code >= 0)
		return out.exit_code;
	return r < 0 ? r : error_set(e, -ECONNRESET, "the connection to the process was lost");
}

static int run_exec(const struct options *o, const char *word, char **argv)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	_cleanup_free_ char *id = NULL;
	struct error e = { 0 };
	signal(SIGPIPE, SIG_IGN);
	int r = client_create(&o->client, &e, &c);
	if (r == 0)
		r = client_find_session(c, word, &e, &id);
	if (r == 0)
		r = run_in(o, c, id, argv, &e);
	if (r >= 0)
		return r;
	cli_show_error(page.verb, &e);
	return text_eq(e.slug, "cannot_start") ? NOT_FOUND : CLI_FAILED;
}

int cli_exec(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, false, &code);
	if (first >= 0 && first == argc) {
		code = cli_usage(page.verb, "which session? Give its id or name");
	} else if (first >= 0) {
		char **command = argv + first + 1;
		if (*command && text_eq(*command, "--"))
			command++;
		code = run_exec(&o, argv[first], command);
	}
	options_finish(rows, &o);
	return code;
}
