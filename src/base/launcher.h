/*
 * Starts processes for the daemon, whose system call filter forbids it to start any.
 *
 * The daemon puts itself under a system call filter without clone and execve, which all its
 * descendants would inherit; helpers, which need far more than it, are therefore started by this
 * small process. It is `glovebox launcher`, exec'd before the filter is loaded, knows nothing but
 * how to start a program, and gives what it starts to the daemon as its child (CLONE_PARENT), with
 * the pidfd: to the callers of process_spawn() nothing changes. It ends with the daemon.
 *
 * There are two of it: when one is killed, the other starts it again (launcher_mend). Only when
 * both are gone can no helper be started any more: process_spawn() then fails with -EPIPE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { LAUNCHER_MESSAGE_MAX = 128 * 1024, LAUNCHER_STRINGS_MAX = 1024, LAUNCHER_SOCKET_FD = 3 };

/* Starts the launchers; from now on process_spawn() goes through it. One per process. */
int launcher_start(void);
void launcher_stop(void); /* ends them and waits; fine when there is none */

/*
 * To be called when a child has ended: how many launchers were started again (mostly none), or a
 * negative errno when that is not possible.
 */
int launcher_mend(void);
bool launcher_running(void);

/*
 * For process_spawn(). As process_spawn_here(); -E2BIG when the words do not fit into one message.
 * Blocks until exec is done.
 */
int launcher_spawn(const char *path, char *const argv[], char *const envp[], const int *fds,
	size_t n_fds, pid_t *ret_pid, int *ret_err);

/*
 * Closes a descriptor that somebody else sent. To let go of the last reference may take long (a
 * gigabyte of a file in memory, a socket that lingers), and the sender decides that: where there
 * are launchers, the second one does it. Without them it is close(2).
 */
void launcher_discard(int fd);
/* our end of a pair: so when something lies unread in it, which may bring descriptors */
void launcher_discard_socket(int fd);
static inline void launcher_discard_p(int *fd)
{
	launcher_discard(*fd);
}
#define _cleanup_discard_ __attribute__((cleanup(launcher_discard_p)))

int launcher_main(void); /* everything the launcher does */
