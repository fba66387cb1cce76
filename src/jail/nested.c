/*
 * Three processes, in this order:
 *
 *   maker   a fork of the jailer. Joins the outer jail's user namespace, but stays in the jailer's pid namespace: no id of it exists for
 *           code in jails, so nothing there can signal it. Writes the id maps of the new user namespace.
 *   opener  a child of the maker in the outer jail's pid namespace, because a pid namespace is made from within its parent. Takes the
 *           effective id of the outer jail's user, which makes that user the owner of the new user namespace: this lets a copy of a guest
 *           move in. Clones the init and ends. Its real and saved ids are not the session's: code without capabilities cannot signal it.
 *   init    the new jail's pid 1 (init.c). It belongs to a user namespace that the outer jail's user owns, so code there may signal it.
 *
 * All of them are undumpable at every moment in which code of the outer jail can name them: such code could otherwise write to their
 * memory and act with the machine's root as its real id.
 */
#include "jail/nested.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process.h"
#include "jail/init.h"
#include "jail/jail.h"
#include "jail/jailer.h"

enum { OPENER_STACK = 64 * 1024 };
static char stack[OPENER_STACK] __attribute__((aligned(16)));

/* What maker, opener and init share; in the maker's memory, of which the init gets a copy. */
struct nesting {
	const struct jail_request *q;
	int go[2], report[2];
	int opener, init; /* pidfds */
	uint64_t deadline_ns;
};

/* Marks the opener's report, which brings the init's pidfd. */
static const char is_init[] = "init";

static const char *why_not_nested(int err)
{
	return err == ENOSPC || err == EUSERS
		       ? "forks are nested too deeply (at most about 30 levels)"
		       : "making the namespaces";
}

/* ---- the opener ----------------------------------------------------------------------- */

static int take_effective_id(uint32_t id)
{
	if (syscall(SYS_setgroups, 0, NULL) < 0 && errno != EPERM)
		return -errno;
	if (syscall(SYS_setresgid, -1, id, -1) < 0 || syscall(SYS_setresuid, -1, id, -1) < 0)
		return -errno;
	/* the change of ids has set it to fs.suid_dumpable */
	return prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;
}

/*
 * Shares the maker's memory, on a stack of its own. The init, which has a copy of that memory, goes
 * on with this stack.
 */
static int open_namespaces_inside(void *job)
{
	static const struct jail_network none;
	const struct nesting *j = job;
	struct init_report said = { .err = take_effective_id(JAIL_INNER_ID) };
	int pidfd = -1;

	strncpy(said.step, "entering the outer jail", sizeof(said.step) - 1);
	if (said.err == 0) {
		pid_t pid = jailer_clone_init(true, &pidfd);
		if (pid == 0) {
			fd_close(j->go[1]);
			fd_close(j->report[0]);
			init_run(j->go[0], j->report[1], j->q, &none);
		}
		said.err = pid < 0 ? -errno : 0;
		strncpy(said.step, pid < 0 ? why_not_nested(errno) : is_init,
			sizeof(said.step) - 1);
	}

	fd_send(j->report[1], &said, sizeof(said), &pidfd, pidfd >= 0 ? 1 : 0);
	syscall(SYS_exit, 0); /* the thread alone: libc's exit would be the maker's */
	return 0;
}

/* ---- the maker ------------------------------------------------------------------------- */

/* One report, or -ETIMEDOUT. */
static int await_report(
	struct nesting *j, struct init_report *said, int *fds, size_t max_fds, size_t *ret_n)
{
	struct pollfd p = { .fd = j->report[0], .events = POLLIN };
	uint64_t now = clock_now_ns();
	int left_ms = now < j->deadline_ns ? (int)((j->deadline_ns - now) / NSEC_PER_MSEC) : 0;
	if (poll(&p, 1, left_ms) != 1)
		return -ETIMEDOUT;
	if (fd_recv(j->report[0], said, sizeof(*said), fds, max_fds, ret_n) != sizeof(*said))
		return -EPIPE;
	said->step[sizeof(said->step) - 1] = '\0';
	return 0;
}

/* The one id that its maker had, as in every jail. */
static int write_maps(pid_t pid)
{
	static const struct {
		const char *name, *text;
	} maps[] = { { "setgroups", "deny" }, { "gid_map", "1000 1000 1" },
		{ "uid_map", "1000 1000 1" } };
	_Static_assert(JAIL_INNER_ID == 1000, "the number in the maps");
	int r = 0;
	for (int i = 0; r == 0 && i < 3; i++)
		r = jailer_write_proc(pid, maps[i].name, maps[i].text);
	return r;
}

static int run_opener(struct nesting *j)
{
	pid_t pid = clone(open_namespaces_inside, stack + OPENER_STACK,
		CLONE_VM | CLONE_PARENT | CLONE_PIDFD, j, &j->opener);
	return pid < 0 ? -errno : 0;
}

/* The init exists and waits: give its user namespace an id, and let it go on. */
static int let_go(struct nesting *j, const char **ret_step)
{
	pid_t pid = process_pid(j->init);
	*ret_step = "writing the user map";
	int r = pid ? write_maps(pid) : -ESRCH;
	return r < 0 ? r : write(j->go[1], "g", 1) == 1 ? 0 : -errno;
}

/* The opener's report, then the init's. On success fds are what the init brought. */
static int await_both(struct nesting *j, struct jail_answer *a, int *fds, size_t *ret_n)
{
	static const char late[] =
		"the nested jail was not made in time; code of the outer session may have stopped it";
	struct init_report said = { 0 };
	const char *step = late;
	size_t n = 0;
	int r = await_report(j, &said, &j->init, 1, &n);

	if (r == 0 && said.err)
		return jailer_describe(a, said.err, said.step);
	if (r == 0 && (n != 1 || strcmp(said.step, is_init) != 0))
		r = -EPROTO;
	if (r == 0)
		r = let_go(j, &step);
	if (r < 0)
		return jailer_describe(a, r, step);
	if ((r = await_report(j, &said, fds, JAIL_ANSWER_FDS_MAX - 1, ret_n)) < 0)
		return jailer_describe(
			a, r, r == -ETIMEDOUT ? late : "the nested jail's init died");
	return said.err ? jailer_describe(a, said.err, said.step) : 0;
}

static int make(struct nesting *j, int outer, struct jail_answer *a, int *fds, size_t *ret_n)
{
	int r = fd_socketpair(SOCK_SEQPACKET, j->report);
	if (r == 0 && pipe2(j->go, O_CLOEXEC) < 0)
		r = -errno;
	if (r < 0)
		return jailer_describe(a, r, "making a socket");
	if (setns(outer, CLONE_NEWUSER | CLONE_NEWPID) < 0)
		return jailer_describe(a, -errno, "joining the outer jail");
	prctl(PR_SET_DUMPABLE, 0); /* the change of namespaces has set it to fs.suid_dumpable */
	if ((r = run_opener(j)) < 0)
		return jailer_describe(a, r, "making a helper");
	if ((r = await_both(j, a, fds + 1, ret_n)) < 0)
		return r;
	a->pid = process_pid(j->init);
	fds[0] = j->init;
	*ret_n += 1;
	return 0;
}

static void __attribute__((noreturn)) maker(const struct jail_request *q, int outer)
{
	struct nesting j = { .q = q,
		.go = { -1, -1 },
		.report = { -1, -1 },
		.opener = -1,
		.init = -1,
		.deadline_ns = clock_now_ns() + NESTED_WAIT_S * NSEC_PER_SEC };
	struct jail_answer a = { .serial = q->serial };
	int fds[JAIL_ANSWER_FDS_MAX];
	size_t n = 0;

	/* The last limit, whatever waits: the signal's default action ends us. */
	setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_sec = NESTED_LIMIT_S }, NULL);
	if (make(&j, outer, &a, fds, &n) < 0) {
		n = 0;
		if (j.opener >= 0)
			process_signal(j.opener, SIGKILL);
		if (j.init >= 0)
			process_signal(j.init, SIGKILL);
	}
	fd_send(JAILER_SOCKET_FD, &a, sizeof(a), fds, n);
	_exit(0);
}

int nested_start(const struct jail_request *q, int outer)
{
	/* A child of the daemon's, like an init, and reaped with the orphans. */
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PARENT, 0, 0, 0, 0);
	if (pid == 0)
		maker(q, outer);
	return pid < 0 ? -errno : 0;
}
