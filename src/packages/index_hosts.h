/*
 * The hosts that the installer's jail may reach: those of the indexes, of the pages with links, and
 * of the setting packages-host.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

/*
 * The rules "HOST:PORT" for these settings, an array of texts that is the caller's; empty when
 * offline. -EINVAL for an address that is no http or https URL.
 */
int reach_rules(const json_t *settings, struct error *e, json_t **ret);
