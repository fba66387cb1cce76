#include "daemon/mcp_settings.h"

#include <errno.h>

#include "dialects/mcp/mcp.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "profile/profiles.h"

static int check_tools(char *const *names, struct error *e)
{
	for (; names && *names; names++) {
		bool known = false;
		for (size_t i = 0; i < mcp_tools_count; i++)
			known |= text_eq(mcp_tools[i].name, *names);
		if (!known) {
			error_set(e, -EINVAL, "mcp-tools: unknown tool \"%s\"", *names);
			return error_remedy(e, "name some of run_python, run_shell, write_file, read_file, list_files, rollback, fork_session, "
					       "close_session, screenshot, computer");
		}
	}
	return 0;
}

static int check_profile(const struct config *c, const struct profiles *profiles, struct error *e)
{
	_cleanup_(profile_choice_finish) struct profile_choice choice = { 0 };
	if (!c->mcp_profile)
		return 0;
	int r = profiles_choose(profiles, c->mcp_profile, NULL, c->additional_imports, true, e, &choice);
	return r < 0 ? error_wrap(e, "mcp-profile") : 0;
}

int mcp_settings_load(const struct config *c, const struct profiles *profiles, struct error *e, struct mcp_settings *ret)
{
	const char *network = c->mcp_network ? c->mcp_network : c->default_network;
	int r = check_tools(c->mcp_tools, e);
	if (!r)
		r = check_profile(c, profiles, e);
	if (!r) {
		r = network_policy_parse(network ? network : "none", e, &ret->network);
		if (r < 0)
			error_wrap(e, "mcp-network");
	}
	if (r < 0)
		return r;

	ret->config = (struct mcp_config){
		.profile = c->mcp_profile,
		.packages = c->mcp_packages,
		.display = c->mcp_display,
		.network = c->mcp_network ? &ret->network : NULL,
		.open_world = ret->network.net == JAIL_NET_ALLOW,
		.tools = c->mcp_tools,
	};
	return 0;
}

void mcp_settings_finish(struct mcp_settings *s)
{
	network_policy_finish(&s->network);
}
