#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/launcher.h"

int process_pidfd_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd < 0 ? -errno : fd;
}

int process_signal(int pidfd, int sig)
{
	return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}

/*
 * The number behind a key (which begins with a newline and ends with a colon) of a small file in
 * /proc; -1 when there is none.
 */
static long number_in(const char *path, const char *key)
{
	_cleanup_free_ char *text = NULL;
	if (fd_read_file(path, 16384, &text, NULL) < 0)
		return -1;
	const char *at = strstr(text, key);
	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

pid_t process_pid(int pidfd)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	long pid = number_in(path, "\nPid:");
	return pid > 0 ? (pid_t)pid : 0;
}

long process_uid(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return number_in(path, "\nUid:");
}

int process_reap(int pidfd, struct process_exit *ret)
{
	siginfo_t si = { 0 };
	if (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &si, WEXITED | WNOHANG | __WALL) < 0)
		return -errno;
	if (si.si_pid == 0)
		return 0;
	*ret = (struct process_exit){ .signaled = si.si_code != CLD_EXITED,
		.status = si.si_status };
	return 1;
}

void process_kill_wait(int pidfd)
{
	struct process_exit unused;
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	process_signal(pidfd, SIGKILL);
	while (process_reap(pidfd, &unused) == 0)
		poll(&p, 1, -1);
}

/*
 * Between fork and exec: only async-signal-safe calls. Reports a failed step's errno on `report`,
 * which exec closes.
 */
static void __attribute__((noreturn)) spawn_child(const char *path, char *const argv[],
	char *const envp[], const int *fds, size_t n_fds, int report, pid_t parent)
{
	int moved[SPAWN_FDS_MAX];
	sigset_t none;
	/*
	 * First above every target number, so that no dup2 below overwrites one that is still to be
	 * moved.
	 */
	report = fcntl(report, F_DUPFD_CLOEXEC, 2 * SPAWN_FDS_MAX);
	for (size_t i = 0; i < n_fds; i++)
		if ((moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 2 * SPAWN_FDS_MAX)) < 0)
			goto fail;
	for (size_t i = 0; i < n_fds; i++)
		if (dup2(moved[i], (int)i) < 0)
			goto fail;
	syscall(SYS_close_range, (unsigned)n_fds, ~0U, CLOSE_RANGE_CLOEXEC);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/*
	 * What is ignored stays ignored in a new program: a server that a script started with &
	 * would have sessions that no interrupt reaches.
	 */
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	/* Ctrl-C at a terminal is for the program that asked, which decides what to do about its
	 * helpers */
	setsid();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		goto fail;
	if (getppid() != parent)
		_exit(127); /* the parent died before the signal was armed */
	execve(path, argv, envp);
fail:;
	int err = errno;
	ssize_t w = write(report, &err, sizeof(err));
	(void)w;
	_exit(127);
}

/*
 * Reads what the child reports until exec closes the pipe: 0 when the program runs, else the errno
 * of the step that failed.
 */
static int read_report(int fd)
{
	int err;
	return fd_read_full(fd, &err, sizeof(err)) == 0 ? -err : 0;
}

/*
 * A child of our parent's, when that is who asks (the launcher); else our own. Both come with their
 * pidfd.
 */
static pid_t clone_child(bool for_parent, int *ret_pidfd)
{
	struct clone_args args = { .flags = CLONE_PIDFD | (for_parent ? CLONE_PARENT : 0),
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		/* with CLONE_PARENT it is the caller's own, SIGCHLD */
		.exit_signal = for_parent ? 0 : SIGCHLD };
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

int process_spawn_here(const char *path, char *const argv[], char *const envp[], const int *fds,
	size_t n_fds, bool for_parent, pid_t *ret_pid, int *ret_err)
{
	int report[2], pidfd = -1;
	pid_t parent = for_parent ? getppid() : getpid();

	if (n_fds > SPAWN_FDS_MAX)
		return -E2BIG;
	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = clone_child(for_parent, &pidfd);
	if (pid == 0)
		spawn_child(path, argv, envp, fds, n_fds, report[1], parent);
	int err = errno;
	fd_close(report[1]);
	if (pid >= 0)
		*ret_err = read_report(report[0]);
	fd_close(report[0]);
	if (pid < 0)
		return -err;
	*ret_pid = pid;
	return pidfd;
}

int process_spawn(const char *path, char *const argv[], char *const envp[], const int *fds,
	size_t n_fds, pid_t *ret_pid)
{
	int err = 0;
	pid_t pid = 0;
	int pidfd = launcher_running()
			    ? launcher_spawn(path, argv, envp, fds, n_fds, &pid, &err)
			    : process_spawn_here(path, argv, envp, fds, n_fds, false, &pid, &err);

	if (pidfd < 0)
		return pidfd;
	if (err < 0) { /* it is there, but exec failed */
		process_kill_wait(pidfd);
		fd_close(pidfd);
		return err;
	}

	if (ret_pid)
		*ret_pid = pid;
	return pidfd;
}
