/* glovebox open: the server's console in a browser. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "json/json_read.h"

struct options {
	struct client_options client;
	bool print, help;
};

/* clang-format off */
static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	{ "print", 'p', OPTION_FLAG, offsetof(struct options, print), .flag_only = true,
	  .help = "print the address and start no browser" },
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "open",
	.usage = "[options] [SESSION]",
	.about =
		"Opens the server's console, or the notebook of a session in it, with xdg-open, and prints the address. The\n"
		"token is not part of the address: other users could see it in the list of processes. The console asks for it.",
	.rows = rows,
	.examples = "  glovebox open\n"
		    "  glovebox open analysis\n",
	.environment = true,
};

extern char **environ;

/* BROWSER is a program, as other tools use it. */
static const char *const programs[] = { NULL, "xdg-open", "x-www-browser", "wslview", NULL };

static int start(const char *program, const char *url)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	pid_t pid;
	char *argv[] = { (char *)program, (char *)url, NULL };
	if (posix_spawn_file_actions_init(&files))
		return -ENOMEM;
	posix_spawnattr_init(&attributes);
	/* it outlives this command, and its terminal */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDERR_FILENO);
	int r = posix_spawnp(&pid, program, &files, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return -r;
}

static bool start_browser(const char *url)
{
	const char *own = getenv("BROWSER");
	if (own && *own && start(own, url) == 0)
		return true;
	for (size_t i = 1; programs[i]; i++)
		if (start(programs[i], url) == 0)
			return true;
	return false;
}

static int address_of(const struct options *o, const char *word, struct error *e, struct buffer *b)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	_cleanup_json_ json_t *answer = NULL;
	_cleanup_free_ char *id = NULL;
	const char *url = o->client.url;

	if (text_starts(url, "unix:")) {
		error_set(e, -EINVAL, "a browser cannot open the socket file %s", url + 5);
		return error_remedy(e, "start the server with --listen 127.0.0.1:8000 too");
	}

	int r = client_create(&o->client, e, &c);
	if (r == 0)
		r = client_call(c, "GET", "/v1/sessions?limit=1", e, &answer);
	if (r == 0 && word)
		r = client_find_session(c, word, e, &id);
	if (r < 0)
		return r;
	size_t len = strlen(url);
	while (len && url[len - 1] == '/')
		len--;
	r = buffer_printf(b, "%s%.*s/", strstr(url, "://") ? "" : "http://", (int)len, url);
	if (id)
		r |= buffer_printf(b, "#/s/%s", id);
	return r || !buffer_cstr(b) ? error_set_errno(e, -ENOMEM, "the address") : 0;
}

static int open_console(const struct options *o, const char *word)
{
	_cleanup_buffer_ struct buffer url = BUFFER_INIT(0);
	struct error e = { 0 };
	if (address_of(o, word, &e, &url) < 0) {
		cli_show_error(page.verb, &e);
		return CLI_FAILED;
	}

	printf("%s\n", url.data);
	fflush(stdout);
	if (!o->print && !start_browser(url.data))
		cli_complain(page.verb, "no browser could be started: open the address by hand");
	if (o->client.token && *o->client.token)
		fprintf(stderr, "The console asks for the token of the server.\n");
	return CLI_OK;
}

int cli_open(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);
	if (first >= 0 && argc - first > 1)
		code = cli_usage(page.verb, "give only one session");
	else if (first >= 0)
		code = open_console(&o, first < argc ? argv[first] : NULL);
	options_finish(rows, &o);
	return code;
}
