/*
 * Control groups, version 2: one hierarchy; groups with controllers below must have no processes of
 * their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_internal.h"

enum { PROCS_MAX = 1 << 20 };

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
	/* absent where the kernel has no swap accounting */
	cgroup_write_text(dir, name, "memory.swap.max", "0");
	/* the offender, not the whole session: Python may survive it */
	cgroup_write_text(dir, name, "memory.oom.group", "0");
	if (l->cpus > 0)
		snprintf(cpu, sizeof(cpu), "%lld %d", (long long)(l->cpus * CPU_PERIOD_US),
			CPU_PERIOD_US);
	else
		snprintf(cpu, sizeof(cpu), "max %d", CPU_PERIOD_US);
	r = cgroup_write_text(dir, name, "cpu.max", cpu);
	return r == -ENOENT && l->cpus <= 0 ? 0 : r;
}

static int v2_open_join_fds(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret)
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

/*
 * Where the processes of a group that was delegated to us go, so that it may have groups with
 * controllers below.
 */
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
		if (*pid && (r = cgroup_write_text(group, leaf, "cgroup.procs", pid)) < 0 &&
			r != -ESRCH)
			return r;
	return 0;
}

/*
 * Lets the groups below have the controllers. A group that has processes of its own may not; when
 * it is ours, they move.
 */
static int open_to_children(int group, bool own)
{
	static const char wanted[] = "+memory +pids +cpu";
	int r = cgroup_write_text(group, ".", "cgroup.subtree_control", wanted);
	if (r == -EBUSY && own && (r = step_aside(group)) == 0)
		r = cgroup_write_text(group, ".", "cgroup.subtree_control", wanted);
	return r;
}

/*
 * Version 2 wants a group without processes of its own above ours. Below our own group that is so
 * only when it was delegated to us and we are alone in a leaf; the top of the tree always is, and
 * root may use it.
 */
static int v2_make_home(struct cgroup_home *h, const char *mount, const char *self)
{
	char group[160], parent[256];
	if (!cgroup_own_group(self, "", group, sizeof(group)))
		return -ENOENT;
	char *last = strrchr(group, '/');
	if (last && !strcmp(last + 1, leaf)) /* we have moved before */
		*last = '\0';
	const char *below[] = { group, "" };
	int r = -ENOENT;
	for (unsigned i = 0; i < 2; i++) {
		if (snprintf(parent, sizeof(parent), "%s%s", mount,
			    strcmp(below[i], "/") ? below[i] : "") >= (int)sizeof(parent))
			continue;
		r = cgroup_make_home_in(h, 0, parent);
		if (r < 0)
			continue;
		_cleanup_fd_ int up = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		open_to_children(up, i == 0 && *group && strcmp(group, "/") != 0);
		if (faccessat(h->dirs[0], "memory.max", W_OK, 0) == 0 &&
			faccessat(h->dirs[0], "pids.max", W_OK, 0) == 0 &&
			(r = open_to_children(h->dirs[0], false)) == 0)
			return 0;
		r = r < 0 ? r : -ENOTSUP;
		cgroup_home_finish(h);
	}

	return r;
}

static int v2_allow_children(struct cgroup_home *h, const char *name)
{
	_cleanup_fd_ int fd = openat(h->dirs[0], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? open_to_children(fd, false) : 0;
}

const struct cgroup_ops cgroup_v2 = {
	.kind = "v2",
	.controllers = v2_controllers,
	.make_home = v2_make_home,
	.allow_children = v2_allow_children,
	.set_limits = v2_set_limits,
	.open_join_fds = v2_open_join_fds,
	.usage = v2_usage,
	/*
	 * no reset: memory.peak cannot be set back before Linux 6.12, and making one group costs a
	 * quarter of version 1's four
	 */
	.processes = 0,
	.memory = "memory.current",
	.threads = "cgroup.threads",
};
