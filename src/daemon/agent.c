#include "daemon/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/log.h"
#include "http/http_address.h"

enum {
	BACKLOG = 64,
	TURN = 32,       /* connections answered before others get their turn */
	PAUSE_MS = 1000, /* without descriptors */
};

struct agent {
	struct agent_config config;
	uv_poll_t listener;
	uv_timer_t pause;
	int fd;
	unsigned handles;
};

static void answer(struct agent *a, int fd)
{
	char line[32];
	int room = a->config.room(a->config.userdata);
	int n = room < 0 ? snprintf(line, sizeof(line), "drain\n")
			 : snprintf(line, sizeof(line), "ready %d%%\n", room < 1 ? 1 : room);

	/* The line fits into the empty buffer of a new socket. */
	(void)!send(fd, line, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static void on_connection(uv_poll_t *handle, int status, int events);

static void on_pause_over(uv_timer_t *timer)
{
	struct agent *a = timer->data;
	uv_poll_start(&a->listener, UV_READABLE, on_connection);
}

static void on_connection(uv_poll_t *handle, int status, int events)
{
	struct agent *a = handle->data;
	(void)status;
	(void)events;
	for (int i = 0; i < TURN; i++) {
		int fd = accept4(a->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			answer(a, fd);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		/* Without descriptors the waiting connection would keep the loop awake. */
		if (errno != EAGAIN) {
			uv_poll_stop(handle);
			uv_timer_start(&a->pause, on_pause_over, PAUSE_MS, 0);
		}
		return;
	}
}

static int bind_and_listen(int fd, const struct sockaddr *sa, socklen_t len, void *userdata)
{
	int on = 1;
	(void)userdata;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, sa, len) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return fd_set_nonblock(fd, 1);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct agent *a = handle->data;
	if (--a->handles)
		return;
	close(a->fd);
	free(a);
}

void agent_destroy(struct agent *a)
{
	if (!a)
		return;
	uv_close((uv_handle_t *)&a->listener, on_handle_closed);
	uv_close((uv_handle_t *)&a->pause, on_handle_closed);
}

static int listen_at(const char *text, struct error *e, int *ret_fd)
{
	struct http_address address = { 0 };
	int r = http_address_parse(text, e, &address);

	if (r == 0 && address.is_unix)
		r = error_set(e, -EINVAL, "an agent listens on HOST:PORT, not on a socket file");
	if (r == 0)
		r = http_address_each(&address, true, bind_and_listen, NULL, e, ret_fd);
	return r < 0 ? error_wrap(e, "agent-listen") : 0;
}

int agent_create(const struct agent_config *config, struct error *e, struct agent **ret)
{
	struct agent *a = calloc(1, sizeof(*a));
	if (!a)
		return error_set(e, -ENOMEM, "out of memory");

	a->config = *config;
	int r = listen_at(config->listen, e, &a->fd);
	if (r == 0 && uv_poll_init(config->loop, &a->listener, a->fd) < 0) {
		close(a->fd);
		r = error_set(e, -EIO, "agent-listen: the event loop does not take the socket");
	}
	if (r < 0) {
		free(a);
		return r;
	}

	uv_timer_init(config->loop, &a->pause);
	a->listener.data = a->pause.data = a;
	a->handles = 2;
	uv_poll_start(&a->listener, UV_READABLE, on_connection);
	log_info("routers can ask at %s for the share of sessions that are free", config->listen);
	*ret = a;
	return 0;
}
