/* glovebox logs */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "json/json_read.h"

enum { TARGET_MAX = 256, FOLLOW_MS = 300 };

struct options {
	struct client_options client;
	unsigned cell;
	int stream;
	bool follow, json, help;
};

static const char *const streams[] = { "all", "stdout", "stderr", NULL };

/* clang-format off */
static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	{ "follow", 'f', OPTION_FLAG, offsetof(struct options, follow), .flag_only = true,
	  .help = "show new output until the session ends, or Ctrl-C" },
	{ "cell", 'n', OPTION_COUNT, offsetof(struct options, cell), 1, 0, "N", .flag_only = true,
	  .help = "show only the output of this cell" },
	{ "stream", 's', OPTION_CHOICE, offsetof(struct options, stream), .value = "STREAM", .fallback = "all",
	  .choices = streams, .flag_only = true, .help = "all, stdout or stderr" },
	{ "json", 0, OPTION_FLAG, offsetof(struct options, json), .flag_only = true,
	  .help = "print each entry as a line of JSON, with its cell, stream and time" },
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "logs",
	.usage = "[options] SESSION",
	.about =
		"Shows the output of a session that the server has kept: stdout on stdout, stderr on stderr.\n"
		"The session is given by id or name.",
	.rows = rows,
	.examples = "  glovebox logs analysis\n"
		    "  glovebox logs -f s_k3v…\n"
		    "  glovebox logs --cell 3 --stream stderr analysis\n",
	.environment = true,
};

static int print_entry(const json_t *entry, bool as_json)
{
	const json_t *text = json_object_get(entry, "text");
	bool is_error = text_eq(json_string_value(json_object_get(entry, "stream")), "stderr");
	if (as_json) {
		json_dumpf(entry, stdout, JSON_COMPACT);
		putchar('\n');
		return fflush(stdout) ? -errno : 0;
	}
	if (!json_is_string(text))
		return 0;
	return fd_write_waiting(is_error ? STDERR_FILENO : STDOUT_FILENO, json_string_value(text),
		json_string_length(text));
}

static int print_page(const json_t *answer, bool as_json)
{
	const json_t *entries = json_object_get(answer, "entries");
	int r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(entries); i++)
		r = print_entry(json_array_get(entries, i), as_json);
	return r;
}

static void make_target(const struct options *o, const char *id, long long after, char *out)
{
	int n = snprintf(out, TARGET_MAX, "/v1/sessions/%s/logs?after=%lld", id, after);
	if (o->cell)
		n += snprintf(out + n, TARGET_MAX - (size_t)n, "&cell=%u", o->cell);
	if (o->stream)
		snprintf(out + n, TARGET_MAX - (size_t)n, "&stream=%s", streams[o->stream]);
}

/* Reads pages until the end of the log, or of the session when it follows. */
static int show(const struct options *o, struct client *c, const char *id, struct error *e)
{
	char target[TARGET_MAX];
	long long after = 0;

	for (bool first = true;; first = false) {
		_cleanup_json_ json_t *answer = NULL;
		make_target(o, id, after, target);
		int r = client_call(c, "GET", target, e, &answer);
		if (r == -ENOENT && o->follow && !first)
			return 0; /* it ended while we looked */
		if (r < 0)
			return r;
		if (print_page(answer, o->json) < 0)
			return 0; /* whoever read it has seen enough */
		const json_t *next = json_object_get(answer, "next");
		bool end = json_is_true(json_object_get(answer, "end")) || !json_is_integer(next);
		if (json_is_integer(next))
			after = json_integer_value(next);
		if (end && !o->follow)
			return 0;
		if (end)
			nanosleep(&(struct timespec){ .tv_nsec = FOLLOW_MS * 1000000L }, NULL);
	}
}

static int run_logs(const struct options *o, const char *word)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	_cleanup_free_ char *id = NULL;
	struct error e = { 0 };
	int r = client_create(&o->client, &e, &c);
	if (r == 0)
		r = client_find_session(c, word, &e, &id);
	if (r == 0)
		r = show(o, c, id, &e);
	if (r < 0)
		cli_show_error(page.verb, &e);
	return r < 0 ? CLI_FAILED : CLI_OK;
}

int cli_logs(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);
	if (first >= 0 && argc - first != 1)
		code = cli_usage(page.verb, argc == first ? "which session? Give its id or name"
							  : "give only one session");
	else if (first >= 0)
		code = run_logs(&o, argv[first]);
	options_finish(rows, &o);
	return code;
}
