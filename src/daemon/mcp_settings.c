#include "daemon/mcp_settings.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/tokens.h"
#include "dialects/mcp/mcp.h"
#include "profile/profiles.h"

static int check_tools(char *const *names, struct error *e)
{
	for (; names && *names; names++) {
		bool known = false;
		for (size_t i = 0; i < mcp_tools_count; i++)
			known |= text_eq(mcp_tools[i].name, *names);
		if (!known) {
			error_set(e, -EINVAL, "mcp-tools: unknown tool \"%s\"", *names);
			return error_remedy(e,
				"name some of run_python, run_shell, write_file, read_file, list_files, rollback, fork_session, "
				"close_session, screenshot, computer");
		}
	}
	return 0;
}

static int check_profile(const struct mcp_options *o, const struct config *c,
	const struct profiles *profiles, struct error *e)
{
	_cleanup_(profile_choice_finish) struct profile_choice choice = { 0 };
	if (!o->profile)
		return 0;
	int r = profiles_choose(
		profiles, o->profile, NULL, c->additional_imports, true, e, &choice);
	return r < 0 ? error_wrap(e, "mcp-profile") : 0;
}

static int check_most(
	const char *name, double value, double most, const char *most_name, struct error *e)
{
	if (value <= most || most == 0)
		return 0;
	error_set(e, -EINVAL, "%s is larger than %s", name, most_name);
	return error_remedy(e, "raise %s or lower %s", most_name, name);
}

static int check_limits(const struct mcp_options *o, const struct config *c, struct error *e)
{
	int r = check_most("mcp-timeout", o->timeout,
		o->max_timeout > 0 ? o->max_timeout : c->max_timeout,
		o->max_timeout > 0 ? "mcp-max-timeout" : "max-timeout", e);
	if (!r)
		r = check_most("mcp-max-timeout", o->max_timeout, c->max_timeout, "max-timeout", e);
	if (!r)
		r = check_most(
			"mcp-memory", (double)o->memory, (double)c->max_memory, "max-memory", e);
	if (!r)
		r = check_most("mcp-cpus", o->cpus, c->max_cpus, "max-cpus", e);
	if (!r)
		r = check_most("mcp-processes", o->processes, c->max_processes, "max-processes", e);
	return r;
}

static double first_of(double own, double common)
{
	return own > 0 ? own : common;
}

/*
 * The server's settings may be narrower than a default: --timeout 60 with mcp-max-timeout=10 is 10.
 */
static double least(double a, double b)
{
	return a < b ? a : b;
}

static struct mcp_config describe(
	const struct mcp_options *o, const struct config *c, const struct network_policy *network)
{
	double most = first_of(o->max_timeout, c->max_timeout);
	return (struct mcp_config){
		.profile = o->profile,
		.packages = o->packages,
		.display = o->display,
		.network = o->network ? network : NULL,
		.network_text = o->network ? o->network : c->default_network,
		.open_world = network->net == JAIL_NET_ALLOW,
		.installs = c->packages.mode == PACKAGES_INSTALL,
		.timeout_s = least(first_of(o->timeout, c->timeout), most),
		.max_timeout_s = most,
		.idle_timeout_s = first_of(o->idle_timeout, c->idle_timeout),
		.memory_bytes = o->memory ? o->memory : c->memory,
		.cpus = o->cpus,
		.processes = o->processes,
		.tools = o->tools,
	};
}

static int load_one(const struct mcp_options *o, const struct config *c,
	const struct profiles *profiles, struct network_policy *network, struct mcp_config *ret,
	struct error *e)
{
	const char *text = o->network ? o->network : c->default_network;
	int r = check_tools(o->tools, e);

	if (!r)
		r = check_profile(o, c, profiles, e);
	if (!r)
		r = check_limits(o, c, e);
	if (!r) {
		r = network_policy_parse(text ? text : "none", e, network);
		if (r < 0)
			error_wrap(e, "mcp-network");
	}

	if (!r)
		*ret = describe(o, c, network);
	return r;
}

int mcp_settings_load(const struct config *c, const struct profiles *profiles, struct error *e,
	struct mcp_settings *ret)
{
	unsigned n = 1;
	for (char **t = c->token; t && *t; t++)
		n++;
	ret->configs = calloc(n, sizeof(*ret->configs));
	ret->networks = calloc(n, sizeof(*ret->networks));
	if (!ret->configs || !ret->networks)
		return error_set_errno(e, -ENOMEM, "mcp settings");

	for (ret->n = 0; ret->n < n; ret->n++) {
		unsigned token = ret->n - 1;
		bool own = ret->n && token < c->n_token_options && c->token_options[token].given;
		int r = load_one(own ? &c->token_options[token].mcp : &c->mcp, c, profiles,
			&ret->networks[ret->n], &ret->configs[ret->n], e);
		if (r < 0)
			return own ? error_wrap(e, "token-file") : r;
	}
	return 0;
}

void mcp_settings_finish(struct mcp_settings *s)
{
	for (unsigned i = 0; i < s->n; i++)
		network_policy_finish(&s->networks[i]);
	free(s->networks);
	free(s->configs);
}
