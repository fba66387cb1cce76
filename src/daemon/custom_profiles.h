/* The profiles of this machine's configuration directories. */
#pragma once

#include "base/error.h"

struct config;
struct profiles;

/* The profile of OpenEnv's environments. */
const char *own_profiles_openenv(const struct config *c);

/*
 * Whether the server's profiles can be put together with its imports: a wrong default would refuse
 * every session.
 */
int own_profiles_check(const struct profiles *p, const struct config *c, struct error *e);
