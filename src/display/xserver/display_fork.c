#include "display/xserver/display_fork.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fds.h"
#include "jail/clone.h"
#include "jail/jail.h"

enum { JAILER_TRIES = 1000, JAILER_WAIT_NS = 5000000 };

/*
 * Says why and leaves: whoever asked sees the end of the connection; the line is for the server's
 * log.
 */
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
	/*
	 * A plain server and a film are programs to be started; nothing else of a display ever
	 * starts one (their filters refuse it). Code of the session may be running: a program
	 * becomes dumpable when it is executed, behind its filter, and a server that was copied
	 * never does.
	 */
	int r = q->process == DISPLAY_SCREEN
			? jail_enter_beside(fds[0], &step)
			: jail_enter_closed(fds[0], JAIL_EXEC_SYSTEM, JAIL_NET_NONE, &step);
	if (r < 0)
		give_up(step);
}

pid_t display_fork(const struct display_spawn *q, const int *fds, size_t n_fds, int *ret_pidfd,
	const char **ret_step)
{
	*ret_step = "aiming at the jail";
	int r = jail_aim_children(fds[0]);
	if (r < 0)
		return r;
	*ret_step = "forking";
	pid_t pid = clone_for_parent(q->into ? fds[DISPLAY_SPAWN_FDS] : -1, ret_pidfd);
	if (pid < 0)
		return -errno;
	if (pid == 0)
		enter(q, fds, n_fds);
	return pid;
}

int display_join_jailer(void)
{
	int r = geteuid() != 0 && setns(DISPLAY_HELPER_JAILER, CLONE_NEWUSER) < 0 ? -errno : 0;
	/*
	 * the jailer was started a moment ago, and has not made its namespace yet: it is still in
	 * ours
	 */
	for (int i = 0; r == -EINVAL && i < JAILER_TRIES; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = JAILER_WAIT_NS }, NULL);
		r = setns(DISPLAY_HELPER_JAILER, CLONE_NEWUSER) < 0 ? -errno : 0;
	}
	fd_close(DISPLAY_HELPER_JAILER);
	return r;
}
