/*
 * glovebox-xserver.so, loaded into an unmodified Xvfb (LD_PRELOAD): turns it into a process from
 * which X servers are forked.
 *
 * A server that has read its fonts, keyboard and drivers waits in epoll_wait() for its first
 * client. That call is ours: it waits for requests of the daemon instead, and each makes a copy of
 * the whole server, which enters a jail, gets a listening socket, a cookie and a set of events of
 * its own, and returns from the call as if nothing had happened. Forking takes about a millisecond
 * where starting takes fifty, and pages that nobody draws on stay shared.
 *
 * It relies on Xvfb having one thread, waiting with epoll, and taking its listening socket from
 * LISTEN_FDS; the daemon tries it once at start and falls back to plain servers where that does not
 * hold.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fds.h"
#include "display/xserver/display_filters.h"
#include "display/xserver/display_fork.h"
#include "display/xserver/xzygote.h"

enum {
	TRACKED_FDS = 64, /* before the first client there are about ten */
	/* a pixmap beyond it is a BadAlloc of its client, before it is the session's end */
	SERVER_DATA_BYTES = 1 << 30,
};

static struct {
	bool used;
	int set;
	struct epoll_event event;
} tracked[TRACKED_FDS];

static int (*real_ctl)(int, int, int, struct epoll_event *);
static int (*real_wait)(int, struct epoll_event *, int, int);
static bool zygote; /* until this process is a server */
static struct filter filter;
static char lock_file[32];

/* The programs that Xvfb starts (xkbcomp) must not meet us. */
static void __attribute__((constructor)) prepare(void)
{
	real_ctl = (int (*)(int, int, int, struct epoll_event *))dlsym(RTLD_NEXT, "epoll_ctl");
	real_wait = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
	zygote = getenv("LD_PRELOAD") && getenv(XZYGOTE_VARIABLE);
	unsetenv("LD_PRELOAD");
	if (zygote)
		snprintf(
			lock_file, sizeof(lock_file), "/tmp/.X%.8s-lock", getenv(XZYGOTE_VARIABLE));
	unsetenv(XZYGOTE_VARIABLE);
	if (zygote) {
		char pid[16];
		snprintf(pid, sizeof(pid), "%d", getpid());
		setenv("LISTEN_PID", pid, 1); /* who starts us cannot know it */
		/* a place that nothing else takes, for the cookie of each server */
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (null >= 0 && null != XZYGOTE_COOKIE_FD) {
			dup2(null, XZYGOTE_COOKIE_FD);
			close(null);
		}
	}
}

static void track(int set, int op, int fd, const struct epoll_event *event)
{
	if (fd < 0 || fd >= TRACKED_FDS)
		return;
	tracked[fd].used = op != EPOLL_CTL_DEL && event;
	tracked[fd].set = set;
	if (tracked[fd].used)
		tracked[fd].event = *event;
}

int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	if (zygote)
		track(set, op, fd, event);
	return real_ctl(set, op, fd, event);
}

/*
 * A set belongs to the open file, not to the process: without one of its own, the copy would wait
 * on its parent's descriptors.
 */
static int renew_set(int set)
{
	int fresh = epoll_create1(EPOLL_CLOEXEC);
	if (fresh < 0 || dup3(fresh, set, O_CLOEXEC) < 0)
		return -errno;
	close(fresh);
	for (int fd = 0; fd < TRACKED_FDS; fd++)
		if (tracked[fd].used && tracked[fd].set == set &&
			real_ctl(set, EPOLL_CTL_ADD, fd, &tracked[fd].event) < 0 && errno != EBADF)
			return -errno;
	return 0;
}

/* A session must not be able to fill the log of the daemon. */
static void silence(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	fd_close(null);
}

/* The copy, already inside its jail, becomes the session's server. */
static void become_server(int set, const int *fds, size_t n)
{
	struct rlimit data = { SERVER_DATA_BYTES, SERVER_DATA_BYTES };
	zygote = false;
	silence();
	prctl(PR_SET_NAME, "Xvfb");
	setrlimit(RLIMIT_DATA, &data);
	/*
	 * Descriptor 3 is where LISTEN_FDS begins: the zygote's own socket stood there for the one
	 * that comes now.
	 */
	if (dup2(fds[1], XZYGOTE_LISTEN_FD) < 0 || dup2(fds[2], XZYGOTE_COOKIE_FD) < 0 ||
		renew_set(set) < 0)
		_exit(1);
	for (size_t i = 0; i < n; i++)
		fd_close(fds[i]);
	if (filter_load(&filter) < 0)
		_exit(1);
}

/* Serves until the daemon hangs up. Returns in the copies only. */
static void serve(int set)
{
	struct display_spawn q;
	struct display_spawned a;
	int fds[DISPLAY_SPAWN_FDS_MAX];
	size_t n;
	ssize_t got;

	while ((got = fd_recv(DISPLAY_HELPER_SOCKET, &q, sizeof(q), fds, DISPLAY_SPAWN_FDS_MAX,
			&n)) > 0) {
		const char *step = "the request";
		int pidfd = -1;
		pid_t pid = -EINVAL;
		if (got == (ssize_t)sizeof(q) && n >= DISPLAY_SPAWN_FDS + q.into)
			pid = display_fork(&q, fds, n, &pidfd, &step);
		if (pid == 0) {
			become_server(set, fds, n);
			return;
		}
		a = (struct display_spawned){ .serial = q.serial,
			.err = pid < 0 ? pid : 0,
			.pid = pid,
			.process = DISPLAY_SERVER };
		strncpy(a.text, step, sizeof(a.text) - 1);
		fd_send(DISPLAY_HELPER_SOCKET, &a, sizeof(a), &pidfd, pid > 0 ? 1 : 0);
		fd_close(pidfd);
		for (size_t i = 0; i < n; i++)
			fd_close(fds[i]);
	}

	_exit(0);
}

static void begin_serving(int set)
{
	struct display_spawned hello = { .process = DISPLAY_SERVER };
	hello.err = display_filter_build(DISPLAY_SERVER, false, &filter);
	if (hello.err == 0)
		hello.err = display_join_jailer();
	strncpy(hello.text, "preparing the X zygote", sizeof(hello.text) - 1);
	unlink(lock_file); /* nobody else will want this number, and we end without a word */
	prctl(PR_SET_DUMPABLE, 0); /* what all servers are copied from */
	fd_send(DISPLAY_HELPER_SOCKET, &hello, sizeof(hello), NULL, 0);
	if (hello.err)
		_exit(1);
	serve(set);
}

int epoll_wait(int set, struct epoll_event *events, int max, int timeout)
{
	if (zygote)
		begin_serving(set);
	return real_wait(set, events, max, timeout);
}
