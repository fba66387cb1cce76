/* glovebox ps */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/session_rows.h"
#include "json/json_read.h"

struct options {
	struct client_options client;
	bool json, quiet, help;
};

static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	{ "quiet", 'q', OPTION_FLAG, offsetof(struct options, quiet), .flag_only = true,
		.help = "print the ids only" },
	CLI_JSON(struct options),
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page page = {
	.verb = "ps",
	.usage = "[options]",
	.about = "Lists the sessions of a server.",
	.rows = rows,
	.examples = "  glovebox ps\n"
		    "  glovebox ps --json | jq -r '.[].id'\n"
		    "  GLOVEBOX_URL=http://build-host:8000 GLOVEBOX_TOKEN=… glovebox ps\n",
	.environment = true,
};

static void print_session(const json_t *session)
{
	char expires[CLI_AMOUNT_MAX], age[CLI_AMOUNT_MAX];
	printf("%-28s  ", session_word(session, "id"));
	session_print_plain(session_word(session, "name"), 20);
	printf("%-8s  %5lld  %6s  %7s\n", session_word(session, "state"),
		(long long)json_integer_value(json_object_get(session, "cells")),
		cli_format_age(session_age(session), age),
		cli_format_age(
			json_number_value(json_object_get(session, "expires_in_s")), expires));
}

static void print_table(const json_t *sessions)
{
	printf("%-28s  %-20s  %-8s  %5s  %6s  %7s\n", "ID", "NAME", "STATE", "CELLS", "AGE",
		"EXPIRES");
	for (size_t i = 0; i < json_array_size(sessions); i++)
		print_session(json_array_get(sessions, i));
}

static void print_ids(const json_t *sessions)
{
	for (size_t i = 0; i < json_array_size(sessions); i++)
		printf("%s\n", session_word(json_array_get(sessions, i), "id"));
}

static int list(const struct options *o)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	_cleanup_json_ json_t *sessions = NULL;
	struct error e = { 0 };
	int r = client_create(&o->client, &e, &c);

	if (r == 0)
		r = client_sessions(c, false, &e, &sessions);
	if (r < 0) {
		cli_show_error(page.verb, &e);
		return CLI_FAILED;
	}

	if (o->json) {
		json_dumpf(sessions, stdout, JSON_COMPACT);
		putchar('\n');
	} else if (o->quiet) {
		print_ids(sessions);
	} else {
		print_table(sessions);
	}

	return CLI_OK;
}

int cli_ps(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, false, &code);
	if (first >= 0 && first < argc)
		code = cli_usage(page.verb, "unexpected argument '%.60s'", argv[first]);
	else if (first >= 0)
		code = list(&o);
	options_finish(rows, &o);
	return code;
}
