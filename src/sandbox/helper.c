#include "sandbox/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"

static void poll_closed(uv_handle_t *handle)
{
	struct helper *h = handle->data;
	if (--h->open_polls)
		return;
	fd_close_clear(&h->socket);
	fd_close_clear(&h->pidfd);
	h->running = h->closing = false;
	h->on_closed(h);
}

static void on_socket(uv_poll_t *p, int status, int events)
{
	struct helper *h = p->data;
	(void)status, (void)events;
	for (int turn = 0; turn < 64 && !h->closing; turn++) {
		char data[HELPER_MESSAGE_MAX];
		int fds[HELPER_FDS_MAX];
		size_t n_fds = 0;
		ssize_t n = fd_recv_or_drop(
			h->socket, data, sizeof(data), fds, HELPER_FDS_MAX, &n_fds);
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			uv_poll_stop(p); /* the exit follows */
			return;
		}
		h->on_message(h, data, (size_t)n, fds, n_fds);
		for (size_t i = 0; i < n_fds; i++)
			fd_close(fds[i]);
	}
}

static void on_exited(uv_poll_t *p, int status, int events)
{
	struct helper *h = p->data;
	struct process_exit end;

	(void)status, (void)events;
	if (process_reap(h->pidfd, &end) == 0)
		return;

	uv_poll_stop(p);
	if (h->closing)
		uv_close((uv_handle_t *)&h->exit_poll, poll_closed);
	else {
		h->running = false;
		h->on_exit(h);
	}
}

static int watch(struct helper *h, uv_loop_t *loop)
{
	int r = uv_poll_init(loop, &h->socket_poll, h->socket);
	if (r == 0)
		r = uv_poll_init(loop, &h->exit_poll, h->pidfd);
	if (r < 0)
		return r;

	h->socket_poll.data = h->exit_poll.data = h;
	h->open_polls = 2;
	uv_poll_start(&h->socket_poll, UV_READABLE, on_socket);
	uv_poll_start(&h->exit_poll, UV_READABLE, on_exited);
	return 0;
}

int helper_start(struct helper *h, uv_loop_t *loop, const char *path, char *const argv[],
	char *const envp[], const int extra[HELPER_EXTRA])
{
	int pair[2];
	int r = fd_socketpair(SOCK_SEQPACKET, pair);

	if (r < 0)
		return r;

	_cleanup_fd_ int near = pair[0], far = pair[1],
			 null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int out = h->silent ? null : STDERR_FILENO;
	int fds[4 + HELPER_EXTRA] = { null, out, out, far };
	size_t n = 4;
	if (null < 0)
		return -errno;

	while (n < 4 + HELPER_EXTRA && extra[n - 4] >= 0) {
		fds[n] = extra[n - 4];
		n++;
	}

	int pidfd = process_spawn(path, argv, envp, fds, n, NULL);
	if (pidfd < 0)
		return pidfd;

	fd_set_nonblock(near, 1);
	h->socket = TAKE_FD(near);
	h->pidfd = pidfd;
	h->running = true;
	h->closing = false;
	return watch(h, loop);
}

int helper_send(struct helper *h, const void *data, size_t len, const int *fds, size_t n_fds)
{
	return h->running ? fd_send(h->socket, data, len, fds, n_fds) : -ENOTCONN;
}

void helper_close(struct helper *h)
{
	if (h->closing || !h->open_polls)
		return;

	h->closing = true;
	uv_close((uv_handle_t *)&h->socket_poll, poll_closed);
	if (!h->running) { /* already reaped */
		uv_close((uv_handle_t *)&h->exit_poll, poll_closed);
		return;
	}

	h->running = false;
	process_signal(h->pidfd, SIGKILL);
}
