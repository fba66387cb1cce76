/* glovebox mcp: MCP over stdin and stdout, for assistants that start a program. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/mcp_bridge.h"
#include "cli/mcp_install.h"
#include "http/http_client.h"

static const char default_url[] = "http://127.0.0.1:8000";

enum { PROBE_MS = 300, START_MS = 20000, STOP_MS = 1500 };

struct options {
	char *url, *token, *install;
	bool private_server, write, help;
};
#define AT(member) offsetof(struct options, member)

static const struct option_row rows[] = {
	{ "url", 'u', OPTION_TEXT, AT(url), .value = "URL",
		.help = "address of the server (also GLOVEBOX_URL; default: the server on 127.0.0.1:8000 if it runs, else a private server)" },
	{ "token", 0, OPTION_TEXT, AT(token), .value = "TOKEN",
		.help = "token of the server (also GLOVEBOX_TOKEN)" },
	{ "private", 0, OPTION_FLAG, AT(private_server), .flag_only = true,
		.help = "start a private server, even if another server is running" },
	{ "install", 0, OPTION_TEXT, AT(install), .value = "HOST", .flag_only = true,
		.help = "print the configuration for claude, claude-code, cursor, vscode or zed" },
	{ "write", 0, OPTION_FLAG, AT(write), .flag_only = true,
		.help = "with --install: merge the configuration into the host's file, and keep a backup of that file" },
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page page = {
	.verb = "mcp",
	.usage = "[--url URL | --private] | --install HOST [--write]",
	.about =
		"Serves MCP (the Model Context Protocol) on stdin and stdout: an assistant that starts this program can run Python,\n"
		"shell commands and windows in sandboxed sessions. The sessions end when this program ends.",
	.rows = rows,
	.examples =
		"  glovebox mcp --install claude-code             the command for Claude Code\n"
		"  glovebox mcp --install cursor --write          add it to Cursor's configuration\n"
		"  glovebox mcp --url http://127.0.0.1:9000       use that server\n",
	.environment = true,
};

/* ---- a server that runs ------------------------------------------------------------------- */

static int get(const char *address, const char *token, const char *target, unsigned connect_ms,
	struct http_client_response *ret)
{
	struct http_client *client = NULL;
	struct http_client_request q = { .method = "GET",
		.target = target,
		.connect_ms = connect_ms,
		.silence_ms = connect_ms * 4 };
	struct error e = { 0 };
	int r = http_client_create(address, &e, &client);
	if (r == 0)
		r = http_client_set_token(client, token);
	if (r == 0)
		r = http_client_call(client, &q, &e, ret);
	http_client_destroy(client);
	return r;
}

static bool answers(const char *address)
{
	_cleanup_http_response_ struct http_client_response answer = { 0 };
	return get(address, NULL, "/version", PROBE_MS, &answer) == 0 && answer.status == 200 &&
	       buffer_cstr(&answer.body) && strstr(answer.body.data, "glovebox");
}

/* A server that requires a different token belongs to somebody else. */
static bool takes_token(const char *address, const char *token)
{
	_cleanup_http_response_ struct http_client_response answer = { 0 };
	if (get(address, token, "/mcp", PROBE_MS, &answer) < 0 || answer.status != 401)
		return true;
	fprintf(stderr,
		"glovebox mcp: the server on %s needs %s token, so a private one is started; --token or GLOVEBOX_TOKEN gives it\n",
		address, token ? "another" : "a");
	return false;
}

/* ---- a private server ------------------------------------------------------------------------ */

struct private_server {
	char folder[64], address[96];
	pid_t pid;
	int pidfd;
};

/*
 * Ordinary users seldom have control groups; memory and processes are then bounded by resource
 * limits alone.
 */
static int spawn_server(struct private_server *s, struct error *e)
{
	char self[4096], listen[128];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return error_set_errno(e, -errno, "/proc/self/exe");
	self[n] = '\0';
	snprintf(listen, sizeof(listen), "--listen=%s", s->address);
	char verb[] = "serve", ready[] = "--ready=1", level[] = "--log-level=warning",
	     quick[] = "--quick-start";
	char *argv[] = { self, verb, listen, ready, level, quick, NULL };
	extern char **environ;
	_cleanup_fd_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int fds[] = { null, STDERR_FILENO, STDERR_FILENO }; /* nothing but protocol on stdout */
	s->pidfd = process_spawn(self, argv, environ, fds, ARRAY_LEN(fds), &s->pid);
	return s->pidfd < 0 ? error_set_errno(e, s->pidfd, "starting the server") : 0;
}

static int start_server(struct private_server *s, struct error *e)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	snprintf(s->folder, sizeof(s->folder), "%.40s/glovebox-mcp-XXXXXX",
		base && strlen(base) <= 40 && !access(base, W_OK) ? base : "/tmp");
	if (!mkdtemp(s->folder)) {
		*s->folder = '\0';
		return error_set_errno(e, -errno, "creating a directory for the socket");
	}
	snprintf(s->address, sizeof(s->address), "unix:%s/socket", s->folder);
	int r = spawn_server(s, e);
	if (r < 0)
		return r;

	uint64_t until = clock_now_ns() + (uint64_t)START_MS * 1000000;
	while (clock_now_ns() < until) {
		if (answers(s->address))
			return 0;
		if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
			s->pid = 0;
			break;
		}
		usleep(2000);
	}
	error_set(e, -EIO, "the private server did not start");
	return error_remedy(e,
		"run `glovebox doctor` to see what this machine lacks; the server's own messages are above");
}

static void stop_server(struct private_server *s)
{
	uint64_t until = clock_now_ns() + (uint64_t)STOP_MS * 1000000;
	if (s->pid > 0) {
		kill(s->pid, SIGTERM);
		while (waitpid(s->pid, NULL, WNOHANG) == 0 && clock_now_ns() < until)
			usleep(10000);
		kill(s->pid, SIGKILL);
	}
	if (*s->folder) {
		char path[128];
		snprintf(path, sizeof(path), "%s/socket", s->folder);
		unlink(path);
		rmdir(s->folder);
	}
}

static int serve(const struct options *o)
{
	struct private_server server = { .pidfd = -1 };
	struct error e = { 0 };
	struct mcp_bridge_config config = { .address = o->url, .token = o->token };
	int r = 0;

	if (isatty(STDIN_FILENO))
		fprintf(stderr,
			"glovebox mcp: waiting for MCP messages on standard input, one per line. An assistant starts this\n"
			"  command by itself: `glovebox mcp --install HOST` prints its configuration. Ctrl-D ends.\n");
	if (!config.address && !o->private_server && answers(default_url) &&
		takes_token(default_url, o->token))
		config.address = default_url;
	if (!config.address) {
		r = start_server(&server, &e);
		config.address = server.address;
		config.token = NULL;
	}
	if (r == 0)
		r = mcp_bridge_run(&config, &e);
	if (r < 0)
		cli_show_error(page.verb, &e);
	stop_server(&server);
	return r < 0 ? CLI_FAILED : CLI_OK;
}

int cli_mcp(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, false, &code);

	if (first >= 0 && first < argc)
		code = cli_usage(page.verb, "unknown argument %s", argv[first]);
	else if (first >= 0 && o.url && o.private_server)
		code = cli_usage(page.verb, "give --url or --private, not both");
	else if (first >= 0 && o.write && !o.install)
		code = cli_usage(page.verb, "--write needs --install HOST");
	else if (first >= 0)
		code = o.install ? mcp_install(o.install, o.write, o.url, o.token) : serve(&o);
	bool served = first >= 0 && !o.install;
	options_finish(rows, &o);
	if (served)
		_exit(code); /* threads may still wait for a server that is gone */
	return code;
}
