/*
 * The seccomp filters of our own processes: daemon, zygote, jailer, and the init of every jail.
 *
 * These processes run trusted code. A filter is the second line of defence in case one of them is
 * compromised: a guest that takes over the daemon through a frame finds no execve, no mount, no
 * ptrace and no new executable memory there. Each is an allow-list with EPERM for the rest, ENOSYS
 * where libraries fall back, and death on another ABI.
 *
 * Filters are inherited. So the jailer's filter allows the calls that an init needs before it loads
 * its own filter. The zygote's filter allows all calls that a guest may make; the guest then loads
 * its own filter (jail/filter.h) on top. The daemon starts processes through the launcher
 * (base/launcher.h), which has no filter. A call that one of these processes newly needs is added
 * to its table here; tests/unit/test_filter_own.c knows what must stay out.
 */
#pragma once

#include "jail/filter.h"

enum filter_owner {
	FILTER_DAEMON,
	FILTER_ZYGOTE,
	FILTER_JAILER,
	FILTER_INIT,
	FILTER_MOVER,
	FILTER_OWNERS
};

/*
 * Writes the program. Needs no libseccomp: the numbers are those of the headers this was built
 * with.
 */
int filter_build_own(enum filter_owner owner, struct filter *ret);

/* Sets no_new_privs, builds and loads it, for good. */
int filter_enter_own(enum filter_owner owner);

/*
 * Before the event loop is made: sets no_new_privs and makes io_uring look missing. libuv would set
 * up a ring with the loop (1.49 and later, whatever UV_USE_IO_URING says) and abort when the
 * daemon's filter, which comes later, keeps it from using that. A ring does what filters forbid, so
 * the daemon must not have one.
 */
int filter_refuse_rings(void);
