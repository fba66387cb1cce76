#include "jail/rlimits.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>

int rlimits_apply(const char **ret_step)
{
	static const struct {
		int resource;
		struct rlimit limit;
		const char *step;

	} limits[] = {
		{ RLIMIT_CORE, { 0, 0 }, "limiting core files" },
		{ RLIMIT_NOFILE, { RLIMITS_FILES, RLIMITS_FILES_HARD }, "limiting open files" },
		{ RLIMIT_NPROC, { RLIMITS_PROCESSES, RLIMITS_PROCESSES }, "limiting processes" },
		{ RLIMIT_SIGPENDING, { RLIMITS_SIGNALS, RLIMITS_SIGNALS }, "limiting timers" },
		/*
		 * Whoever started the server may have more of these than code should: services are
		 * given them, and root in a container often is.
		 */
		{ RLIMIT_MEMLOCK, { RLIMITS_LOCKED, RLIMITS_LOCKED }, "limiting locked memory" },
		{ RLIMIT_NICE, { 0, 0 }, "limiting priorities" },
		{ RLIMIT_RTPRIO, { 0, 0 }, "limiting real-time priorities" },
	};
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit now, want = limits[i].limit;
		*ret_step = limits[i].step;
		if (getrlimit((__rlimit_resource_t)limits[i].resource, &now) < 0)
			return -errno;
		/* Some systems start us with less; it cannot be raised here, and less is fine. */
		if (now.rlim_max < want.rlim_max)
			want.rlim_max = now.rlim_max;
		if (want.rlim_cur > want.rlim_max)
			want.rlim_cur = want.rlim_max;
		if (setrlimit((__rlimit_resource_t)limits[i].resource, &want) < 0)
			return -errno;
	}

	return 0;
}
