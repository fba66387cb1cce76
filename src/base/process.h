/* Processes as pidfds: a number can be reused, a pidfd cannot. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

int process_pidfd_open(pid_t pid); /* the fd (CLOEXEC) or a negative errno */
int process_signal(int pidfd, int sig);
/* its number while it is not reaped; 0 when it is, or when this is no pidfd */
pid_t process_pid(int pidfd);

/*
 * Its real user, on this machine; -1 when it is gone. Also of one that has ended and was not
 * reaped.
 */
long process_uid(pid_t pid);

/* How a child ended. */
struct process_exit {
	bool signaled;
	int status; /* exit code, or the signal's number */
};

/*
 * Reaps the child behind the pidfd without blocking: 1 and *ret when it ended, 0 while it runs, or
 * a negative errno.
 */
int process_reap(int pidfd, struct process_exit *ret);

/* Kills and waits until it is reaped (a child of ours). */
void process_kill_wait(int pidfd);

/*
 * Starts a program with exactly this environment and these descriptors: fds[i] becomes descriptor i
 * in the child (at least 0, 1, 2), all others are closed. The child dies with this process
 * (PR_SET_PDEATHSIG). Returns a pidfd or a negative errno, which is also that of a failed exec.
 * Where a launcher runs, it does the work.
 */
int process_spawn(const char *path, char *const argv[], char *const envp[], const int *fds,
	size_t n_fds, pid_t *ret_pid);

enum { SPAWN_FDS_MAX = 8 };

/*
 * The same without a launcher (base/launcher.h), for it and for those that have none: a child of
 * this process or, for_parent, of this one's parent. With a pidfd, *ret_err is 0 or the negative
 * errno of what failed before or in exec; reaping is the new parent's.
 */
int process_spawn_here(const char *path, char *const argv[], char *const envp[], const int *fds,
	size_t n_fds, bool for_parent, pid_t *ret_pid, int *ret_err);
