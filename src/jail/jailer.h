/*
 * The jailer process: prepares the system tree once, then makes jails. Started by the session layer
 * as `glovebox jailer`.
 */
#pragma once

/*
 * Never returns before the daemon's socket (JAILER_SOCKET_FD) is closed; the exit code of the
 * process.
 */
int jailer_main(void);

/* ---- for nested.c ---- */

#include <stdbool.h>
#include <sys/types.h>

struct jail_answer;

/*
 * Clones the init of a jail into new namespaces of every kind, as a child of the daemon. Without
 * own_net it stays in the caller's network namespace. As clone(2), with its pidfd.
 */
pid_t jailer_clone_init(bool own_net, int *ret_pidfd);

/* Writes a text to /proc/PID/NAME. */
int jailer_write_proc(pid_t pid, const char *name, const char *text);

/* Puts the error and the step that failed into the answer; returns the error. */
int jailer_describe(struct jail_answer *a, int err, const char *step);
