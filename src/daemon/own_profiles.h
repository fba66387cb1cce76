/* The profiles of this machine's configuration directories. */
#pragma once

#include "base/error.h"

struct config;
struct profiles;

/* Reads profiles/ beside the settings file (when one was read; may be NULL), below ~/.config/glovebox and below /etc/glovebox, in
 * this order. */
int own_profiles_load(const char *settings_file, struct error *e, struct profiles **ret);
