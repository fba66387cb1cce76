/* The home: the group of this daemon, in which it makes the groups of sessions. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "jail/cgroup/cgroup_internal.h"

enum { HOME_TRIES = 100 };

static const char home_prefix[] = "glovebox-"; /* and the daemon's pid */

/* ---- no control groups ------------------------------------------------------------------ */

static const char *const no_controllers[] = { NULL };

static int none_set_limits(struct cgroup_home *h, const char *name, const struct cgroup_limits *l)
{
	(void)h, (void)name, (void)l;
	return 0;
}

static int none_open_join_fds(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret)
{
	(void)h, (void)name;
	*ret = (struct cgroup_join_fds){ 0 };
	return 0;
}

static void none_usage(struct cgroup_home *h, const char *name, struct cgroup_usage *ret)
{
	(void)h, (void)name, (void)ret;
}

static const struct cgroup_ops none = {
	.kind = "none",
	.controllers = no_controllers,
	.set_limits = none_set_limits,
	.open_join_fds = none_open_join_fds,
	.usage = none_usage,
};

/* ---- making and removing homes --------------------------------------------------------- */

bool cgroup_own_group(const char *text, const char *controller, char *ret, size_t size)
{
	size_t len = strlen(controller);
	for (const char *line = text; line && *line;
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *names = strchr(line, ':'),
			   *path = names ? strchr(names + 1, ':') : NULL;
		const char *end = path ? strchrnul(path, '\n') : NULL;
		if (!path)
			continue;
		/* names separated by commas, ended by a colon */
		for (const char *p = names + 1; p <= path; p++) {
			const char *stop = p + strcspn(p, ",:");
			if ((size_t)(stop - p) == len && !strncmp(p, controller, len)) {
				snprintf(ret, size, "%.*s", (int)(end - path - 1), path + 1);
				return true;
			}
			p = stop;
		}
	}

	return false;
}

/* A group, and those of a family in it. */
static void remove_tree(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	if (d)
		closedir(d);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/*
 * Removes the groups of one home that no process is left in, and then the home; unless its owner
 * lives, in a pid namespace (a container) from which we cannot see it: it holds a lock.
 */
static void remove_home(int parent, const char *name)
{
	_cleanup_fd_ int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	DIR *d = fdopendir(fd);
	if (d)
		(void)TAKE_FD(fd);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			remove_tree(dirfd(d), e->d_name);
	if (d)
		closedir(d);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* A daemon that was killed leaves its empty groups behind; the next one takes them away. */
static void remove_stale(int parent)
{
	int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		uint64_t pid;
		if (text_starts(e->d_name, home_prefix) &&
			text_parse_u64(e->d_name + strlen(home_prefix), 1, INT32_MAX, &pid) == 0 &&
			kill((pid_t)pid, 0) < 0 && errno == ESRCH)
			remove_home(parent, e->d_name);
	}
	if (d)
		closedir(d);
}

/*
 * Makes a home and locks it. Before the home is locked, a daemon that cannot see this process may
 * remove it as stale; then it is made again.
 */
static int make_locked(int parent, const char *name)
{
	struct stat ours, there;
	for (unsigned tries = 0; tries < HOME_TRIES; tries++) {
		if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		_cleanup_fd_ int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_SH) < 0)
			return -errno;
		if (fd >= 0 && fstat(fd, &ours) == 0 && fstatat(parent, name, &there, 0) == 0 &&
			ours.st_ino == there.st_ino)
			return TAKE_FD(fd);
	}
	return -EBUSY;
}

int cgroup_make_home_in(struct cgroup_home *h, unsigned i, const char *parent)
{
	_cleanup_fd_ int dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	remove_stale(dir);
	int fd = make_locked(dir, h->name);
	h->dirs[i] = fd < 0 ? -1 : fd;
	snprintf(h->parents[i], sizeof(h->parents[i]), "%s", parent);
	return fd < 0 ? fd : 0;
}

static void forget(struct cgroup_home *h)
{
	for (unsigned i = 0; i < CGROUP_CONTROLLERS_MAX; i++)
		h->dirs[i] = -1;
}

void cgroup_home_init(struct cgroup_home *h, const char *mount, struct error *why)
{
	_cleanup_free_ char *self = NULL;
	*h = (struct cgroup_home){ .ops = &cgroup_v2 };
	forget(h);
	snprintf(h->name, sizeof(h->name), "%s%d", home_prefix, (int)getpid());
	int r = fd_read_file("/proc/self/cgroup", GROUPS_TEXT_MAX, &self, NULL);
	if (r == 0)
		r = cgroup_v2.make_home(h, mount, self);
	if (r == 0)
		return;
	h->ops = &cgroup_v1;
	int r1 = self ? cgroup_v1.make_home(h, mount, self) : r;
	if (r1 == 0)
		return;
	cgroup_home_finish(h);
	h->ops = &none;
	error_set_errno(
		why, r1 == -ENOENT ? r : r1, "no control groups can be made below %s", mount);
	error_remedy(why, "%s",
		(r1 == -ENOENT ? r : r1) == -EROFS
			? "The tree is mounted read-only, as in most containers: mount it writable (docker run -v /sys/fs/cgroup:/sys/fs/cgroup:rw "
			  "--cgroupns=host, or --privileged)."
			: "Start as root: sudo glovebox serve. Or as a service that systemd gives control groups of version 2 to: "
			  "sudo systemd-run --uid=$(id -u) -p Delegate=yes $(realpath $(which glovebox)) serve.");
}

void cgroup_home_finish(struct cgroup_home *h)
{
	for (unsigned i = 0; i < CGROUP_CONTROLLERS_MAX; i++) {
		if (h->dirs[i] < 0)
			continue;
		_cleanup_fd_ int parent = open(h->parents[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd_close(h->dirs[i]);
		unlinkat(parent, h->name, AT_REMOVEDIR);
	}
	forget(h);
}

const char *cgroup_home_kind(const struct cgroup_home *h)
{
	return h->ops->kind;
}
