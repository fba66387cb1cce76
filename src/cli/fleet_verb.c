/* glovebox fleet: the configuration of a router for several servers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "fleet/haproxy.h"

enum { CONFIGURATION_BYTES = 4 * 1024 * 1024 };

struct options {
	char *listen, *tls, *dns, *name, *nameserver;
	unsigned count, port, agent_port;
	bool agent, help;
};

#define AT(member) offsetof(struct options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{ "listen", 'l', OPTION_TEXT, AT(listen), .value = "ADDRESS", .fallback = ":8080", .group = "router",
	  .help = "address of the router: :PORT for all addresses of its machine, or ADDRESS:PORT" },
	{ "tls", 0, OPTION_TEXT, AT(tls), .value = "FILE",
	  .help = "serve HTTPS; the file has the certificate and its key, as PEM" },
	{ "agent", 0, OPTION_FLAG, AT(agent), .fallback = "yes",
	  .help = "ask each node for its share of free sessions (--agent-listen of the server); --no-agent: new sessions are distributed "
		  "equally, and a session that a full node refuses goes to another node" },
	{ "agent-port", 0, OPTION_COUNT, AT(agent_port), 0, 65535, "PORT", "0",
	  .help = "port of --agent-listen on every node; 0: the port of the node plus one" },
	{ "dns", 0, OPTION_TEXT, AT(dns), .value = "DOMAIN", .group = "nodes by DNS",
	  .help = "the nodes are the pods of a StatefulSet: NAME-0.DOMAIN, NAME-1.DOMAIN and so on. The router resolves these names "
		  "while it runs" },
	{ "name", 0, OPTION_TEXT, AT(name), .value = "NAME", .fallback = "glovebox",
	  .help = "name of the StatefulSet; each server runs with --node and the name of its pod" },
	{ "count", 0, OPTION_COUNT, AT(count), 1, LIMIT_FLEET_NODES, "N", "16",
	  .help = "maximum number of pods; names of pods that do not exist are harmless" },
	{ "port", 0, OPTION_COUNT, AT(port), 1, 65535, "PORT", "8000",
	  .help = "port of the servers" },
	{ "nameserver", 0, OPTION_TEXT, AT(nameserver), .value = "ADDRESS:PORT",
	  .help = "the DNS server to ask (default: those of /etc/resolv.conf)" },
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "fleet",
	.usage = "haproxy NAME=ADDRESS… | haproxy --dns DOMAIN [options]",
	.about =
		"Prints the complete configuration of HAProxy as the router for several servers. The id of a session identifies its node,\n"
		"so the router keeps no list of sessions, and several routers share no state.",
	.rows = rows,
	.examples =
		"  glovebox fleet haproxy a=10.0.0.1:8000 b=10.0.0.2:8000 > /etc/haproxy/haproxy.cfg\n"
		"  glovebox serve --node a --listen 10.0.0.1:8000 --agent-listen 10.0.0.1:8001 …    (on the first machine)\n"
		"  glovebox fleet haproxy --dns glovebox.default.svc.cluster.local --count 32\n",
};

static int collect(
	const struct options *o, int n, char *const *words, struct fleet *ret, struct error *e)
{
	int r = 0;
	if (o->dns)
		return fleet_add_set(ret, o->name, o->dns, o->port, o->count, e);
	for (int i = 0; r == 0 && i < n; i++)
		r = fleet_add_word(ret, words[i], e);
	return r;
}

static int print(const struct options *o, int n, char *const *words)
{
	_cleanup_buffer_ struct buffer out = BUFFER_INIT(CONFIGURATION_BYTES);
	const struct haproxy_settings settings = { .bind = o->listen,
		.tls = o->tls,
		.nameserver = o->nameserver,
		.dns = o->dns != NULL,
		.agent = o->agent,
		.agent_port = o->agent_port };
	struct fleet fleet = { 0 };
	struct error e = { 0 };
	int r = collect(o, n, words, &fleet, &e);

	if (r == 0)
		r = haproxy_write(&fleet, &settings, &e, &out);
	fleet_finish(&fleet);
	if (r < 0)
		cli_show_error(page.verb, &e);
	else if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		r = -EIO;
	return r < 0 ? CLI_FAILED : CLI_OK;
}

int cli_fleet(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);

	if (first >= 0 && (first >= argc || !text_eq(argv[first], "haproxy")))
		code = cli_usage(page.verb, "name the router: haproxy");
	else if (first >= 0 && (first + 1 < argc) == (o.dns != NULL))
		code = cli_usage(page.verb, "give the nodes as NAME=ADDRESS, or --dns, not both");
	else if (first >= 0)
		code = print(&o, argc - first - 1, argv + first + 1);
	options_finish(rows, &o);
	return code;
}
