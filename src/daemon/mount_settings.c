#include "daemon/mount_settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "jail/mounts.h"

static int wrong(struct error *e, const char *setting, const char *why)
{
	error_set(e, -EINVAL, "mount '%s' %s", setting, why);
	return error_remedy(e,
		"write mount = data:/srv/data: a name of letters, digits and _ that no system directory has, and an absolute path");
}

/* A copy of the name; NULL with the error set. */
static char *check_one(const char *setting, struct error *e)
{
	struct stat st;
	const char *colon = strchr(setting, ':');

	if (!colon || colon[1] != '/' || strpbrk(setting, "\t\n")) {
		wrong(e, setting, "is not NAME:/DIRECTORY");
		return NULL;
	}

	_cleanup_free_ char *name = strndup(setting, (size_t)(colon - setting));
	if (!name || !mounts_is_name(name)) {
		wrong(e, setting, "has no usable name");
		return NULL;
	}

	int r = stat(colon + 1, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	if (r < 0) {
		error_set_errno(e, r, "mount '%s': %s", setting, colon + 1);
		error_remedy(e, "Name an existing directory.");
		return NULL;
	}

	return TAKE_PTR(name);
}

void mount_settings_free(char **names)
{
	for (char **name = names; name && *name; name++)
		free(*name);
	free(names);
}

int mount_settings_names(char *const *settings, struct error *e, char ***ret_names)
{
	size_t n = 0;
	while (settings && settings[n])
		n++;
	if (n > JAIL_MOUNTS_MAX)
		return error_set(e, -EINVAL, "at most %d mounts", JAIL_MOUNTS_MAX);
	char **names = n ? calloc(n + 1, sizeof(*names)) : NULL;
	if (n && !names)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		names[i] = check_one(settings[i], e);
		for (size_t k = 0; names[i] && k < i; k++) {
			if (strcmp(names[i], names[k]))
				continue;
			wrong(e, settings[i], "has the same name as another directory");
			free(names[i]);
			names[i] = NULL;
		}
		if (names[i])
			continue;
		mount_settings_free(names);
		return -EINVAL;
	}

	*ret_names = names;
	return 0;
}

char *mount_settings_shown(char *const *settings, const char *others)
{
	struct buffer b = BUFFER_INIT(64 * 1024);
	int r = buffer_printf(&b, "%s", others ? others : "");
	for (; r >= 0 && settings && *settings; settings++) {
		const char *colon = strchr(*settings, ':');
		r = buffer_printf(&b, "%s%s\t%c%.*s", b.len ? "\n" : "", colon + 1, MOUNTS_MARK,
			(int)(colon - *settings), *settings);
	}
	if (r < 0 || !buffer_cstr(&b)) {
		buffer_finish(&b);
		return NULL;
	}
	return b.data;
}
