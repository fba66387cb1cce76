#include "base/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/process.h"

/*
 * A request: this, then the path, the arguments and the variables as NUL-ended strings; brings the
 * descriptors.
 */
struct launch {
	uint32_t n_argv, n_envp;
};
/* The answer; brings the pidfd unless there is no process at all (pid 0). */
struct launched {
	int32_t err, pid;
};

/* The second one is there to start the first again. */
enum { LAUNCHERS = 2 };
static struct launcher {
	int channel, pidfd;
} launchers[LAUNCHERS] = { { -1, -1 }, { -1, -1 } };

bool launcher_running(void)
{
	return launchers[0].channel >= 0 || launchers[1].channel >= 0;
}

static int start_one(struct launcher *l)
{
	int pair[2];
	int r = fd_socketpair(SOCK_SEQPACKET, pair);

	if (r < 0)
		return r;
	_cleanup_fd_ int near = pair[0], far = pair[1],
			 null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0)
		return -errno;
	int fds[] = { null, STDERR_FILENO, STDERR_FILENO, far };
	char *argv[] = { (char *)"glovebox", (char *)"launcher", NULL }, *envp[] = { NULL };
	int pidfd = process_spawn("/proc/self/exe", argv, envp, fds, 4, NULL);
	if (pidfd < 0)
		return pidfd;
	*l = (struct launcher){ .channel = TAKE_FD(near), .pidfd = pidfd };
	return 0;
}

int launcher_start(void)
{
	int r = 0;
	for (int i = 0; r == 0 && i < LAUNCHERS; i++)
		r = start_one(&launchers[i]);
	return r;
}

void launcher_stop(void)
{
	for (int i = 0; i < LAUNCHERS; i++) {
		struct launcher *l = &launchers[i];
		fd_close_clear(&l->channel);
		if (l->pidfd >= 0)
			process_kill_wait(l->pidfd);
		fd_close_clear(&l->pidfd);
	}
}

int launcher_mend(void)
{
	struct process_exit end;
	int mended = 0, r = 0;

	for (int i = 0; i < LAUNCHERS; i++) {
		struct launcher *l = &launchers[i];
		if (l->pidfd >= 0 && process_reap(l->pidfd, &end) == 0)
			continue;
		fd_close_clear(&l->channel);
		fd_close_clear(&l->pidfd);
		mended++;
	}

	for (int i = 0; mended && r == 0 && i < LAUNCHERS; i++)
		if (launchers[i].pidfd < 0)
			r = launcher_running() ? start_one(&launchers[i]) : -EPIPE;
	return r < 0 ? r : mended;
}

/* ---- the daemon's end ----------------------------------------------------------------- */

static int put_strings(struct buffer *b, char *const strings[], uint32_t *ret_n)
{
	uint32_t n = 0;
	for (; strings[n]; n++) {
		int r = n < LAUNCHER_STRINGS_MAX
				? buffer_append(b, strings[n], strlen(strings[n]) + 1)
				: -E2BIG;
		if (r < 0)
			return r;
	}
	*ret_n = n;
	return 0;
}

int launcher_spawn(const char *path, char *const argv[], char *const envp[], const int *fds,
	size_t n_fds, pid_t *ret_pid, int *ret_err)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(LAUNCHER_MESSAGE_MAX);
	struct launch head = { 0 };
	struct launched said;
	int pidfd = -1;

	if (n_fds > SPAWN_FDS_MAX)
		return -E2BIG;
	int r = buffer_append(&b, &head, sizeof(head));
	if (r == 0)
		r = buffer_append(&b, path, strlen(path) + 1);
	if (r == 0)
		r = put_strings(&b, argv, &head.n_argv);
	if (r == 0)
		r = put_strings(&b, envp, &head.n_envp);
	if (r < 0)
		return r == -ENOBUFS ? -E2BIG : r;
	memcpy(b.data, &head, sizeof(head));
	/* One that takes no message has started nothing, so the other may be asked. */
	const struct launcher *l = &launchers[0];
	r = l->channel < 0 ? -EPIPE : fd_send(l->channel, b.data, b.len, fds, n_fds);
	if (r == -EPIPE || r == -ECONNRESET) {
		l = &launchers[1];
		r = l->channel < 0 ? -EPIPE : fd_send(l->channel, b.data, b.len, fds, n_fds);
	}

	if (r < 0)
		return r;
	ssize_t n = fd_recv(l->channel, &said, sizeof(said), &pidfd, 1, NULL);
	if (n != (ssize_t)sizeof(said))
		return n < 0 ? (int)n : -EPIPE;
	if (pidfd < 0)
		return said.err < 0 ? said.err : -EIO;
	*ret_pid = said.pid;
	*ret_err = said.err;
	return pidfd;
}

void launcher_discard(int fd)
{
	char byte = 0;
	if (fd < 0)
		return;
	if (launchers[1].channel >= 0)
		/* when it does not take it, we do it after all */
		fd_send_now(launchers[1].channel, &byte, sizeof(byte), &fd, 1);
	fd_close(fd);
}

void launcher_discard_socket(int fd)
{
	int unread = 0;
	if (fd >= 0 && ioctl(fd, FIONREAD, &unread) == 0 && unread == 0)
		fd_close(fd);
	else
		launcher_discard(fd);
}

/* ---- the launcher's end ---------------------------------------------------------------- */

/* Points `list` at the next n strings; false when there are not so many. */
static bool take_strings(char **at, const char *end, uint32_t n, char **list)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t len = *at < end ? strnlen(*at, (size_t)(end - *at)) : 0;
		if (*at >= end || *at + len == end)
			return false;
		list[i] = *at;
		*at += len + 1;
	}
	list[n] = NULL;
	return true;
}

static void serve_one(char *message, size_t len, const int *fds, size_t n_fds)
{
	static char *path[2], *argv[LAUNCHER_STRINGS_MAX + 1], *envp[LAUNCHER_STRINGS_MAX + 1];
	struct launch head;
	struct launched answer = { .err = -EINVAL };
	char *at = message + sizeof(head), *end = message + len;
	int pidfd = -1;

	memcpy(&head, message, sizeof(head));
	if (head.n_argv <= LAUNCHER_STRINGS_MAX && head.n_envp <= LAUNCHER_STRINGS_MAX &&
		take_strings(&at, end, 1, path) && take_strings(&at, end, head.n_argv, argv) &&
		take_strings(&at, end, head.n_envp, envp)) {
		pid_t pid = 0;
		int err = 0;
		pidfd = process_spawn_here(path[0], argv, envp, fds, n_fds, true, &pid, &err);
		answer = (struct launched){ .err = pidfd < 0 ? pidfd : err, .pid = pid };
	}

	fd_send(LAUNCHER_SOCKET_FD, &answer, sizeof(answer), &pidfd, pidfd >= 0 ? 1 : 0);
	fd_close(pidfd);
}

int launcher_main(void)
{
	static char message[LAUNCHER_MESSAGE_MAX];
	int fds[SPAWN_FDS_MAX];
	size_t n_fds;

	prctl(PR_SET_NAME, "glovebox-launch");
	prctl(PR_SET_DUMPABLE, 0);
	fd_set_cloexec(LAUNCHER_SOCKET_FD, 1);
	for (;;) {
		ssize_t n = fd_recv(
			LAUNCHER_SOCKET_FD, message, sizeof(message), fds, SPAWN_FDS_MAX, &n_fds);
		if (n <= 0)
			return 0;
		if (n >= (ssize_t)sizeof(struct launch))
			/* else it is about the descriptors alone */
			serve_one(message, (size_t)n, fds, n_fds);
		for (size_t i = 0; i < n_fds; i++)
			fd_close(fds[i]);
	}
}
