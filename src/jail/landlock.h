/*
 * Landlock, which another part of the kernel enforces than the mounts: programs from the system's
 * directories only, no devices, no signals or abstract sockets that leave the session, and no TCP
 * unless the jail has its own loopback. Used in addition to the mounts where the kernel has it,
 * never instead of them; only the mounts restrict which files may be written (see grant_all).
 * System calls only, for use between clone and the guest's first line.
 */
#pragma once

#include "jail/jail.h"

/* What the kernel offers: 0 for none. */
int landlock_version(void);

/*
 * Puts this process and all it starts under the rules; no_new_privs must be set. 0 also where there
 * is no Landlock.
 */
int landlock_restrict(enum jail_exec exec, enum jail_net net, const char **ret_step);

/*
 * For helpers: files can be read, and nothing can be written or started. 0 also where there is no
 * Landlock.
 */
int landlock_read_only(const char **ret_step);

/*
 * Refuses everything to this process, for good, and looks whether that holds: 0 or a negative
 * errno. For tests in a child.
 */
int landlock_try(void);
