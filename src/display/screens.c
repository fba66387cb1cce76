#include "display/screens.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fds.h"
#include "display/filters.h"
#include "display/fork.h"
#include "display/screen.h"
#include "display/xzygote.h"

static struct filter screen_filter, plain_filter;

static void put_on(int fd, int place)
{
	if (dup2(fd, place) < 0)
		_exit(1);
}

static void silence(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
}

/* Moves the two descriptors to 3 and 5, in whatever order they came, and closes all others. */
static void keep_two(int a, int b)
{
	a = fcntl(a, F_DUPFD, 16);
	b = fcntl(b, F_DUPFD, 16);
	if (a < 0 || b < 0)
		_exit(1);
	silence();
	put_on(a, XZYGOTE_LISTEN_FD);
	put_on(b, XZYGOTE_COOKIE_FD);
	close(4);
	syscall(SYS_close_range, XZYGOTE_COOKIE_FD + 1U, ~0U, 0);
}

/* Where the zygote cannot be used: Xvfb started as a program of the jail. Slower and larger. */
static void __attribute__((noreturn)) become_plain_server(const struct display_spawn *q, const int *fds)
{
	char screen[48], dpi[16], pid[32];
	keep_two(fds[1], fds[2]);
	snprintf(screen, sizeof(screen), "%ux%ux%u", q->width, q->height, q->depth);
	snprintf(dpi, sizeof(dpi), "%u", q->dpi);
	snprintf(pid, sizeof(pid), "LISTEN_PID=%d", getpid());
	const char *argv[] = { "Xvfb", XSOCKET_DISPLAY, "-screen", "0", screen, "-dpi", dpi, XZYGOTE_ARGUMENTS, NULL };
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", (char *)"LISTEN_FDS=1", pid, NULL };
	unlink("/tmp/.X0-lock"); /* of a server that was killed */
	if (filter_load(&plain_filter) < 0)
		_exit(1);
	execve(XZYGOTE_PROGRAM, (char **)argv, envp);
	_exit(127);
}

static void __attribute__((noreturn)) become_screen(const struct display_spawn *q, const int *fds)
{
	keep_two(fds[1], fds[2]);
	prctl(PR_SET_NAME, "glovebox-screen");
	prctl(PR_SET_DUMPABLE, 0); /* the session's code has the same user: no peeking */
	if (filter_load(&screen_filter) < 0)
		_exit(1);
	_exit(screen_run(XZYGOTE_LISTEN_FD, XZYGOTE_COOKIE_FD, q->cookie));
}

static void serve_one(const struct display_spawn *q, int *fds, size_t n)
{
	struct display_spawned a = { .serial = q->serial, .process = q->process };
	const char *step = "the request";
	int pidfd = -1;
	pid_t pid = n >= DISPLAY_SPAWN_FDS + q->into ? display_fork(q, fds, n, &pidfd, &step) : -EINVAL;
	if (pid == 0 && q->process == DISPLAY_SCREEN)
		become_screen(q, fds);
	if (pid == 0)
		become_plain_server(q, fds);
	a.err = pid < 0 ? pid : 0;
	a.pid = pid;
	strncpy(a.text, step, sizeof(a.text) - 1);
	fd_send(DISPLAY_HELPER_SOCKET, &a, sizeof(a), &pidfd, pid > 0 ? 1 : 0);
	fd_close(pidfd);
}

int screens_main(void)
{
	struct display_spawned hello = { .process = DISPLAY_SCREEN };
	struct display_spawn q;
	int fds[DISPLAY_SPAWN_FDS_MAX];
	size_t n;
	prctl(PR_SET_NAME, "glovebox-screens");
	hello.err = display_filter_build(DISPLAY_SCREEN, false, &screen_filter);
	if (hello.err == 0)
		hello.err = display_filter_build(DISPLAY_SERVER, true, &plain_filter);
	if (hello.err == 0)
		hello.err = display_join_jailer();
	strncpy(hello.text, "preparing the display helper", sizeof(hello.text) - 1);
	screen_prepare();
	if (fd_send(DISPLAY_HELPER_SOCKET, &hello, sizeof(hello), NULL, 0) < 0 || hello.err)
		return 1;
	while (fd_recv(DISPLAY_HELPER_SOCKET, &q, sizeof(q), fds, DISPLAY_SPAWN_FDS_MAX, &n) == (ssize_t)sizeof(q)) {
		serve_one(&q, fds, n);
		for (size_t i = 0; i < n; i++)
			fd_close(fds[i]);
	}
	return 0;
}
