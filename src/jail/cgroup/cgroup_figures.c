/* What a session's files in /proc say about its control group. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "jail/cgroup/cgroup.h"
#include "jail/cgroup/cgroup_internal.h"

void cgroup_figures_read(struct cgroup_home *h, const char *name, struct jail_figures *ret)
{
	uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	const char *kind = cgroup_home_kind(h);

	ret->used_bytes = cgroup_memory(h, name);
	if (!strcmp(kind, "v2")) {
		ret->cached_bytes = cgroup_read_number(
			h->dirs[0], name, "memory.stat", "inactive_file");
		ret->user_ns = cgroup_read_number(h->dirs[0], name, "cpu.stat", "user_usec") *
			       NSEC_PER_USEC;
		ret->system_ns = cgroup_read_number(h->dirs[0], name, "cpu.stat", "system_usec") *
				 NSEC_PER_USEC;
	} else if (!strcmp(kind, "v1")) {
		ret->cached_bytes = cgroup_read_number(
			h->dirs[CGROUP_V1_MEMORY], name, "memory.stat", "inactive_file");
		ret->user_ns = cgroup_read_number(
				       h->dirs[CGROUP_V1_CPUACCT], name, "cpuacct.stat", "user") *
			       tick_ns;
		ret->system_ns = cgroup_read_number(h->dirs[CGROUP_V1_CPUACCT], name,
					 "cpuacct.stat", "system") *
				 tick_ns;
	}
}
