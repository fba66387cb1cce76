/* glovebox drain */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "json/json_read.h"

enum { LOOK_US = 500 * 1000 };

struct options {
	struct client_options client;
	double deadline_s;
	bool cancel, wait, help;
};

static const struct option_row rows[] = {
	{ .name = "deadline",
		.type = OPTION_SECONDS,
		.offset = offsetof(struct options, deadline_s),
		.value = "SECONDS",
		.fallback = "0",
		.min = 0,
		.max = 31536000,
		.help = "end the remaining sessions after this time; 0: let them continue until they end" },
	{ .name = "wait",
		.type = OPTION_FLAG,
		.offset = offsetof(struct options, wait),
		.help = "return when no session is left" },
	{ .name = "cancel",
		.type = OPTION_FLAG,
		.offset = offsetof(struct options, cancel),
		.help = "cancel the drain: the server creates new sessions again" },
	CLIENT_ROWS(struct options),
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page page = {
	.verb = "drain",
	.usage = "[options]",
	.about =
		"Drains a server before it is replaced: the server creates no new sessions, and serves its existing sessions. A load\n"
		"balancer that checks /readyz sends new sessions to other servers. The signal SIGUSR1 to the server does the same.",
	.rows = rows,
	.examples = "  glovebox drain --deadline 600 --wait && systemctl restart glovebox\n"
		    "  glovebox drain --cancel\n",
	.environment = true,
};

/* The number of sessions, or a negative errno. */
static long long look(struct client *c, struct error *e)
{
	json_t *answer = NULL;
	int r = client_call(c, "GET", "/v1/node", e, &answer);
	long long n = r < 0 ? r : json_integer_value(json_object_get(answer, "sessions"));
	json_decref(answer);
	return n;
}

static int wait_for_end(struct client *c, struct error *e)
{
	long long n, shown = -1;
	while ((n = look(c, e)) > 0) {
		if (n != shown)
			fprintf(stderr, "%lld sessions are left\n", n);
		shown = n;
		usleep(LOOK_US);
	}
	if (n == 0)
		puts("drained: no sessions are left");
	return n < 0 ? -1 : 0;
}

static int drain(const struct options *o)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	struct error e = { 0 };
	json_t *answer = NULL;
	char body[64];

	snprintf(body, sizeof(body), "{\"deadline_s\":%.3f}", o->deadline_s);
	int r = client_create(&o->client, &e, &c);
	if (r == 0 && o->cancel)
		r = client_call(c, "DELETE", "/v1/node/drain", &e, &answer);
	else if (r == 0)
		r = client_send(c, "POST", "/v1/node/drain", body, &e, &answer);
	if (r == 0)
		printf("%s, %lld sessions\n", json_string_value(json_object_get(answer, "state")),
			json_integer_value(json_object_get(answer, "sessions")));
	json_decref(answer);
	if (r == 0 && o->wait && !o->cancel)
		r = wait_for_end(c, &e);
	if (r < 0)
		cli_show_error(page.verb, &e);
	return r < 0 ? CLI_FAILED : CLI_OK;
}

int cli_drain(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, false, &code);
	if (first >= 0)
		code = drain(&o);
	options_finish(rows, &o);
	return code;
}
