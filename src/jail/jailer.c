#include "jail/jailer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "base/text.h"
#include "jail/filter_own.h"
#include "jail/init.h"
#include "jail/jail.h"
#include "jail/tree.h"

static bool privileged; /* root of the machine, not just of a namespace */

static int write_proc(pid_t pid, const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* One id inside, one outside; as root that one is the session's own, else it is whoever started us (0 in our namespace). */
static int write_maps(pid_t pid, uint32_t inner, uint32_t outer)
{
	char map[64];
	int r;
	snprintf(map, sizeof(map), "%u %u 1\n", inner, outer);
	if (!privileged && (r = write_proc(pid, "setgroups", "deny")) < 0 && r != -EPERM)
		return r;
	if ((r = write_proc(pid, "gid_map", map)) < 0)
		return r;
	return write_proc(pid, "uid_map", map);
}

/* The init's parent is the daemon (CLONE_PARENT), so that it can reap it, and sessions outlive a jailer that dies. */
static pid_t clone_init(int *ret_pidfd)
{
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_PARENT | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS |
					   CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd };
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static int describe(struct jail_answer *a, int err, const char *step)
{
	a->err = err;
	snprintf(a->text, sizeof(a->text), "%s: %s", step, strerror(-err));
	return err;
}

/* Says who the init is: for the jailer, from the helper that made it. */
static const char is_init[] = "init";

static void __attribute__((noreturn)) report_and_end(int report, int err, const char *step, int pidfd)
{
	struct init_report r = { .err = err };
	strncpy(r.step, step, sizeof(r.step) - 1);
	fd_send(report, &r, sizeof(r), &pidfd, pidfd >= 0 ? 1 : 0);
	_exit(err ? 1 : 0);
}

/*
 * Helpers are children of the daemon's, like an init, and are reaped with the orphans. They use our memory while we stand still: they are
 * needed only to be elsewhere when they make the init, and a copy of our page tables for each would cost more than all else they do.
 */
enum { HELPERS = 2, HELPER_STACK = 64 * 1024 };
static char stacks[HELPERS][HELPER_STACK] __attribute__((aligned(16)));

static pid_t run_helper(int which, int (*run)(void *), void *job)
{
	return clone(run, stacks[which] + HELPER_STACK, CLONE_VM | CLONE_VFORK | CLONE_PARENT, job);
}

enum { NESTED_S = 5 };

struct nesting {
	int outer, report;
	const struct jail_request *q;
	const struct jail_network *n;
};

static const char *why_not_nested(int err)
{
	return err == ENOSPC || err == EUSERS ? "forking a fork of a fork too deep (about 30 at most)" : "making the namespaces";
}

/*
 * The outer jail's user, by the effective ids alone. They decide whose the new user namespace is; by the real and saved ones, code in the outer
 * jail, which sees the second helper, could stop it, and us who wait for it.
 */
static int seem(uint32_t id)
{
	if (syscall(SYS_setgroups, 0, NULL) < 0 && errno != EPERM)
		return -errno;
	return syscall(SYS_setresgid, -1, id, -1) < 0 || syscall(SYS_setresuid, -1, id, -1) < 0 ? -errno : 0;
}

/* In the second helper: a pid namespace is made from within its parent. The init, a copy of us, goes on with this stack. */
static int make_inner_init(void *job)
{
	const struct nesting *j = job;
	int pidfd = -1;
	pid_t pid = clone_init(&pidfd);
	if (pid == 0)
		init_run(-1, j->report, j->q, j->n);
	report_and_end(j->report, pid < 0 ? -errno : 0, pid < 0 ? why_not_nested(errno) : is_init, pidfd);
}

/*
 * In the first helper: joins the outer jail's user and pid namespaces, becomes its user, and has the init of the nested jail made from there. So the
 * new user namespace has the outer one as parent and its user as owner, which is what lets a guest from there move in.
 */
static int enter_outer(void *job)
{
	const struct nesting *j = job;
	int r = setns(j->outer, CLONE_NEWUSER | CLONE_NEWPID) < 0 ? -errno : seem(JAIL_INNER_ID);
	if (r < 0)
		report_and_end(j->report, r, "joining the outer jail", -1);
	if (run_helper(1, make_inner_init, job) < 0)
		report_and_end(j->report, -errno, "entering the outer jail", -1);
	_exit(0);
}

/* Two messages in whatever order: the helper's with the init's pidfd, and the init's own. */
static int await_nested(int report, struct jail_answer *a, int *fds, size_t *ret_n, int *ret_pidfd)
{
	struct init_report said;
	int got[JAIL_ANSWER_FDS_MAX];
	size_t n;
	for (int i = 0; i < 2; i++) {
		if (fd_recv(report, &said, sizeof(said), got, JAIL_ANSWER_FDS_MAX, &n) != sizeof(said))
			return describe(a, -EPIPE, "the nested jail's init died");
		said.step[sizeof(said.step) - 1] = '\0';
		if (said.err)
			return describe(a, said.err, said.step);
		if (!strcmp(said.step, is_init) && n == 1) {
			*ret_pidfd = got[0];
		} else {
			memcpy(fds, got, n * sizeof(int));
			*ret_n = n;
		}
	}
	return 0;
}

static int make_nested(const struct jail_request *q, int outer, struct jail_answer *a, int *fds, size_t *ret_n)
{
	static const struct jail_network none;
	static const struct timeval patience = { .tv_sec = NESTED_S };
	int report[2], pidfd = -1, r = fd_socketpair(SOCK_SEQPACKET, report);
	size_t n_far = 0;
	if (r < 0)
		return describe(a, r, "making a socket");
	/* Started by an ordinary user, all have one id and the outer jail's code may stop what it sees, but not us for ever. */
	setsockopt(report[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	pid_t pid = run_helper(0, enter_outer, &(struct nesting){ outer, report[1], q, &none });
	int err = errno;
	prctl(PR_SET_DUMPABLE, 0); /* the helper's change of ids has made it whatever fs.suid_dumpable says */
	fd_close(report[1]);
	r = pid < 0 ? describe(a, -err, "making a helper") : await_nested(report[0], a, fds + 1, &n_far, &pidfd);
	fd_close(report[0]);
	if (r < 0) {
		if (pidfd >= 0)
			process_signal(pidfd, SIGKILL);
		fd_close(pidfd);
		return r;
	}
	a->pid = process_pid(pidfd);
	fds[0] = pidfd;
	*ret_n = 1 + n_far;
	return 0;
}

/* Makes one jail; on success fds are [init pidfd, control, workspace, what listens …]. */
static int make_jail(const struct jail_request *q, const struct jail_network *n, struct jail_answer *a, int *fds, size_t *ret_n)
{
	int go[2], report[2], r;
	size_t n_far = 0;
	struct init_report said = { 0 };
	if (pipe2(go, O_CLOEXEC) < 0)
		return describe(a, -errno, "making a pipe");
	if ((r = fd_socketpair(SOCK_SEQPACKET, report)) < 0) {
		fd_close(go[0]);
		fd_close(go[1]);
		return describe(a, r, "making a socket");
	}
	int pidfd = -1;
	pid_t pid = clone_init(&pidfd);
	if (pid == 0) {
		fd_close(go[1]);
		init_run(go[0], report[1], q, n);
	}
	int clone_errno = errno;
	fd_close(go[0]);
	fd_close(report[1]);
	if (pid < 0) {
		r = describe(a, -clone_errno, "making the namespaces");
	} else if ((r = write_maps(pid, JAIL_INNER_ID, privileged ? q->host_id : 0)) < 0) {
		describe(a, r, "writing the user map");
	} else if (write(go[1], "g", 1) != 1 ||
		   fd_recv(report[0], &said, sizeof(said), fds + 1, JAIL_ANSWER_FDS_MAX - 1, &n_far) != sizeof(said)) {
		r = describe(a, -EPIPE, "the jail's init died");
	} else if (said.err) {
		said.step[sizeof(said.step) - 1] = '\0';
		r = describe(a, said.err, said.step);
	}
	fd_close(go[1]);
	fd_close(report[0]);
	if (r < 0) {
		if (pidfd >= 0)
			process_signal(pidfd, SIGKILL);
		fd_close(pidfd);
		return r;
	}
	a->pid = pid;
	fds[0] = pidfd;
	*ret_n = 1 + n_far;
	return 0;
}

/* Tells the second start of the jailer that it is root of its own namespace only. */
static const char inside[] = "GLOVEBOX_JAILER=inside";

/*
 * An ordinary user gets the right to mount from a user namespace in which he is root. The program is started again in there:
 * memory belongs to the user namespace it was exec'd in, and a zygote that joins ours may look at our (undumpable) inits, which
 * joining their namespaces takes, only if that is ours too.
 */
static int become_root_of_namespace(char *shown, struct error *e)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();
	if (unshare(CLONE_NEWUSER) < 0) {
		int r = error_set_errno(e, -errno, "making a user namespace");
		error_remedy(e, "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
				"kernel.apparmor_restrict_unprivileged_userns=0), or start glovebox as root. `glovebox doctor` tells more.");
		return r;
	}
	int r = write_proc(getpid(), "setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1\n", gid);
	if (r == 0)
		r = write_proc(getpid(), "gid_map", map);
	snprintf(map, sizeof(map), "0 %u 1\n", uid);
	if (r == 0)
		r = write_proc(getpid(), "uid_map", map);
	if (r < 0)
		return error_set_errno(e, r, "mapping the user");
	char *argv[] = { (char *)"glovebox", (char *)"jailer", NULL }, *envp[] = { (char *)inside, shown, NULL };
	execve("/proc/self/exe", argv, envp);
	return error_set_errno(e, -errno, "starting the jailer in its namespace");
}

/* Takes the list of what jails are shown out of the environment: a jail's init is a copy of this process, and host paths are
 * nothing for jails. The text stays where it is in memory only until the tree stands. */
static char *find_shown(void)
{
	for (char **v = environ; *v; v++)
		if (!strncmp(*v, JAILER_SHOWN "=", sizeof(JAILER_SHOWN)))
			return *v;
	return NULL;
}

static int prepare(struct error *e)
{
	int r;
	char *shown = find_shown();
	bool again = getenv("GLOVEBOX_JAILER") != NULL; /* the environment is the nursery's, or our own */
	privileged = geteuid() == 0 && !again;
	if (!privileged && !again && (r = become_root_of_namespace(shown, e)) < 0)
		return r;
	if (unshare(CLONE_NEWNS) < 0) {
		error_set_errno(e, -errno, "making a mount namespace");
		return error_remedy(e, "Root inside a container needs CAP_SYS_ADMIN for this; `glovebox doctor` tells more.");
	}
	r = tree_prepare(shown ? shown + sizeof(JAILER_SHOWN) : NULL, e);
	if (shown)
		memset(shown, 0, strlen(shown));
	if (r < 0)
		return r;
	/* Sessions have other ids, but their inits start as copies of this process. */
	prctl(PR_SET_DUMPABLE, 0);
	if ((r = init_prepare()) < 0 || (r = filter_enter_own(FILTER_JAILER)) < 0)
		return error_set_errno(e, r, "loading the jailer's and the inits' system call filters");
	return 0;
}

/* A request and, for a way out, what follows it. */
struct asked {
	struct jail_request q;
	struct jail_network network;
};

static void serve_one(struct asked *asked, int outer)
{
	struct jail_answer a = { .serial = asked->q.serial };
	int fds[JAIL_ANSWER_FDS_MAX];
	size_t n = 0;
	asked->network.hosts[JAIL_HOSTS_MAX - 1] = '\0';
	if (asked->network.n_listen > JAIL_LISTEN_MAX)
		describe(&a, -EINVAL, "reading the request");
	else if (asked->q.nested)
		make_nested(&asked->q, outer, &a, fds, &n);
	else
		make_jail(&asked->q, &asked->network, &a, fds, &n);
	fd_send(JAILER_SOCKET_FD, &a, sizeof(a), fds, n);
	for (size_t i = 0; i < n; i++)
		fd_close(fds[i]);
}

int jailer_main(void)
{
	struct error e = { 0 };
	struct jail_answer hello = { 0 };
	static struct asked asked;
	ssize_t len;
	prctl(PR_SET_NAME, "glovebox-jailer");
	hello.err = prepare(&e);
	if (hello.err)
		snprintf(hello.text, sizeof(hello.text), "%s. %s", e.text, e.remedy);
	if (fd_send(JAILER_SOCKET_FD, &hello, sizeof(hello), NULL, 0) < 0 || hello.err)
		return 1;
	int outer = -1;
	while ((len = fd_recv(JAILER_SOCKET_FD, &asked, sizeof(asked), &outer, 1, NULL)) >= (ssize_t)sizeof(asked.q)) {
		memset((char *)&asked + len, 0, sizeof(asked) - (size_t)len);
		serve_one(&asked, outer);
		fd_close_clear(&outer);
	}
	return 0;
}
