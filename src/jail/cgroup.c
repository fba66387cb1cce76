#include "jail/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "jail/cgroup_internal.h"

enum { CPU_PERIOD_US = 100000, PROCS_MAX = 1 << 20, GROUPS_TEXT_MAX = 16384, HOME_TRIES = 100 };

static const char home_prefix[] = "glovebox-"; /* and the daemon's pid */

/* ---- small files ------------------------------------------------------------------ */

int cgroup_open_file(int dir, const char *name, const char *file, int flags)
{
	char path[CGROUP_NAME_MAX + 64];
	snprintf(path, sizeof(path), "%s/%s", name, file);
	int fd = openat(dir, path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cgroup_write_text(int dir, const char *name, const char *file, const char *text)
{
	_cleanup_fd_ int fd = cgroup_open_file(dir, name, file, O_WRONLY);
	if (fd < 0)
		return fd;
	return fd_write_full(fd, text, strlen(text)); /* again after a signal: a limit on memory is refused while one is pending */
}

int cgroup_write_u64(int dir, const char *name, const char *file, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return cgroup_write_text(dir, name, file, text);
}

int cgroup_write_or(int dir, const char *name, const char *file, uint64_t value, const char *no_limit)
{
	return value ? cgroup_write_u64(dir, name, file, value) : cgroup_write_text(dir, name, file, no_limit);
}

uint64_t cgroup_read_number(int dir, const char *name, const char *file, const char *key)
{
	char text[2048];
	_cleanup_fd_ int fd = cgroup_open_file(dir, name, file, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	if (!key)
		return strtoull(text, NULL, 10);
	size_t len = strlen(key);
	for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (!strncmp(p, key, len) && p[len] == ' ')
			return strtoull(p + len + 1, NULL, 10);
	return 0;
}

/* ---- version 2 --------------------------------------------------------------------- */

static const char *const v2_controllers[] = { "", NULL };

static int v2_set_limits(struct cgroup_home *h, const char *name, const struct cgroup_limits *l)
{
	int dir = h->dirs[0];
	char cpu[64];
	int r = cgroup_write_or(dir, name, "memory.max", l->memory_bytes, "max");
	if (r == 0)
		r = cgroup_write_or(dir, name, "pids.max", l->processes, "max");
	if (r < 0)
		return r;
	cgroup_write_text(dir, name, "memory.swap.max", "0"); /* absent where the kernel has no swap accounting */
	cgroup_write_text(dir, name, "memory.oom.group", "0"); /* the offender, not the whole session: Python may survive it */
	if (l->cpus > 0)
		snprintf(cpu, sizeof(cpu), "%lld %d", (long long)(l->cpus * CPU_PERIOD_US), CPU_PERIOD_US);
	else
		snprintf(cpu, sizeof(cpu), "max %d", CPU_PERIOD_US);
	r = cgroup_write_text(dir, name, "cpu.max", cpu);
	return r == -ENOENT && l->cpus <= 0 ? 0 : r;
}

static int v2_ticket(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret)
{
	int fd = openat(h->dirs[0], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret = (struct cgroup_join_fds){ .fds = { fd }, .n = 1, .into = 1 };
	return 0;
}

static void v2_usage(struct cgroup_home *h, const char *name, struct cgroup_usage *ret)
{
	ret->cpu_ns = cgroup_read_number(h->dirs[0], name, "cpu.stat", "usage_usec") * 1000;
	ret->memory_peak_bytes = cgroup_read_number(h->dirs[0], name, "memory.peak", NULL);
	ret->oom_kills = cgroup_read_number(h->dirs[0], name, "memory.events", "oom_kill");
	ret->process_refusals = cgroup_read_number(h->dirs[0], name, "pids.events", "max");
}

static void v2_reset_peak(struct cgroup_home *h, const char *name)
{
	cgroup_write_text(h->dirs[0], name, "memory.peak", "0"); /* writable since 6.12; per descriptor, so only a hint before */
}

static const struct cgroup_ops v2 = { "v2", v2_controllers, v2_set_limits, v2_ticket, v2_usage, v2_reset_peak, 0, "memory.current", NULL, "cgroup.threads" };

/* ---- version 1 --------------------------------------------------------------------- */

static const char *const v1_controllers[] = { "memory", "pids", "cpu", "cpuacct", NULL };

static int v1_set_memory(int dir, const char *name, uint64_t bytes)
{
	/* With swap, the sum must never be below memory alone: up means sum first, down means memory first. Without swap
	 * accounting the second file is not there. */
	int r = cgroup_write_or(dir, name, "memory.limit_in_bytes", bytes, "-1");
	int sum = cgroup_write_or(dir, name, "memory.memsw.limit_in_bytes", bytes, "-1");
	if (r < 0 && sum == 0)
		r = cgroup_write_or(dir, name, "memory.limit_in_bytes", bytes, "-1");
	return r;
}

static int v1_set_limits(struct cgroup_home *h, const char *name, const struct cgroup_limits *l)
{
	int r = v1_set_memory(h->dirs[CGROUP_V1_MEMORY], name, l->memory_bytes);
	if (r == 0)
		r = cgroup_write_or(h->dirs[CGROUP_V1_PIDS], name, "pids.max", l->processes, "max");
	if (r == 0)
		r = cgroup_write_u64(h->dirs[CGROUP_V1_CPU], name, "cpu.cfs_period_us", CPU_PERIOD_US);
	if (r == 0)
		r = cgroup_write_or(h->dirs[CGROUP_V1_CPU], name, "cpu.cfs_quota_us", (uint64_t)(l->cpus * CPU_PERIOD_US), "-1");
	return r;
}

static int v1_ticket(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret)
{
	*ret = (struct cgroup_join_fds){ 0 };
	for (unsigned i = 0; v1_controllers[i]; i++) {
		int fd = cgroup_open_file(h->dirs[i], name, "tasks", O_WRONLY);
		if (fd < 0) {
			cgroup_join_fds_close(ret);
			return fd;
		}
		ret->fds[ret->n++] = fd;
	}
	return 0;
}

static void v1_usage(struct cgroup_home *h, const char *name, struct cgroup_usage *ret)
{
	ret->cpu_ns = cgroup_read_number(h->dirs[CGROUP_V1_CPUACCT], name, "cpuacct.usage", NULL);
	ret->memory_peak_bytes = cgroup_read_number(h->dirs[CGROUP_V1_MEMORY], name, "memory.max_usage_in_bytes", NULL);
	ret->oom_kills = cgroup_read_number(h->dirs[CGROUP_V1_MEMORY], name, "memory.oom_control", "oom_kill");
	ret->process_refusals = cgroup_read_number(h->dirs[CGROUP_V1_PIDS], name, "pids.events", "max");
}

static void v1_reset_peak(struct cgroup_home *h, const char *name)
{
	cgroup_write_text(h->dirs[CGROUP_V1_MEMORY], name, "memory.max_usage_in_bytes", "0");
}

static const struct cgroup_ops v1 = { "v1", v1_controllers, v1_set_limits, v1_ticket, v1_usage, v1_reset_peak, CGROUP_V1_PIDS,
	"memory.usage_in_bytes", "memory.kmem.tcp.limit_in_bytes", "tasks" };

/* ---- none --------------------------------------------------------------------------- */

static const char *const no_controllers[] = { NULL };

static int none_set_limits(struct cgroup_home *h, const char *name, const struct cgroup_limits *l)
{
	(void)h, (void)name, (void)l;
	return 0;
}

static int none_ticket(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret)
{
	(void)h, (void)name;
	*ret = (struct cgroup_join_fds){ 0 };
	return 0;
}

static void none_usage(struct cgroup_home *h, const char *name, struct cgroup_usage *ret)
{
	(void)h, (void)name, (void)ret;
}

static void none_reset_peak(struct cgroup_home *h, const char *name)
{
	(void)h, (void)name;
}

static const struct cgroup_ops none = { "none", no_controllers, none_set_limits, none_ticket, none_usage, none_reset_peak, 0, NULL, NULL, NULL };

/* ---- the home -------------------------------------------------------------------------- */

/* Our own group in the hierarchy of `controller` ("" for version 2), from the text of /proc/self/cgroup. */
static bool own_group(const char *text, const char *controller, char *ret, size_t size)
{
	size_t len = strlen(controller);
	for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
		const char *end = path ? strchrnul(path, '\n') : NULL;
		if (!path)
			continue;
		for (const char *p = names + 1; p <= path; p++) { /* names separated by commas, ended by a colon */
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

/* Removes the groups of one home that no process is left in, and then the home; unless its owner lives, in a pid namespace (a container)
 * from which we cannot see it: it holds a lock. */
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
		if (text_starts(e->d_name, home_prefix) && text_parse_u64(e->d_name + strlen(home_prefix), 1, INT32_MAX, &pid) == 0 &&
			kill((pid_t)pid, 0) < 0 && errno == ESRCH)
			remove_home(parent, e->d_name);
	}
	if (d)
		closedir(d);
}

/* Makes a home and locks it. A daemon that cannot see us may take it for a stale one in between: then once more. */
static int make_locked(int parent, const char *name)
{
	struct stat ours, there;
	for (unsigned tries = 0; tries < HOME_TRIES; tries++) {
		if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		_cleanup_fd_ int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_SH) < 0)
			return -errno;
		if (fd >= 0 && fstat(fd, &ours) == 0 && fstatat(parent, name, &there, 0) == 0 && ours.st_ino == there.st_ino)
			return TAKE_FD(fd);
	}
	return -EBUSY;
}

static int make_home_in(struct cgroup_home *h, unsigned i, const char *parent)
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

static int try_v1(struct cgroup_home *h, const char *mount, const char *self)
{
	for (unsigned i = 0; v1_controllers[i]; i++) {
		char group[160], parent[256];
		if (!own_group(self, v1_controllers[i], group, sizeof(group)))
			return -ENOENT;
		if (snprintf(parent, sizeof(parent), "%s/%s%s", mount, v1_controllers[i], group) >= (int)sizeof(parent))
			return -ENAMETOOLONG;
		int r = make_home_in(h, i, parent);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Where the processes of a group that was delegated to us go, so that it may have groups with controllers below. */
static const char leaf[] = "glovebox-self";

/* Moves everything in `group` (us, and what we have started) into a leaf below it. */
static int step_aside(int group)
{
	_cleanup_free_ char *pids = NULL;
	char path[64];
	if (mkdirat(group, leaf, 0755) < 0 && errno != EEXIST)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/cgroup.procs", group);
	int r = fd_read_file(path, PROCS_MAX, &pids, NULL);
	if (r < 0)
		return r;
	for (char *rest = pids, *pid; (pid = strsep(&rest, "\n"));)
		if (*pid && (r = cgroup_write_text(group, leaf, "cgroup.procs", pid)) < 0 && r != -ESRCH)
			return r;
	return 0;
}

/* Lets the groups below have the controllers. A group that has processes of its own may not; when it is ours, they move. */
static int open_to_children(int group, bool own)
{
	static const char wanted[] = "+memory +pids +cpu";
	int r = cgroup_write_text(group, ".", "cgroup.subtree_control", wanted);
	if (r == -EBUSY && own && (r = step_aside(group)) == 0)
		r = cgroup_write_text(group, ".", "cgroup.subtree_control", wanted);
	return r;
}

/* Version 2 wants a group without processes of its own above ours. Below our own group that is so only when it was delegated to us
 * and we are alone in a leaf; the top of the tree always is, and root may use it. */
static int try_v2(struct cgroup_home *h, const char *mount, const char *self)
{
	char group[160], parent[256];
	if (!own_group(self, "", group, sizeof(group)))
		return -ENOENT;
	char *last = strrchr(group, '/');
	if (last && !strcmp(last + 1, leaf)) /* we have moved before */
		*last = '\0';
	const char *below[] = { group, "" };
	int r = -ENOENT;
	for (unsigned i = 0; i < 2; i++) {
		if (snprintf(parent, sizeof(parent), "%s%s", mount, strcmp(below[i], "/") ? below[i] : "") >= (int)sizeof(parent))
			continue;
		r = make_home_in(h, 0, parent);
		if (r < 0)
			continue;
		_cleanup_fd_ int up = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		open_to_children(up, i == 0 && *group && strcmp(group, "/") != 0);
		if (faccessat(h->dirs[0], "memory.max", W_OK, 0) == 0 && faccessat(h->dirs[0], "pids.max", W_OK, 0) == 0 &&
			(r = open_to_children(h->dirs[0], false)) == 0)
			return 0;
		r = r < 0 ? r : -ENOTSUP;
		cgroup_home_finish(h);
	}
	return r;
}

static void forget(struct cgroup_home *h)
{
	for (unsigned i = 0; i < CGROUP_CONTROLLERS_MAX; i++)
		h->dirs[i] = -1;
}

void cgroup_home_init(struct cgroup_home *h, const char *mount, struct error *why)
{
	_cleanup_free_ char *self = NULL;
	*h = (struct cgroup_home){ .ops = &v2 };
	forget(h);
	snprintf(h->name, sizeof(h->name), "%s%d", home_prefix, (int)getpid());
	int r = fd_read_file("/proc/self/cgroup", GROUPS_TEXT_MAX, &self, NULL);
	if (r == 0)
		r = try_v2(h, mount, self);
	if (r == 0)
		return;
	h->ops = &v1;
	int r1 = self ? try_v1(h, mount, self) : r;
	if (r1 == 0)
		return;
	cgroup_home_finish(h);
	h->ops = &none;
	error_set_errno(why, r1 == -ENOENT ? r : r1, "no control groups can be made below %s", mount);
	error_remedy(why, "%s", (r1 == -ENOENT ? r : r1) == -EROFS
			? "The tree is mounted read-only, as in most containers: mount it writable (docker run -v /sys/fs/cgroup:/sys/fs/cgroup:rw "
			  "--cgroupns=host, or --privileged)."
			: "Start as root, or under systemd with Delegate=yes.");
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

/* ---- groups ------------------------------------------------------------------------------ */

int cgroup_make(struct cgroup_home *h, const char *name, const struct cgroup_limits *limits)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && h->ops->controllers[i]; i++)
		if (mkdirat(h->dirs[i], name, 0755) < 0 && errno != EEXIST) /* cpu and cpuacct are often one */
			r = -errno;
	if (r == 0)
		r = h->ops->set_limits(h, name, limits);
	if (r < 0)
		cgroup_remove(h, name);
	return r;
}

int cgroup_make_family(struct cgroup_home *h, const char *name)
{
	for (unsigned i = 0; h->ops->controllers[i]; i++) {
		if (mkdirat(h->dirs[i], name, 0755) < 0 && errno != EEXIST)
			return -errno;
		_cleanup_fd_ int fd = h->ops == &v2 ? openat(h->dirs[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
		int r = fd >= 0 ? open_to_children(fd, false) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_home_procs(const struct cgroup_home *h)
{
	return h->ops->controllers[0] ? cgroup_open_file(h->dirs[h->ops->processes], ".", "cgroup.procs", O_WRONLY) : -ENOTSUP;
}

int cgroup_set_limits(struct cgroup_home *h, const char *name, const struct cgroup_limits *limits)
{
	return h->ops->set_limits(h, name, limits);
}

int cgroup_set_processes(struct cgroup_home *h, const char *name, unsigned processes)
{
	return h->ops->controllers[0] ? cgroup_write_or(h->dirs[h->ops->processes], name, "pids.max", processes, "max") : 0;
}

int cgroup_bound_sockets(struct cgroup_home *h, const char *name)
{
	int r = h->ops->sockets ? cgroup_write_u64(h->dirs[0], name, h->ops->sockets, CGROUP_SOCKET_BYTES) : 0;
	return r == -ENOENT ? 0 : r; /* a kernel that was built without it */
}

int cgroup_join_fds_open(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret)
{
	return h->ops->ticket(h, name, ret);
}

int cgroup_join_open(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret)
{
	*ret = (struct cgroup_join_fds){ 0 };
	for (unsigned i = 0; h->ops->controllers[i]; i++) {
		int fd = cgroup_open_file(h->dirs[i], name, "cgroup.procs", O_WRONLY);
		if (fd < 0) {
			cgroup_join_fds_close(ret);
			return fd;
		}
		ret->fds[ret->n++] = fd;
	}
	return 0;
}

void cgroup_join_fds_close(struct cgroup_join_fds *t)
{
	for (unsigned i = 0; i < t->n; i++)
		fd_close(t->fds[i]);
	t->n = 0;
}

int cgroup_usage_read(struct cgroup_home *h, const char *name, struct cgroup_usage *ret)
{
	*ret = (struct cgroup_usage){ 0 };
	h->ops->usage(h, name, ret);
	return 0;
}

uint64_t cgroup_memory(struct cgroup_home *h, const char *name)
{
	return h->ops->memory ? cgroup_read_number(h->dirs[CGROUP_V1_MEMORY], name, h->ops->memory, NULL) : 0;
}

void cgroup_reset_peak(struct cgroup_home *h, const char *name)
{
	h->ops->reset_peak(h, name);
}

bool cgroup_holds_only(struct cgroup_home *h, const char *name, const pid_t *those, size_t n)
{
	char text[4096], *at = text;
	_cleanup_fd_ int fd = h->ops->threads ? cgroup_open_file(h->dirs[h->ops->processes], name, h->ops->threads, O_RDONLY) : -1;
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (len < 0 || len == sizeof(text) - 1)
		return false;
	text[len] = '\0';
	while (*at) {
		pid_t id = (pid_t)strtol(at, &at, 10);
		bool known = false;
		for (size_t i = 0; i < n; i++)
			known |= those[i] == id;
		if (!known)
			return false;
		at += strspn(at, "\n");
	}
	return true;
}

bool cgroup_holds(const struct cgroup_home *h, const char *name, pid_t pid)
{
	char path[64], group[2 * CGROUP_NAME_MAX + 4];
	_cleanup_free_ char *text = NULL;
	if (!h->ops->controllers[0])
		return true;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	snprintf(group, sizeof(group), "/%s/%s\n", h->name, name);
	return fd_read_file(path, GROUPS_TEXT_MAX, &text, NULL) == 0 && strstr(text, group);
}

int cgroup_remove(struct cgroup_home *h, const char *name)
{
	int r = 0;
	for (unsigned i = 0; h->ops->controllers[i]; i++)
		if (unlinkat(h->dirs[i], name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			r = -errno;
	return r;
}
