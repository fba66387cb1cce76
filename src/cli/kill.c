/* glovebox kill */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "json/json_read.h"

enum { TARGET_MAX = 128 };

struct options {
	struct client_options client;
	bool all, json, help;
};

static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	{ "all", 'a', OPTION_FLAG, offsetof(struct options, all), .flag_only = true,
		.help = "end every session of the server" },
	CLI_JSON(struct options),
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page page = {
	.verb = "kill",
	.usage = "[options] SESSION… | --all",
	.about =
		"Ends sessions, given by id or name. Running code is killed, and the files of the session are deleted.\n"
		"The exit code is 1 if a session could not be ended; the other sessions are ended anyway.",
	.rows = rows,
	.examples = "  glovebox kill s_k3v…\n"
		    "  glovebox kill analysis\n"
		    "  glovebox kill --all --json\n",
	.environment = true,
};

/* Ends one by its id. */
static int end_session(struct client *c, const char *id, struct error *e)
{
	char target[TARGET_MAX];
	json_t *answer = NULL;
	snprintf(target, sizeof(target), "/v1/sessions/%s", id);
	int r = client_call(c, "DELETE", target, e, &answer);
	json_decref(answer);
	return r;
}

/* Ends one, and notes its id in `ended`. False when that failed; the error was shown. */
static bool end_word(struct client *c, const char *word, json_t *ended)
{
	_cleanup_free_ char *id = NULL;
	struct error e = { 0 };
	int r = client_find_session(c, word, &e, &id);
	if (r == 0)
		r = end_session(c, id, &e);
	if (r < 0) {
		cli_show_error(page.verb, &e);
		return false;
	}
	json_array_append_new(ended, json_string(id));
	return true;
}

static bool end_words(struct client *c, int n, char *const *words, json_t *ended)
{
	bool ok = true;
	for (int i = 0; i < n; i++)
		ok = end_word(c, words[i], ended) && ok;
	return ok;
}

static bool end_all(struct client *c, json_t *ended)
{
	_cleanup_json_ json_t *sessions = NULL;
	struct error e = { 0 };
	bool ok = true;

	if (client_sessions(c, false, &e, &sessions) < 0) {
		cli_show_error(page.verb, &e);
		return false;
	}

	for (size_t i = 0; i < json_array_size(sessions); i++) {
		const char *id = json_string_value(
			json_object_get(json_array_get(sessions, i), "id"));
		int r = id ? end_session(c, id, &e) : 0;
		if (r < 0 && r != -ENOENT) { /* gone by itself in between is what was wanted */
			cli_show_error(page.verb, &e);
			ok = false;
		} else if (id && r == 0) {
			json_array_append_new(ended, json_string(id));
		}
	}

	return ok;
}

static void print_ended(const json_t *ended, bool as_json)
{
	if (as_json) {
		printf("{\"ended\":");
		json_dumpf(ended, stdout, JSON_COMPACT);
		printf("}\n");
		return;
	}
	for (size_t i = 0; i < json_array_size(ended); i++)
		printf("%s\n", json_string_value(json_array_get(ended, i)));
}

static int run_kill(const struct options *o, int n, char *const *words)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	_cleanup_json_ json_t *ended = json_array();
	struct error e = { 0 };
	if (client_create(&o->client, &e, &c) < 0) {
		cli_show_error(page.verb, &e);
		return CLI_FAILED;
	}
	bool ok = o->all ? end_all(c, ended) : end_words(c, n, words, ended);
	print_ended(ended, o->json);
	return ok ? CLI_OK : CLI_FAILED;
}

int cli_kill(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);
	if (first >= 0 && o.all == (first < argc))
		code = o.all ? cli_usage(page.verb, "give sessions or --all, not both")
			     : cli_usage(
				       page.verb, "which session? Give an id or a name, or --all");
	else if (first >= 0)
		code = run_kill(&o, argc - first, argv + first);
	options_finish(rows, &o);
	return code;
}
