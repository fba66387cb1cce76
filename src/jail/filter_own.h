/*
 * The seccomp filters of our own processes: daemon, zygote, jailer, and the init of every jail.
 *
 * They are trusted code. A filter is the second wall for the day on which one of them is not: a guest that gets a foot into the daemon
 * through a frame finds no execve, no mount, no ptrace and no new executable memory there. Each is an allow-list with EPERM for the
 * rest, ENOSYS where libraries fall back, and death on another ABI.
 *
 * Filters are inherited. So the jailer's holds what an init needs until it loads its own, the zygote's holds whatever a guest may do (the
 * guest's own, jail/filter.h, comes on top), and the daemon starts processes through the launcher (base/launcher.h), which has none.
 * A call that one of these processes newly needs is added to its table here; tests/unit/test_filter_own.c knows what must stay out.
 */
#pragma once

#include "jail/filter.h"

enum filter_owner { FILTER_DAEMON, FILTER_ZYGOTE, FILTER_JAILER, FILTER_INIT, FILTER_MOVER, FILTER_OWNERS };

/* Writes the program. Needs no libseccomp: the numbers are those of the headers this was built with. */
int filter_build_own(enum filter_owner owner, struct filter *ret);

/* Sets no_new_privs, builds and loads it, for good. */
int filter_enter_own(enum filter_owner owner);

/*
 * Before the event loop is made: sets no_new_privs and makes io_uring look missing. libuv would set up a ring with the loop (1.49 and
 * later, whatever UV_USE_IO_URING says) and abort when the daemon's filter, which comes later, keeps it from using that. A ring
 * does what filters forbid, so the daemon must not have one.
 */
int filter_refuse_rings(void);
