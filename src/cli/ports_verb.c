/* glovebox ports */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "json/json_read.h"

enum { TARGET_MAX = 128 };

struct options {
	struct client_options client;
	bool json, help;
};

static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	CLI_JSON(struct options),
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page page = {
	.verb = "ports",
	.usage = "[options] SESSION",
	.about =
		"Lists the servers inside a session, given by id or name, with the addresses at which a browser reaches them.\n"
		"The session must have a loopback: \"network\": \"loopback\".",
	.rows = rows,
	.examples = "  glovebox ports analysis\n",
	.environment = true,
};

static void print_ports(const json_t *answer)
{
	const json_t *ports = json_object_get(answer, "ports");
	if (!json_array_size(ports))
		fputs("glovebox ports: no server listens in this session; servers need a loopback (glovebox new --network loopback)\n",
			stderr);
	for (size_t i = 0; i < json_array_size(ports); i++) {
		const json_t *port = json_array_get(ports, i);
		const char *url = json_string_value(json_object_get(port, "url"));
		const char *path = json_string_value(json_object_get(port, "path"));
		printf("%5lld  %s\n", (long long)json_integer_value(json_object_get(port, "port")),
			url ? url : path);
	}
}

static int show(const struct options *o, const char *word)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	_cleanup_free_ char *id = NULL;
	_cleanup_json_ json_t *answer = NULL;
	struct error e = { 0 };
	char target[TARGET_MAX];
	int r = client_create(&o->client, &e, &c);

	if (r == 0)
		r = client_find_session(c, word, &e, &id);
	if (r == 0) {
		snprintf(target, sizeof(target), "/v1/sessions/%s/ports", id);
		r = client_call(c, "GET", target, &e, &answer);
	}

	if (r < 0) {
		cli_show_error(page.verb, &e);
		return CLI_FAILED;
	}

	if (o->json) {
		json_dumpf(answer, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		print_ports(answer);
	}

	return CLI_OK;
}

int cli_ports(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);
	if (first >= 0 && first + 1 != argc)
		code = cli_usage(page.verb, "which session? Give one id or name");
	else if (first >= 0)
		code = show(&o, argv[first]);
	options_finish(rows, &o);
	return code;
}
