/*
 * The seccomp filter of a guest: which system calls reach the kernel from a session.
 *
 * An allow-list. Calls that are not on it fail with EPERM, so that a program gets an error and is
 * not killed; calls that libc or CPython replace by older ones when they are missing fail with
 * ENOSYS, and so does every number newer than the list; another ABI (i386, x32) ends the process.
 * Arguments are checked where a call is both needed and dangerous. Built once with libseccomp in
 * the zygote, loaded by every guest just before it serves, inherited by all its children, and
 * impossible to remove.
 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#include "jail/jail.h"

struct filter {
	struct sock_filter *code; /* owned */
	unsigned short len;
};

/*
 * The newest call this list was made for (Linux 6.18); numbers above it do not exist for a guest.
 */
enum { FILTER_NEWEST = 470 };

int filter_build(enum jail_exec exec, enum jail_net net, struct filter *ret);

/*
 * The same for a jail whose files in memory cannot be executed anyhow (vm.memfd_noexec, see
 * init.c): all but those that ask for it pass.
 */
int filter_build_sealed(enum jail_exec exec, enum jail_net net, struct filter *ret);
void filter_finish(struct filter *f);

/*
 * Puts this process and its future children under the filter. no_new_privs must be set.
 * Async-signal-safe.
 */
int filter_load(const struct filter *f);
