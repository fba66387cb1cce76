#include "jail/clone.h"

#include <linux/sched.h>
#include <sched.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * CLONE_CHILD_SETTID at libc's own place keeps pthread's idea of the thread id right without libc's
 * fork().
 */
pid_t clone_for_parent(int cgroup, int *ret_pidfd)
{
	static int *tid_address;
	if (!tid_address && prctl(PR_GET_TID_ADDRESS, &tid_address, 0, 0, 0) < 0)
		return -1;

	struct clone_args args = { .flags = CLONE_PARENT | CLONE_PIDFD | CLONE_CHILD_SETTID |
					    CLONE_CHILD_CLEARTID,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.child_tid = (uint64_t)(uintptr_t)tid_address };
	if (cgroup >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}
