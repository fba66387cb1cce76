/*
 * The command line from outside: what it prints, and its exit codes. The server behind ps, kill and
 * logs is a small one of the test's own, in a process of its own, so that answers of every kind can
 * be given.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/show_picture.h"
#include "daemon/config.h"
#include "http/http.h"
#include "session/session.h"
#include "tap.h"

enum { OUTPUT_MAX = 256 * 1024, ARGUMENTS_MAX = 16 };

static char out_text[OUTPUT_MAX], err_text[OUTPUT_MAX];

static void slurp(int fd, char *text)
{
	ssize_t n = pread(fd, text, OUTPUT_MAX - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	close(fd);
}

/*
 * Runs the command line in a child; its output is in out_text and err_text, its exit code is
 * returned.
 */
static int run(const char *const *words)
{
	char *argv[ARGUMENTS_MAX] = { (char *)"glovebox" };
	int argc = 1, status = 0;
	int out = open("/tmp", O_TMPFILE | O_RDWR, 0600),
	    err = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	while (*words)
		argv[argc++] = (char *)*words++;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		int code = cli_main(argc, argv);
		fflush(stdout);
		_exit(code);
	}
	waitpid(pid, &status, 0);
	slurp(out, out_text);
	slurp(err, err_text);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
#define RUN(...) run((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

/* ---- without a server -------------------------------------------------- */

static void test_overview(void)
{
	OK(RUN() == CLI_USAGE && strstr(err_text, "usage: glovebox VERB"));
	OK(RUN("--help") == 0 && strstr(out_text, "doctor"));
	OK(!strstr(out_text, "jailer"));
	OK(RUN("help", "logs") == 0 && strstr(out_text, "glovebox logs -f"));
	OK(RUN("srve") == CLI_USAGE && strstr(err_text, "`glovebox serve`"));
	OK(RUN("teleport") == CLI_USAGE && strstr(err_text, "--help"));
	OK(RUN("help", "teleport") == CLI_USAGE);
	for (const struct cli_verb *v = cli_verbs; v->name; v++) {
		if (!v->summary)
			continue;
		OK(RUN(v->name, "--help") == 0 && text_starts(out_text, "usage: glovebox "));
		OK(RUN(v->name, "--nonsense") == CLI_USAGE &&
			strstr(err_text, "unknown option --nonsense"));
	}
}

static void test_version(void)
{
	OK(RUN("version") == 0);
	OK_STR(out_text, "glovebox " GLOVEBOX_VERSION "\n");
	OK(RUN("--version") == 0 && text_starts(out_text, "glovebox "));
	OK(RUN("version", "--json") == 0 &&
		text_starts(out_text, "{\"version\":\"" GLOVEBOX_VERSION "\""));
	OK(RUN("version", "x") == CLI_USAGE);
}

static void test_usage(void)
{
	OK(RUN("run") == CLI_USAGE && strstr(err_text, "nothing to run"));
	OK(RUN("run", "/nonexistent.py") == CLI_USAGE &&
		strstr(err_text, "/nonexistent.py: No such file") && !strstr(err_text, "-c"));
	OK(RUN("run", "print(1)") == CLI_USAGE && strstr(err_text, "glovebox run -c"));
	OK(RUN("run", "--stdin", "-", "-") == CLI_USAGE);
	OK(RUN("run", "--env", "NAME", "-c", "1") == CLI_USAGE && strstr(err_text, "NAME=VALUE"));
	OK(RUN("run", "--timeout", "soon", "-c", "1") == CLI_USAGE &&
		strstr(err_text, "--timeout: 'soon'"));
	OK(RUN("shell", "word") == CLI_USAGE);
	OK(RUN("kill") == CLI_USAGE && strstr(err_text, "--all"));
	OK(RUN("kill", "--all", "x") == CLI_USAGE);
	OK(RUN("logs") == CLI_USAGE && RUN("logs", "a", "b") == CLI_USAGE);
	OK(RUN("ps", "x") == CLI_USAGE);
	OK(RUN("serve", "--check", "--listen", "0.0.0.0:1") == CLI_USAGE &&
		strstr(err_text, "--token-file"));
	OK(RUN("serve", "--check", "--config", "/dev/null") == 0 &&
		strstr(out_text, "settings are valid"));
}

static void test_amounts(void)
{
	char buf[CLI_AMOUNT_MAX];
	OK_STR(cli_format_size(0, buf), "0 B");
	OK_STR(cli_format_size(999, buf), "999 B");
	OK_STR(cli_format_size(1234, buf), "1.2 kB");
	OK_STR(cli_format_size(12345, buf), "12 kB");
	OK_STR(cli_format_size(3.4e9, buf), "3.4 GB");
	OK_STR(cli_format_age(-1, buf), "0s");
	OK_STR(cli_format_age(119, buf), "119s");
	OK_STR(cli_format_age(600, buf), "10m");
	OK_STR(cli_format_age(7200, buf), "2h");
	OK_STR(cli_format_age(3 * 86400, buf), "3d");
}

/* `serve` and what links the session table directly must not differ in what they do by default. */
static void test_defaults_agree(void)
{
	struct config c = { 0 };
	struct sessions_config s;
	options_init(config_rows, &c);
	sessions_config_init(&s);
	OK(c.ready == s.ready_guests && c.max_sessions == s.max_sessions &&
		c.queue == s.max_queued_cells);
	OK(c.grace == s.grace_s && c.ttl == s.default_ttl_s &&
		c.idle_timeout == s.default_idle_timeout_s);
	OK(c.timeout == s.defaults.timeout_s && c.max_timeout == s.maxima.timeout_s);
	OK(c.output == s.defaults.output_bytes && c.max_output == s.maxima.output_bytes);
	OK(c.memory == s.defaults.memory_bytes && c.max_memory == s.maxima.memory_bytes);
	OK(c.disk == s.defaults.disk_bytes && c.max_disk == s.maxima.disk_bytes);
	OK(c.log == s.defaults.log_bytes && c.max_log == s.maxima.log_bytes);
	config_finish(&c);
}

/* ---- displays ---------------------------------------------------------- */

static void print_display(void)
{
	unsigned number = 0;
	struct bundle b = { .n = 3,
		.item = { { "text/plain", "<Figure>", 8, false },
			{ "image/png", "aGVsbG8=", 8, false }, { "text/html", "<b>", 3, false } } };
	struct bundle damaged = { .n = 1, .item = { { "image/jpeg", "???", 3, false } } };
	struct bundle other = { .n = 1, .item = { { "text/html", "<b>x</b>", 8, false } } };
	display_print(&b, false, &number);
	display_print(&b, true, &number);
	display_print(&b, true, &number);
	display_print(&damaged, true, &number);
	display_print(&other, true, &number);
}

static void test_display(void)
{
	char folder[] = "/tmp/test_cli.XXXXXX", path[64], text[16] = "";
	if (!mkdtemp(folder)) {
		OK(!"a folder for the test");
		return;
	}
	int out = open("/tmp", O_TMPFILE | O_RDWR, 0600), status;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		if (chdir(folder) < 0)
			_exit(1);
		fd_close(open("glovebox-2.png", O_WRONLY | O_CREAT | O_CLOEXEC,
			0600)); /* somebody's: must stay */
		print_display();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	slurp(out, out_text);
	OK_STR(out_text, "<Figure>\n[image/png, 5 B]\n"
			 "<Figure>\n[image/png, 5 B: saved to glovebox-1.png]\n"
			 "<Figure>\n[image/png, 5 B: saved to glovebox-3.png]\n"
			 "[image/jpeg, damaged]\n"
			 "[text/html, 8 B]\n");
	for (int i = 3; i >= 1; i--) {
		snprintf(path, sizeof(path), "%s/glovebox-%d.png", folder, i);
		_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);
		OK(n == (i == 2 ? 0 : 5) && (i == 2 || !memcmp(text, "hello", 5)));
		unlink(path);
	}
	OK(rmdir(folder) == 0);
}

/* ---- with a server ----------------------------------------------------- */

#define ID_A "s_aaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "s_bbbbbbbbbbbbbbbbbbbbbbbbbb"
#define SESSION(id, name)                   \
	"{\"id\":\"" id "\",\"name\":" name \
	",\"state\":\"idle\",\"created\":\"2020-01-01T00:00:00.000Z\",\"expires_in_s\":90,\"cells\":3}"
#define ENTRY(cell, stream, text) \
	"{\"cell\":" cell ",\"stream\":\"" stream "\",\"text\":\"" text "\"}"

static const struct {
	const char *method, *target;
	int status;
	const char *body;
} answers[] = {
	{ "GET", "/v1/sessions?limit=1000", 200,
		"{\"sessions\":[" SESSION(ID_A, "\"one\\u001b[2J\"") "],\"next\":7}" },
	{ "GET", "/v1/sessions?limit=1000&cursor=7", 200,
		"{\"sessions\":[" SESSION(ID_B, "null") "],\"next\":null}" },
	{ "GET", "/v1/sessions?limit=2&name=one", 200,
		"{\"sessions\":[" SESSION(ID_A, "\"one\"") "],\"next\":null}" },
	{ "GET", "/v1/sessions?limit=2&name=twin", 200,
		"{\"sessions\":[" SESSION(ID_A, "\"twin\"") "," SESSION(
			ID_B, "\"twin\"") "],\"next\":null}" },
	{ "GET", "/v1/sessions?limit=2&name=no%20one", 200, "{\"sessions\":[],\"next\":null}" },
	{ "DELETE", "/v1/sessions/" ID_A, 204, NULL },
	{ "DELETE", "/v1/sessions/" ID_B, 410,
		"{\"code\":\"session_gone\",\"detail\":\"it ended before\",\"remediation\":\"make a new "
		"one\"}" },
	{ "GET", "/v1/sessions/" ID_A "/logs?after=0", 200,
		"{\"entries\":[" ENTRY("1", "stdout", "one\\n") "," ENTRY(
			"1", "stderr", "two\\n") "],\"next\":9,\"end\":false}" },
	{ "GET", "/v1/sessions/" ID_A "/logs?after=9", 200,
		"{\"entries\":[" ENTRY("2", "stdout", "three\\n") "],\"next\":12,\"end\":true}" },
	{ "GET", "/v1/sessions/" ID_A "/logs?after=12", 410, "{\"detail\":\"it ended\"}" },
	{ "GET", "/v1/sessions/" ID_A "/logs?after=0&cell=2&stream=stdout", 200,
		"{\"entries\":[" ENTRY("2", "stdout", "three\\n") "],\"next\":12,\"end\":true}" },
};

static void on_request(struct http_exchange *x, void *userdata)
{
	const char *method = http_method_name(http_method(x)), *target = http_target(x);
	const char *authorization = http_header(x, "Authorization");
	(void)userdata;
	if (authorization && !text_eq(authorization, "Bearer good")) {
		http_respond_problem(x, 401, "unauthorized", "the token is not known", "");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		if (!text_eq(answers[i].method, method) || !text_eq(answers[i].target, target))
			continue;
		const char *body = answers[i].body ? answers[i].body : "";
		http_respond_copy(x, answers[i].status, "application/json", body, strlen(body));
		return;
	}
	http_respond_problem(x, 404, "not_found", target, "");
}

static void on_gone(struct http_exchange *x, void *userdata)
{
	(void)x;
	(void)userdata;
}

/* Serves in a child until it is killed; *ret_url is where. */
static pid_t start_server(char *ret_url, size_t size)
{
	static const struct http_handler handler = { .on_request = on_request, .on_gone = on_gone };
	int pipe_fds[2];
	if (pipe(pipe_fds) < 0)
		return -1;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct http_server *server;
		struct http_server_config config = {
			.loop = uv_default_loop(), .listen = "127.0.0.1:0", .handler = &handler
		};
		if (http_server_create(&config, NULL, &server) < 0)
			_exit(1);
		const char *address = http_server_address(server);
		if (write(pipe_fds[1], address, strlen(address)) < 0)
			_exit(1);
		close(pipe_fds[1]);
		uv_run(uv_default_loop(), UV_RUN_DEFAULT);
		_exit(0);
	}
	close(pipe_fds[1]);
	char address[64] = "";
	ssize_t n = read(pipe_fds[0], address, sizeof(address) - 1);
	close(pipe_fds[0]);
	snprintf(ret_url, size, "http://%s", n > 0 ? address : "");
	return pid;
}

static void test_ps(void)
{
	OK(RUN("ps") == 0);
	OK(strstr(out_text, ID_A "  one?[2J ") &&
		strstr(out_text, ID_B "  -  ")); /* both pages, nothing that moves the cursor */
	OK(strstr(out_text, "idle          3") && strstr(out_text, "90s"));
	OK(RUN("ps", "--quiet") == 0);
	OK_STR(out_text, ID_A "\n" ID_B "\n");
	OK(RUN("ps", "--json") == 0 && text_starts(out_text, "[{\"id\":\"" ID_A "\""));
	OK(RUN("ps", "--token", "good") == 0);
	OK(RUN("ps", "--token", "bad") == CLI_FAILED &&
		strstr(err_text, "the token is not known") && strstr(err_text, "GLOVEBOX_TOKEN"));
}

static void test_kill(void)
{
	OK(RUN("kill", ID_A) == 0);
	OK_STR(out_text, ID_A "\n");
	OK(RUN("kill", "one", "--json") == 0);
	OK_STR(out_text, "{\"ended\":[\"" ID_A "\"]}\n");
	OK(RUN("kill", "twin") == CLI_FAILED &&
		strstr(err_text, "several sessions have the name 'twin'"));
	OK(RUN("kill", "no one", ID_A) == CLI_FAILED &&
		strstr(err_text, "no session has the id or name 'no one'"));
	OK_STR(out_text, ID_A "\n"); /* the other one all the same */
	OK(RUN("kill", ID_B) == CLI_FAILED &&
		strstr(err_text, "it ended before\n  make a new one"));
	OK(RUN("kill", "--all") == 0); /* one was gone already, which is what was wanted */
	OK_STR(out_text, ID_A "\n");
}

static void test_logs(void)
{
	OK(RUN("logs", "one") == 0);
	OK_STR(out_text, "one\nthree\n");
	OK_STR(err_text, "two\n");
	OK(RUN("logs", ID_A, "--cell", "2", "--stream", "stdout") == 0);
	OK_STR(out_text, "three\n");
	OK(RUN("logs", "--json", "--cell", "2", "-s", "stdout", ID_A) == 0);
	OK_STR(out_text, ENTRY("2", "stdout", "three\\n") "\n");
	OK(RUN("logs", "-f", ID_A) == 0); /* ends with the session */
	OK_STR(out_text, "one\nthree\n");
	OK(RUN("logs", ID_B) == CLI_FAILED);
	OK(RUN("logs", "--cell", "0", ID_A) == CLI_USAGE);
}

static void test_no_server(void)
{
	OK(RUN("ps", "--url", "http://127.0.0.1:1") == CLI_FAILED &&
		strstr(err_text, "glovebox serve"));
	OK(RUN("ps", "--url", "unix:/nonexistent/socket") == CLI_FAILED &&
		strstr(err_text, "glovebox serve"));
	OK(RUN("ps", "--url", "nonsense") == CLI_FAILED);
}

int main(void)
{
	char url[96];
	unsetenv("GLOVEBOX_TOKEN");
	test_overview();
	test_version();
	test_usage();
	test_amounts();
	test_defaults_agree();
	test_display();
	test_no_server();
	pid_t server = start_server(url, sizeof(url));
	OK(server > 0);
	setenv("GLOVEBOX_URL", url, 1);
	test_ps();
	test_kill();
	test_logs();
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return tap_done();
}
