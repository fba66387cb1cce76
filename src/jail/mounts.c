#include "jail/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/text.h"
#include "jail/tree.h"

#define HIDDEN "/run/mounts"
#define VOLUMES HIDDEN "/.volumes"
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

bool mounts_is_volume_place(const char *at)
{
	return !strncmp(at, BELOW, strlen(BELOW)) &&
	       is_word(at + strlen(BELOW), JAIL_MOUNT_PATH - strlen(BELOW));
}

bool mounts_is_place(const char *name, const char *at)
{
	return mounts_is_volume_place(at) || (at[0] == '/' && !strcmp(at + 1, name));
}

static int make_dir(const char *path)
{
	return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_dirs(const char *root, const char *const *dirs)
{
	char path[128];
	int r = 0;
	for (; r == 0 && *dirs; dirs++) {
		snprintf(path, sizeof(path), "%s%s", root, *dirs);
		r = make_dir(path);
	}
	return r;
}

int mounts_prepare(const char *root, const char *name, int directory)
{
	static const char *const dirs[] = { HIDDEN, "/mnt", NULL };
	char from[64], path[128];
	int r = make_dirs(root, dirs);
	if (r < 0)
		return r;

	/* where jails may have it without a mount on /mnt */
	snprintf(path, sizeof(path), "%s/%s", root, name);
	if ((r = make_dir(path)) < 0)
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

/* As tree_remount_read_only(), but writable. */
static int remount_writable(const char *at)
{
	unsigned long flags = MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC;
	if (mount(NULL, at, NULL, flags, NULL) == 0 ||
		mount(NULL, at, NULL, flags | MS_RELATIME, NULL) == 0 ||
		mount(NULL, at, NULL, flags | MS_NOATIME, NULL) == 0)
		return 0;
	return -errno;
}

int mounts_prepare_volumes(const char *root, int directory)
{
	static const char *const dirs[] = { HIDDEN, "/mnt", VOLUMES, NULL };
	char from[64], path[128];
	int r = make_dirs(root, dirs);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s" VOLUMES, root);
	snprintf(from, sizeof(from), "/proc/self/fd/%d", directory);
	if (mount(from, path, NULL, MS_BIND, NULL) < 0)
		return -errno;
	return remount_writable(path);
}

static int cover(const char *at, const char *options, unsigned long more)
{
	return mount("tmpfs", at, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | more, options) < 0
		       ? -errno
		       : 0;
}

/*
 * The flags of the view come along, and the kernel does not let go of them: they were set outside
 * of the jail's user namespace. A volume for reading is made read-only here; code has no privilege
 * in the jail to make it writable again.
 */
static int add_one(const struct jail_mount *m)
{
	char from[128];
	bool shared = m->kind == JAIL_MOUNT_SHARED;

	snprintf(from, sizeof(from), "%s/%s", shared ? HIDDEN : VOLUMES, m->name);
	int r = strncmp(m->at, BELOW, strlen(BELOW)) ? 0 : make_dir(m->at);
	if (r < 0)
		return r;
	if (mount(from, m->at, NULL, MS_BIND, NULL) < 0)
		return -errno;
	return m->kind == JAIL_MOUNT_VOLUME_READ_ONLY
		       ? tree_remount_read_only(m->at, MS_NODEV | MS_NOEXEC)
		       : 0;
}

static bool is_allowed(const struct jail_mount *m)
{
	switch (m->kind) {
	case JAIL_MOUNT_SHARED:
		return mounts_is_name(m->name) && mounts_is_place(m->name, m->at);
	case JAIL_MOUNT_VOLUME:
	case JAIL_MOUNT_VOLUME_READ_ONLY:
		return is_word(m->name, JAIL_MOUNT_NAME) && mounts_is_volume_place(m->at);
	}
	return false;
}

int mounts_add(const struct jail_mounts *m, const char **ret_step)
{
	int r = 0;
	bool below = false;
	*ret_step = "mounting a directory of the server";
	struct stat st;
	if (stat(HIDDEN, &st) < 0)
		return m->n ? -ENOENT : 0;
	if (m->n > ARRAY_LEN(m->mount))
		return -EINVAL;

	for (unsigned i = 0; i < m->n; i++)
		if (!is_allowed(&m->mount[i]))
			return -EINVAL;
		else if (!strncmp(m->mount[i].at, BELOW, strlen(BELOW)))
			below = true;
	if (below)
		r = cover("/mnt", "size=64k,nr_inodes=32,mode=755", 0);
	for (unsigned i = 0; r == 0 && i < m->n; i++)
		r = add_one(&m->mount[i]);
	if (r == 0 && below)
		r = tree_remount_read_only("/mnt", MS_NODEV | MS_NOEXEC);
	if (r < 0)
		return r;

	/* Without this every jail could read every directory. */
	*ret_step = "hiding the directories of the server";
	return cover(HIDDEN, "size=4k,nr_inodes=1,mode=555", MS_RDONLY);
}
