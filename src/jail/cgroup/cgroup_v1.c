/* Control groups, version 1: one hierarchy per controller. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_internal.h"

static const char *const v1_controllers[] = { "memory", "pids", "cpu", "cpuacct", NULL };

static int v1_set_memory(int dir, const char *name, uint64_t bytes)
{
	/*
	 * With swap, the sum must never be below memory alone: up means sum first, down means
	 * memory first. Without swap accounting the second file is not there.
	 */
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
		r = cgroup_write_u64(
			h->dirs[CGROUP_V1_CPU], name, "cpu.cfs_period_us", CPU_PERIOD_US);
	if (r == 0)
		r = cgroup_write_or(h->dirs[CGROUP_V1_CPU], name, "cpu.cfs_quota_us",
			(uint64_t)(l->cpus * CPU_PERIOD_US), "-1");
	return r;
}

static int v1_open_join_fds(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret)
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
	ret->memory_peak_bytes = cgroup_read_number(
		h->dirs[CGROUP_V1_MEMORY], name, "memory.max_usage_in_bytes", NULL);
	ret->oom_kills = cgroup_read_number(
		h->dirs[CGROUP_V1_MEMORY], name, "memory.oom_control", "oom_kill");
	ret->process_refusals = cgroup_read_number(
		h->dirs[CGROUP_V1_PIDS], name, "pids.events", "max");
}

/* No thread in any hierarchy: on version 1 one may be in one of them alone. */
static bool v1_is_empty(struct cgroup_home *h, const char *name)
{
	for (unsigned i = 0; v1_controllers[i]; i++) {
		char byte;
		_cleanup_fd_ int fd = cgroup_open_file(h->dirs[i], name, "tasks", O_RDONLY);
		if (fd < 0 || read(fd, &byte, 1) != 0)
			return false;
	}
	return true;
}

static bool is_zero(int dir, const char *name, const char *file, const char *key)
{
	uint64_t n;
	return cgroup_find_number(dir, name, file, key, &n) == 0 && n == 0;
}

/*
 * The counters of kills, refused forks and throttled periods cannot be set back, so they must be 0.
 * A group that was throttled in its last period would also hold up its next session.
 */
static bool v1_reset(struct cgroup_home *h, const char *name, uint64_t *ret_memory)
{
	int memory = h->dirs[CGROUP_V1_MEMORY], cpuacct = h->dirs[CGROUP_V1_CPUACCT];
	uint64_t rest;
	if (!v1_is_empty(h, name) || !is_zero(memory, name, "memory.oom_control", "oom_kill") ||
		!is_zero(h->dirs[CGROUP_V1_PIDS], name, "pids.events", "max") ||
		!is_zero(h->dirs[CGROUP_V1_CPU], name, "cpu.stat", "nr_throttled"))
		return false;

	if (cgroup_write_u64(cpuacct, name, "cpuacct.usage", 0) < 0 ||
		cgroup_write_u64(memory, name, "memory.max_usage_in_bytes", 0) < 0 ||
		!is_zero(cpuacct, name, "cpuacct.stat", "user") ||
		!is_zero(cpuacct, name, "cpuacct.stat", "system"))
		return false;

	if (cgroup_find_number(memory, name, "memory.usage_in_bytes", NULL, &rest) < 0 ||
		rest > CGROUP_REST_BYTES)
		return false;
	*ret_memory = rest;
	return true;
}

static int v1_make_home(struct cgroup_home *h, const char *mount, const char *self)
{
	for (unsigned i = 0; v1_controllers[i]; i++) {
		char group[160], parent[256];
		if (!cgroup_own_group(self, v1_controllers[i], group, sizeof(group)))
			return -ENOENT;
		if (snprintf(parent, sizeof(parent), "%s/%s%s", mount, v1_controllers[i], group) >=
			(int)sizeof(parent))
			return -ENAMETOOLONG;
		int r = cgroup_make_home_in(h, i, parent);
		if (r < 0)
			return r;
	}
	return 0;
}

const struct cgroup_ops cgroup_v1 = {
	.kind = "v1",
	.controllers = v1_controllers,
	.make_home = v1_make_home,
	.set_limits = v1_set_limits,
	.open_join_fds = v1_open_join_fds,
	.usage = v1_usage,
	.reset = v1_reset,
	.processes = CGROUP_V1_PIDS,
	.memory = "memory.usage_in_bytes",
	.sockets = "memory.kmem.tcp.limit_in_bytes",
	.threads = "tasks",
};
