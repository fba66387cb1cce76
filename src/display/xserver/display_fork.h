/*
 * How processes of a display get into a jail; shared by the X zygote and by `glovebox screens`.
 * Both have one thread.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "display/protocol.h"

/*
 * Clones into the jail behind fds[0] as a child of the daemon. In the child returns 0 after joining
 * the control groups and every namespace and giving up all privileges; in the parent returns the
 * pid or a negative errno, with *ret_pidfd. *ret_step names a step that failed. A child that fails
 * leaves by itself.
 */
pid_t display_fork(const struct display_spawn *q, const int *fds, size_t n_fds, int *ret_pidfd,
	const char **ret_step);

/*
 * Joins the user namespace of the jailer when that takes it, so that its jails can be entered.
 * Closes DISPLAY_HELPER_JAILER.
 */
int display_join_jailer(void);
