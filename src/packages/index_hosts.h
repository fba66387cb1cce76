/* What the installer's jail may reach: the hosts of the indexes and of the pages with links, and those that were named. */
#pragma once

#include <jansson.h>

#include "base/error.h"

/*
 * The rules "HOST:PORT" for these settings, an array of texts that is the caller's; empty when offline. -EINVAL for an address that is
 * no http or https URL.
 */
int reach_rules(const json_t *settings, struct error *e, json_t **ret);
