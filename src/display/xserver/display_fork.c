#include "display/xserver/display_fork.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fds.h"
#include "jail/jail.h"

/* The child belongs to the daemon (CLONE_PARENT), which reaps it. libc learns its new thread id where it looks for it. */
static pid_t clone_child(int into, int *ret_pidfd)
{
	static int *tid_address;
	if (!tid_address && prctl(PR_GET_TID_ADDRESS, &tid_address, 0, 0, 0) < 0)
		return -1;
	struct clone_args args = { .flags = CLONE_PARENT | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.child_tid = (uint64_t)(uintptr_t)tid_address };
	if (into >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)into;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* Says why and leaves: whoever asked sees the end of the connection; the line is for the server's log. */
static void __attribute__((noreturn)) give_up(const char *step)
{
	static const char head[] = "glovebox: a process of a display could not enter its jail: ";
	ssize_t w = write(STDERR_FILENO, head, sizeof(head) - 1);
	w = write(STDERR_FILENO, step, strlen(step));
	w = write(STDERR_FILENO, "\n", 1);
	(void)w;
	_exit(1);
}

static void enter(const struct display_spawn *q, const int *fds, size_t n_fds)
{
	const char *step = "joining the control groups";
	for (size_t i = DISPLAY_SPAWN_FDS; i < n_fds && !q->into; i++)
		if (write(fds[i], "0", 1) != 1)
			give_up(step);
	/* A plain server and a film are programs to be started; nothing else of a display ever starts one (their filters refuse it). */
	int r = q->process == DISPLAY_SCREEN ? jail_enter_beside(fds[0], &step)
					     : jail_enter(fds[0], JAIL_EXEC_SYSTEM, JAIL_NET_NONE, &step);
	if (r < 0)
		give_up(step);
}

pid_t display_fork(const struct display_spawn *q, const int *fds, size_t n_fds, int *ret_pidfd, const char **ret_step)
{
	*ret_step = "aiming at the jail";
	int r = jail_aim_children(fds[0]);
	if (r < 0)
		return r;
	*ret_step = "forking";
	pid_t pid = clone_child(q->into ? fds[DISPLAY_SPAWN_FDS] : -1, ret_pidfd);
	if (pid < 0)
		return -errno;
	if (pid == 0)
		enter(q, fds, n_fds);
	return pid;
}

int display_join_jailer(void)
{
	int r = geteuid() != 0 && setns(DISPLAY_HELPER_JAILER, CLONE_NEWUSER) < 0 ? -errno : 0;
	fd_close(DISPLAY_HELPER_JAILER);
	return r;
}
