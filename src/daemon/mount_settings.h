/* The setting `mount`: directories of this machine that sessions may ask for by name. */
#pragma once

#include "base/error.h"

/*
 * Each NAME:/DIRECTORY is checked. The names are malloc'd, NULL at the end, the caller's; NULL
 * without any.
 */
int mount_settings_names(char *const *settings, struct error *e, char ***ret_names);
void mount_settings_free(char **names);

/*
 * What jails are shown (jail/tree.h): the lines of `others` (may be NULL) and one for each setting.
 * The caller's; NULL without memory.
 */
char *mount_settings_shown(char *const *settings, const char *others);
