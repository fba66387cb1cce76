/* The mcp-* settings of the server and of its tokens, checked, as the API takes them. */
#pragma once

#include "api/api.h"
#include "daemon/config.h"
#include "network/network_policy.h"

struct profiles;

struct mcp_settings {
	/* the server's, then one for each token; they point into the settings */
	struct mcp_config *configs;
	struct network_policy *networks;
	unsigned n;
};

/*
 * Errors name the setting. The settings must outlive *ret; end it with mcp_settings_finish(), also
 * after an error.
 */
int mcp_settings_load(const struct config *c, const struct profiles *profiles, struct error *e,
	struct mcp_settings *ret);
void mcp_settings_finish(struct mcp_settings *s);
