#include "profile/profiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/paths.h"

int profiles_load(const char *settings_file, struct error *e, struct profiles **ret)
{
	char beside[LIMIT_PATH_BYTES] = "";
	_cleanup_free_ char *own = paths_home_file(
		"XDG_CONFIG_HOME", ".config", "glovebox/profiles");
	const char *directories[4], *slash = settings_file ? strrchr(settings_file, '/') : NULL;
	size_t n = 0;

	if (slash)
		snprintf(beside, sizeof(beside), "%.*s/profiles", (int)(slash - settings_file),
			settings_file);
	else if (settings_file)
		snprintf(beside, sizeof(beside), "profiles");
	if (*beside)
		directories[n++] = beside;
	if (own)
		directories[n++] = own;
	directories[n++] = "/etc/glovebox/profiles";
	directories[n] = NULL;
	return profiles_create(directories, e, ret);
}
