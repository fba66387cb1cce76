#include "jail/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/text.h"
#include "jail/tree.h"

#define HIDDEN "/run/mounts"
#define BELOW "/mnt/"

static const char *const taken[] = { "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64",
	"libx32", "media", "mnt", "opt", "packages", "proc", "root", "run", "sbin", "srv", "sys",
	"tmp", "usr", "uv", "var", "workspace" };

static bool is_word(const char *text, size_t max)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	size_t len = strspn(text, letters);
	return len && !text[len] && len < max;
}

bool mounts_is_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		if (!strcmp(name, taken[i]))
			return false;
	return is_word(name, JAIL_MOUNT_NAME);
}

bool mounts_is_place(const char *name, const char *at)
{
	if (!strncmp(at, BELOW, strlen(BELOW)))
		return is_word(at + strlen(BELOW), JAIL_MOUNT_PATH - strlen(BELOW));
	return at[0] == '/' && !strcmp(at + 1, name);
}

static int make_dir(const char *path)
{
	return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

int mounts_prepare(const char *root, const char *name, int directory)
{
	char from[64], path[128];
	const char *const dirs[] = { HIDDEN, "/mnt" };
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s%s", root, dirs[i]);
		int r = make_dir(path);
		if (r < 0)
			return r;
	}

	/* where jails may have it without a mount on /mnt */
	snprintf(path, sizeof(path), "%s/%s", root, name);
	int r = make_dir(path);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s" HIDDEN "/%s", root, name);
	if ((r = make_dir(path)) < 0)
		return r;

	/*
	 * Not MS_REC: the flags below hold for one mount, and what is mounted below the directory
	 * would stay writable.
	 */
	snprintf(from, sizeof(from), "/proc/self/fd/%d", directory);
	if (mount(from, path, NULL, MS_BIND, NULL) < 0)
		return -errno;
	return tree_remount_read_only(path, MS_NODEV | MS_NOEXEC);
}

static int cover(const char *at, const char *options, unsigned long more)
{
	return mount("tmpfs", at, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | more, options) < 0
		       ? -errno
		       : 0;
}

/*
 * The flags of the view come along, and the kernel does not let go of them: they were set outside
 * of the jail's user namespace.
 */
static int add_one(const char *name, const char *at)
{
	char from[128];
	snprintf(from, sizeof(from), HIDDEN "/%s", name);
	int r = strncmp(at, BELOW, strlen(BELOW)) ? 0 : make_dir(at);
	if (r < 0)
		return r;
	return mount(from, at, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

int mounts_add(const struct jail_mounts *m, const char **ret_step)
{
	int r = 0;
	bool below = false;
	*ret_step = "mounting a directory of the server";
	struct stat st;
	if (stat(HIDDEN, &st) < 0)
		return m->n ? -ENOENT : 0;
	if (m->n > JAIL_MOUNTS_MAX)
		return -EINVAL;

	for (unsigned i = 0; i < m->n; i++)
		if (!mounts_is_name(m->mount[i].name) ||
			!mounts_is_place(m->mount[i].name, m->mount[i].at))
			return -EINVAL;
		else if (!strncmp(m->mount[i].at, BELOW, strlen(BELOW)))
			below = true;
	if (below)
		r = cover("/mnt", "size=64k,nr_inodes=32,mode=755", 0);
	for (unsigned i = 0; r == 0 && i < m->n; i++)
		r = add_one(m->mount[i].name, m->mount[i].at);
	if (r == 0 && below)
		r = tree_remount_read_only("/mnt", MS_NODEV | MS_NOEXEC);
	if (r < 0)
		return r;

	/* Without this every jail could read every directory. */
	*ret_step = "hiding the directories of the server";
	return cover(HIDDEN, "size=4k,nr_inodes=1,mode=555", MS_RDONLY);
}
