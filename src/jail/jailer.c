#include "jail/jailer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "base/text.h"
#include "jail/filter_own.h"
#include "jail/idle_net.h"
#include "jail/init.h"
#include "jail/jail.h"
#include "jail/lean_fork.h"
#include "jail/nested.h"
#include "jail/tree.h"

static bool privileged; /* root of the machine, not just of a namespace */

int jailer_write_proc(pid_t pid, const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/*
 * One id inside, one outside; as root that one is the session's own, else it is whoever started us
 * (0 in our namespace).
 */
static int write_maps(pid_t pid, uint32_t inner, uint32_t outer)
{
	char map[64];
	int r;
	snprintf(map, sizeof(map), "%u %u 1\n", inner, outer);
	if (!privileged && (r = jailer_write_proc(pid, "setgroups", "deny")) < 0 && r != -EPERM)
		return r;
	if ((r = jailer_write_proc(pid, "gid_map", map)) < 0)
		return r;
	return jailer_write_proc(pid, "uid_map", map);
}

/*
 * The init's parent is the daemon (CLONE_PARENT), so that it can reap it, and sessions outlive a
 * jailer that dies.
 */
pid_t jailer_clone_init(bool own_net, int *ret_pidfd)
{
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_PARENT | CLONE_NEWUSER |
					    CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC |
					    CLONE_NEWUTS | CLONE_NEWCGROUP |
					    (own_net ? CLONE_NEWNET : 0),
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd };
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/*
 * The user namespace belongs to the session's id, not to the machine's root: what the kernel counts
 * per user (inotify, namespaces) it counts for the owner too, and sessions would together take what
 * root's services need. It gives the session nothing, since no process with that id is outside of
 * it.
 */
static pid_t clone_owned(uint32_t owner, bool own_net, int *ret_pidfd)
{
	if (!privileged)
		return jailer_clone_init(own_net, ret_pidfd);
	/* capabilities stay: some systems let only root make user namespaces */
	prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
	if (syscall(SYS_setresuid, -1, owner, -1) < 0)
		return -1;
	pid_t pid = jailer_clone_init(own_net, ret_pidfd);
	if (pid == 0)
		return 0;

	int err = errno;
	syscall(SYS_setresuid, -1, 0, -1);
	prctl(PR_SET_SECUREBITS, 0, 0, 0, 0);
	/* the change of ids has set it to fs.suid_dumpable, and cleared the next one */
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	errno = err;
	return pid;
}

int jailer_describe(struct jail_answer *a, int err, const char *step)
{
	a->err = err;
	snprintf(a->text, sizeof(a->text), "%s: %s", step, strerror(-err));
	return err;
}

/* The init, in a network namespace that was used before if there is one and it may be. */
static pid_t clone_connected(const struct jail_request *q, int net, int *ret_pidfd)
{
	if (q->net != JAIL_NET_NONE) /* its loopback is for the init to bring up */
		return clone_owned(q->host_id, true, ret_pidfd);

	int r = idle_net_enter(net);
	pid_t pid = r < 0 ? -1 : clone_owned(q->host_id, false, ret_pidfd);
	if (pid == 0)
		return 0;

	int err = r < 0 ? -r : errno;
	idle_net_leave();
	errno = err;
	return pid;
}

/* Makes one jail; on success fds are [init pidfd, control, workspace, what listens …]. */
static int make_jail(const struct jail_request *q, const struct jail_network *n, int net,
	struct jail_answer *a, int *fds, size_t *ret_n)
{
	static const struct timeval patience = { .tv_sec = JAIL_WAIT_S };
	int go[2], report[2], r;
	size_t n_far = 0;
	struct init_report said = { 0 };

	if (pipe2(go, O_CLOEXEC) < 0)
		return jailer_describe(a, -errno, "making a pipe");
	if ((r = fd_socketpair(SOCK_SEQPACKET, report)) < 0) {
		fd_close(go[0]);
		fd_close(go[1]);
		return jailer_describe(a, r, "making a socket");
	}

	int pidfd = -1;
	setsockopt(report[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	pid_t pid = clone_connected(q, net, &pidfd);
	if (pid == 0) {
		fd_close(go[1]);
		init_run(go[0], report[1], q, n);
	}

	int clone_errno = errno;
	fd_close(go[0]);
	fd_close(report[1]);
	if (pid < 0) {
		r = jailer_describe(a, -clone_errno, "making the namespaces");
	} else if ((r = write_maps(pid, JAIL_INNER_ID, privileged ? q->host_id : 0)) < 0) {
		jailer_describe(a, r, "writing the user map");
	} else if (write(go[1], "g", 1) != 1 ||
		   fd_recv(report[0], &said, sizeof(said), fds + 1, JAIL_ANSWER_FDS_MAX - 1,
			   &n_far) != sizeof(said)) {
		r = jailer_describe(a, -EPIPE, "the jail's init died");
	} else if (said.err) {
		said.step[sizeof(said.step) - 1] = '\0';
		r = jailer_describe(a, said.err, said.step);
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
 * An ordinary user gets the right to mount from a user namespace in which he is root. The program
 * is started again in there: memory belongs to the user namespace it was exec'd in, and a zygote
 * that joins ours may look at our (undumpable) inits, which joining their namespaces takes, only if
 * that is ours too.
 */
static int become_root_of_namespace(char *shown, struct error *e)
{
	char map[64];
	uid_t uid = geteuid();

	gid_t gid = getegid();
	if (unshare(CLONE_NEWUSER) < 0) {
		int r = error_set_errno(e, -errno, "making a user namespace");
		error_remedy(e,
			"Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
			"kernel.apparmor_restrict_unprivileged_userns=0), or start glovebox as root. `glovebox doctor` gives details.");
		return r;
	}

	int r = jailer_write_proc(getpid(), "setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1\n", gid);
	if (r == 0)
		r = jailer_write_proc(getpid(), "gid_map", map);
	snprintf(map, sizeof(map), "0 %u 1\n", uid);
	if (r == 0)
		r = jailer_write_proc(getpid(), "uid_map", map);
	if (r < 0)
		return error_set_errno(e, r, "mapping the user");
	char *argv[] = { (char *)"glovebox", (char *)"jailer", NULL },
	     *envp[] = { (char *)inside, shown, NULL };
	execve("/proc/self/exe", argv, envp);
	return error_set_errno(e, -errno, "starting the jailer in its namespace");
}

/*
 * Takes the list of what jails are shown out of the environment: a jail's init is a copy of this
 * process, and host paths are nothing for jails. The text stays where it is in memory only until
 * the tree stands.
 */
static char *find_shown(void)
{
	for (char **v = environ; *v; v++)
		if (!strncmp(*v, JAILER_SHOWN "=", sizeof(JAILER_SHOWN)))
			return *v;
	return NULL;
}

static int make_tree(const char *shown, struct error *e)
{
	if (unshare(CLONE_NEWNS) < 0) {
		error_set_errno(e, -errno, "making a mount namespace");
		return error_remedy(e,
			"Root inside a container needs CAP_SYS_ADMIN for this; `glovebox doctor` gives details.");
	}
	return tree_prepare(shown ? shown + sizeof(JAILER_SHOWN) : NULL, e);
}

/*
 * The tree of the jailer before this one. The Landlock rules of sessions hold on to its files:
 * jails that are nested in those of living sessions must have the same tree, or nothing in them
 * could be opened.
 */
static int join_tree(struct error *e)
{
	int r = setns(JAILER_TREE_FD, CLONE_NEWNS) < 0 ? -errno : 0;
	fd_close(JAILER_TREE_FD);
	umask(022);
	return r < 0 ? error_set_errno(e, r, "joining the jails' tree") : 0;
}

static int prepare(struct error *e)
{
	int r;
	char *shown = find_shown();

	/* the environment is the pool's, or our own */
	bool again = getenv("GLOVEBOX_JAILER") != NULL;
	privileged = geteuid() == 0 && !again;
	if (!privileged && !again && (r = become_root_of_namespace(shown, e)) < 0)
		return r;
	bool there = privileged && ioctl(JAILER_TREE_FD, NS_GET_NSTYPE) == CLONE_NEWNS;
	r = there ? join_tree(e) : make_tree(shown, e);
	if (shown)
		memset(shown, 0, strlen(shown));
	if (r < 0)
		return r;
	/* Sessions have other ids, but their inits start as copies of this process. */
	prctl(PR_SET_DUMPABLE, 0);
	lean_fork_prepare();
	if ((r = idle_net_prepare()) < 0)
		return error_set_errno(e, r, "making a network namespace");
	if ((r = init_prepare()) < 0 || (r = filter_enter_own(FILTER_JAILER)) < 0)
		return error_set_errno(
			e, r, "loading the jailer's and the inits' system call filters");
	return 0;
}

/* A request and, for a way out, what follows it. */
struct asked {
	struct jail_request q;
	struct jail_network network;
};

static void serve_one(struct asked *asked, int came)
{
	struct jail_answer a = { .serial = asked->q.serial };
	int fds[JAIL_ANSWER_FDS_MAX];
	size_t n = 0;

	asked->network.hosts[JAIL_HOSTS_MAX - 1] = '\0';
	if (asked->q.nested) {
		int r = nested_start(&asked->q, came);
		if (r == 0)
			return; /* it answers */
		jailer_describe(&a, r, "making a helper");
	} else if (asked->network.n_listen > JAIL_LISTEN_MAX)
		jailer_describe(&a, -EINVAL, "reading the request");
	else if (!asked->q.ping)
		make_jail(&asked->q, &asked->network, came, &a, fds, &n);
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
	_cleanup_fd_ int tree = privileged && !hello.err
					? open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)
					: -1;
	if (fd_send(JAILER_SOCKET_FD, &hello, sizeof(hello), &tree, tree >= 0 ? 1 : 0) < 0 ||
		hello.err)
		return 1;
	fd_close_clear(&tree);
	int came = -1;
	while ((len = fd_recv(JAILER_SOCKET_FD, &asked, sizeof(asked), &came, 1, NULL)) >=
		(ssize_t)sizeof(asked.q)) {
		memset((char *)&asked + len, 0, sizeof(asked) - (size_t)len);
		serve_one(&asked, came);
		fd_close_clear(&came);
	}

	return 0;
}
