/* The mcp-* settings, checked, as the API takes them. */
#pragma once

#include "api/api.h"
#include "daemon/config.h"
#include "network/network_policy.h"

struct profiles;

struct mcp_settings {
	struct mcp_config config; /* points into the settings and into `network` */
	struct network_policy network;
};

/* Errors name the setting. The settings must outlive *ret; end it with mcp_settings_finish(). */
int mcp_settings_load(const struct config *c, const struct profiles *profiles, struct error *e, struct mcp_settings *ret);
void mcp_settings_finish(struct mcp_settings *s);
