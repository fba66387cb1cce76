/*
 * Runs in a child of the jailer (single-threaded, no Python). It may use anything of libc that does
 * not need the host's tree.
 */
#include "jail/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"
#include "jail/filter_own.h"
#include "jail/jail.h"
#include "jail/kept_sockets.h"
#include "jail/mounts.h"
#include "jail/net.h"
#include "jail/privileges.h"
#include "jail/proc_files.h"
#include "jail/tree.h"
#include "jail/xsocket.h"

static struct filter own; /* built once in the jailer, of which every init is a copy */

int init_prepare(void)
{
	return filter_build_own(FILTER_INIT, &own);
}

static void fail(int report, int err, const char *step)
{
	struct init_report r = { .err = err };
	strncpy(r.step, step, sizeof(r.step) - 1);
	fd_send(report, &r, sizeof(r), NULL, 0);
	_exit(1);
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
		;
}

/*
 * A socket and a cookie for a display of the session's own; without descriptors the answer says
 * that it failed.
 */
static void make_display(int control)
{
	uint8_t cookie[XSOCKET_COOKIE];
	int fds[XSOCKET_FDS];
	char byte = JAIL_DISPLAY;
	if (fd_read_full(control, cookie, sizeof(cookie)) < 0)
		_exit(0);
	int r = xsocket_make(cookie, fds);
	fd_send(control, &byte, 1, fds, r == 0 ? XSOCKET_FDS : 0);
	for (int i = 0; r == 0 && i < XSOCKET_FDS; i++)
		fd_close(fds[i]);
}

/*
 * A socket stays in the namespace that it was made in: the daemon connects these to servers of the
 * session, and they lead nowhere else.
 */
static void make_sockets(int control)
{
	char byte = JAIL_SOCKETS;
	int fds[2];
	size_t n = 0;
	static const int families[] = { AF_INET, AF_INET6 };
	for (size_t i = 0; i < 2; i++) {
		int fd = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd >= 0)
			fds[n++] = fd;
	}
	fd_send(control, &byte, 1, fds, n);
	for (size_t i = 0; i < n; i++)
		fd_close(fds[i]);
}

/*
 * What the daemon wishes most: everything else in here dies. SIGKILL to -1 spares the caller, and a
 * process with a pending SIGKILL cannot finish a fork, so one call is enough even against a fork
 * bomb.
 */
static void obey(int control, struct proc_files *files)
{
	struct jail_figures figures;
	char byte;
	int came[JAIL_FORWARD_FDS];
	size_t n = 0;

	if (fd_recv_or_drop(control, &byte, 1, came, JAIL_FORWARD_FDS, &n) != 1)
		_exit(0); /* the daemon is gone: the namespace dies with us */
	if (byte == JAIL_KEEP || byte == JAIL_FORWARD || byte == JAIL_DROP) {
		if (!kept_sockets_obey(control, byte, came, n))
			_exit(0);
	} else if (byte == JAIL_SWEEP) {
		kill(-1, SIGKILL);
		reap();
		ssize_t w = write(control, &byte, 1);
		(void)w;
	} else if (byte == JAIL_DISPLAY) {
		make_display(control);
	} else if (byte == JAIL_SOCKETS) {
		make_sockets(control);
	} else if (byte == JAIL_FIGURES) {
		if (fd_read_full(control, &figures, sizeof(figures)) < 0)
			_exit(0);
		proc_files_answered(files, &figures);
	}
}

static void take_signals(int sfd, struct proc_files *files)
{
	struct signalfd_siginfo si;
	while (read(sfd, &si, sizeof(si)) == sizeof(si))
		;
	reap();
	proc_files_opened(files);
}

static void __attribute__((noreturn)) serve(struct proc_files *files)
{
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGIO);
	int sfd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (filter_load(&own) < 0)
		_exit(1); /* and the jail with it: the daemon sees it die */
	proc_files_start(files);
	struct pollfd p[2] = { { .fd = files->control, .events = POLLIN },
		{ .fd = sfd, .events = POLLIN } };
	for (;;) {
		if (poll(p, 2, proc_files_wait_ms(files)) < 0)
			continue;
		if (p[1].revents)
			take_signals(sfd, files);
		if (p[0].revents)
			obey(files->control, files);
		proc_files_tick(files);
	}
}

/*
 * Nothing of the jailer's is left open: the control socket, the files of /proc, and /dev/null for
 * 0, 1, 2.
 */
static void keep_only(struct proc_files *files)
{
	enum { FIRST = 3, ASIDE = 64 }; /* the second is above whatever is open */
	dup2(files->control, ASIDE);
	for (int i = 0; i < FIGURES_FILES; i++)
		dup2(files->fds[i], ASIDE + 1 + i);
	files->control = dup2(ASIDE, FIRST);
	for (int i = 0; i < FIGURES_FILES; i++)
		files->fds[i] = dup2(ASIDE + 1 + i, FIRST + 1 + i);
	syscall(SYS_close_range, FIRST + 1U + FIGURES_FILES, ~0U, 0);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	fd_close(null);
}

static int open_namespaces(int *out)
{
	static const char *const names[JAIL_NAMESPACES] = { "user", "mnt", "net", "ipc", "uts",
		"pid" };
	for (int i = 0; i < JAIL_NAMESPACES; i++) {
		char path[32];
		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		if ((out[i] = open(path, O_RDONLY | O_CLOEXEC)) < 0)
			return -errno;
	}
	return 0;
}

/* [control, workspace] and what listens or the namespaces; returns how many. */
static size_t collect(const struct jail_request *q, const struct jail_network *n, int control,
	int workspace, int report, int *out)
{
	const char *step = "";
	int r = q->net == JAIL_NET_NONE ? 0 : net_up(&step);

	if (r == 0 && q->net == JAIL_NET_ALLOW)
		r = net_open(n, out + 2, &step);
	if (r < 0)
		fail(report, r, step);
	out[0] = control;
	out[1] = workspace;
	if (q->nested) {
		if ((r = open_namespaces(out + 2)) < 0)
			fail(report, r, "opening its namespaces");
		return 2 + JAIL_NAMESPACES;
	}

	return 2 + (q->net == JAIL_NET_ALLOW ? n->n_listen : 0);
}

/*
 * What the kernel counts per user it also counts for the owner of the user namespace: for a session
 * that is its own id on the host, or whoever started us. A session gets a part of that, so that it
 * leaves the others theirs.
 */
static int limit_watches(void)
{
	static const struct {
		const char *path, *most;
	} limits[] = { { "/proc/sys/user/max_inotify_instances", JAIL_INOTIFY_INSTANCES },
		{ "/proc/sys/user/max_inotify_watches", JAIL_INOTIFY_WATCHES } };
	for (int i = 0; i < 2; i++) {
		int fd = open(limits[i].path, O_WRONLY | O_CLOEXEC);
		ssize_t w = fd < 0 ? -1 : write(fd, limits[i].most, strlen(limits[i].most));
		int err = errno;
		fd_close(fd);
		if (w < 0)
			return -err;
	}
	return 0;
}

void init_run(int go, int report, const struct jail_request *q, const struct jail_network *n)
{
	char byte;
	const char *step = "";
	int control[2], out[3 + JAIL_LISTEN_MAX], unhidden = -1, r;
	struct proc_files files = { 0 };

	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (read(go, &byte, 1) != 1)
		_exit(1);
	if ((r = limit_watches()) < 0)
		fail(report, r, "limiting inotify");
	/*
	 * With the map written: without this, files made below would belong to nobody (EOVERFLOW).
	 */
	if ((r = privileges_become(JAIL_INNER_ID, &step)) < 0)
		fail(report, r, step);
	/*
	 * The change of ids has set it to fs.suid_dumpable. Guests, and code of an outer jail, have
	 * the same uid: no peeking into, or tracing of, the process that holds their jail.
	 */
	prctl(PR_SET_DUMPABLE, 0);
	if ((r = tree_add_private(q->disk_bytes, q->inodes ? q->inodes : JAIL_INODES,
		     q->exec != JAIL_EXEC_ANY, &step)) < 0)
		fail(report, r, step);
	if (q->watched && (r = proc_files_open_unhidden(&unhidden, &step)) < 0)
		fail(report, r, step);
	if ((r = mounts_add(&q->mounts, &step)) < 0)
		fail(report, r, step);
	if ((r = proc_files_mount(files.fds, &step)) < 0)
		fail(report, r, step);
	if (sethostname("sandbox", strlen("sandbox")) < 0)
		fail(report, -errno, "naming the host");
	int workspace = open("/workspace", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (workspace < 0)
		fail(report, -errno, "opening /workspace");
	if ((r = fd_socketpair(SOCK_STREAM, control)) < 0)
		fail(report, r, "making the init's socket");
	size_t n_out = collect(q, n, control[1], workspace, report, out);
	if (q->watched)
		out[n_out++] = unhidden;
	prctl(PR_SET_NAME, "glovebox-init");
	if ((r = privileges_drop(&step)) < 0)
		fail(report, r, step);
	/*
	 * The daemon is our parent (CLONE_PARENT): nothing of a session survives it. After the
	 * change of ids, which clears it.
	 */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct init_report ok = { .err = 0 };
	if (fd_send(report, &ok, sizeof(ok), out, n_out) < 0)
		_exit(1);
	files.control = control[0];
	keep_only(&files);
	serve(&files);
}
