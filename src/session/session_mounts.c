/* Directories of the server that a session asked for by name. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jail/mounts.h"
#include "session/internal.h"

/* One that was asked for: "NAME=/place". */
static void split(const char *asked, struct jail_mount *ret)
{
	const char *equals = strchr(asked, '=');
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(equals - asked), asked);
	snprintf(ret->at, sizeof(ret->at), "%s", equals + 1);
}

static bool has(const struct sessions_config *c, const char *asked)
{
	size_t len = strcspn(asked, "=");
	for (char *const *name = c->mounts; name && *name; name++)
		if (strlen(*name) == len && !strncmp(*name, asked, len))
			return true;
	return false;
}

static int not_there(const struct sessions_config *c, const char *asked, struct error *e)
{
	char names[256] = "";
	for (char *const *name = c->mounts; name && *name; name++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			*names ? ", " : "", *name);
	error_set(e, -EINVAL, "this server has no mount '%.*s'", (int)strcspn(asked, "="), asked);
	if (*names)
		error_remedy(e, "use one of: %s", names);
	else
		error_remedy(e,
			"the operator of the server names directories for sessions in the setting mount (NAME:/DIRECTORY)");
	return error_slug(e, "mount_not_found");
}

int session_mounts_check(const struct sessions_config *c, char *const *asked, struct error *e)
{
	struct jail_mount one;
	size_t n = 0;

	for (; asked && asked[n]; n++) {
		if (!has(c, asked[n]))
			return not_there(c, asked[n], e);
		const char *at = strchr(asked[n], '=') + 1;
		split(asked[n], &one);
		if (strlen(at) < sizeof(one.at) && mounts_is_place(one.name, at))
			continue;
		error_set(e, -EINVAL, "mounts: '%s' cannot be at '%s'", one.name, at);
		error_remedy(
			e, "use \"/%s\", or a name below /mnt such as \"/mnt/input\"", one.name);
		return error_slug(e, "invalid_field");
	}

	return n > JAIL_MOUNTS_MAX ? error_set(e, -EINVAL, "too many mounts") : 0;
}

void session_mounts_fill(char *const *asked, struct jail_mounts *ret)
{
	*ret = (struct jail_mounts){ 0 };
	for (; asked && *asked && ret->n < JAIL_MOUNTS_MAX; asked++)
		split(*asked, &ret->mount[ret->n++]);
}
