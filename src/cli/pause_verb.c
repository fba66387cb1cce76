/* glovebox pause and glovebox resume */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "json/json_read.h"

enum { TARGET_MAX = 128 };

struct options {
	struct client_options client;
	bool help;
};

static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page pause_page = {
	.verb = "pause",
	.usage = "[options] SESSION…",
	.about =
		"Pauses sessions, given by id or name. A paused session keeps its variables, files and processes, which are\n"
		"stopped, and refuses cells until it is resumed. It ends when it was paused for longer than the server's setting\n"
		"max-paused (24 hours by default).",
	.rows = rows,
	.examples = "  glovebox pause analysis\n",
	.environment = true,
};

static const struct cli_page resume_page = {
	.verb = "resume",
	.usage = "[options] SESSION…",
	.about = "Resumes paused sessions, given by id or name.",
	.rows = rows,
	.examples = "  glovebox resume analysis\n",
	.environment = true,
};

/* Prints the id. False when it failed; the error was shown. */
static bool ask(struct client *c, const struct cli_page *page, const char *word)
{
	_cleanup_free_ char *id = NULL;
	struct error e = { 0 };
	char target[TARGET_MAX];
	json_t *answer = NULL;
	int r = client_find_session(c, word, &e, &id);

	if (r == 0) {
		snprintf(target, sizeof(target), "/v1/sessions/%s/%s", id, page->verb);
		r = client_call(c, "POST", target, &e, &answer);
		json_decref(answer);
	}

	if (r < 0) {
		cli_show_error(page->verb, &e);
		return false;
	}

	printf("%s\n", id);
	return true;
}

static int ask_all(const struct cli_page *page, const struct options *o, int n, char *const *words)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	struct error e = { 0 };
	bool ok = true;
	if (client_create(&o->client, &e, &c) < 0) {
		cli_show_error(page->verb, &e);
		return CLI_FAILED;
	}
	for (int i = 0; i < n; i++)
		ok = ask(c, page, words[i]) && ok;
	return ok ? CLI_OK : CLI_FAILED;
}

static int run(const struct cli_page *page, int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(page, &o, argc, argv, true, &code);
	if (first >= 0 && first == argc)
		code = cli_usage(page->verb, "which session? Give an id or a name");
	else if (first >= 0)
		code = ask_all(page, &o, argc - first, argv + first);
	options_finish(rows, &o);
	return code;
}

int cli_pause(int argc, char **argv)
{
	return run(&pause_page, argc, argv);
}

int cli_resume(int argc, char **argv)
{
	return run(&resume_page, argc, argv);
}
