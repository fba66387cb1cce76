/* `glovebox run --mount`: directories of this machine that the code sees, read-only. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/run_internal.h"
#include "jail/mounts.h"

static int wrong(const char *asked, const char *why, struct error *e)
{
	error_set(e, -EINVAL, "--mount '%.200s' %s", asked, why);
	return error_remedy(e,
		"write DIRECTORY:/PLACE, such as /srv/data:/data; /PLACE is one name that no system directory has, or a name below /mnt");
}

/*
 * The name that the jail uses for the directory: that of /NAME, or a number for a path below /mnt.
 */
static int add_one(struct run *run, const char *asked, struct error *e)
{
	struct run_mounts *m = &run->mounts;
	char name[JAIL_MOUNT_NAME], real[PATH_MAX];
	struct stat st;
	const char *colon = strrchr(asked, ':');

	if (!colon || colon == asked)
		return wrong(asked, "names no place", e);
	if (m->n == JAIL_MOUNTS_MAX)
		return error_set(e, -EINVAL, "at most %d --mount", JAIL_MOUNTS_MAX);
	snprintf(name, sizeof(name), "%s", colon + 1 + strspn(colon + 1, "/"));
	if (!mounts_is_name(name))
		snprintf(name, sizeof(name), "mount%u", m->n);
	if (!mounts_is_place(name, colon + 1))
		return wrong(asked, "has a place that cannot be used", e);

	_cleanup_free_ char *directory = strndup(asked, (size_t)(colon - asked));
	if (!directory)
		return error_set(e, -ENOMEM, "out of memory");
	if (!realpath(directory, real))
		return error_set_errno(e, -errno, "--mount: %.200s", directory);
	if (stat(real, &st) < 0 || !S_ISDIR(st.st_mode) || strpbrk(real, "\t\n"))
		return wrong(asked, "does not begin with a directory", e);

	if (asprintf(&m->shown[m->n], "%s\t%c%s\n", real, MOUNTS_MARK, name) < 0)
		m->shown[m->n] = NULL;
	if (asprintf(&m->asked[m->n], "%s=%s", name, colon + 1) < 0)
		m->asked[m->n] = NULL;
	m->names[m->n] = strdup(name);
	bool whole = m->shown[m->n] && m->asked[m->n] && m->names[m->n];
	m->n++;
	return whole ? 0 : error_set(e, -ENOMEM, "out of memory");
}

int run_mounts_find(struct run *run, struct error *e)
{
	int r = 0;
	for (char **asked = run->options->mounts; r == 0 && asked && *asked; asked++)
		r = add_one(run, *asked, e);
	return r;
}

void run_mounts_finish(struct run *run)
{
	struct run_mounts *m = &run->mounts;
	for (unsigned i = 0; i < m->n; i++) {
		free(m->shown[i]);
		free(m->asked[i]);
		free(m->names[i]);
	}
	m->n = 0;
}
