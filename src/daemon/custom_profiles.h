/* The profiles of this machine's configuration directories. */
#pragma once

#include "base/error.h"

struct config;
struct profiles;

/* Reads profiles/ beside the settings file (when one was read; may be NULL), below ~/.config/glovebox and below /etc/glovebox, in
 * this order. */
int own_profiles_load(const char *settings_file, struct error *e, struct profiles **ret);

/* The profile of OpenEnv's environments. */
const char *own_profiles_openenv(const struct config *c);

/* Whether the server's profiles can be put together with its imports: a wrong default would refuse every session. */
int own_profiles_check(const struct profiles *p, const struct config *c, struct error *e);
