#include "sandbox/socket_ask.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "sandbox/sandbox.h"

static struct socket_ask *take_first(struct sandbox *b)
{
	struct socket_ask *a = TAILQ_FIRST(&b->socket_asks);
	if (a) {
		TAILQ_REMOVE(&b->socket_asks, a, link);
		a->sandbox = NULL;
	}
	return a;
}

int sandbox_ask_sockets(struct sandbox *b, struct socket_ask *a)
{
	const char order = JAIL_SOCKETS;
	if (b->state == SANDBOX_CLOSED)
		return -EPIPE;
	int r = sandbox_tell_init(b, &order, 1, NULL, 0);
	if (r < 0)
		return -EPIPE;

	a->sandbox = b;
	TAILQ_INSERT_TAIL(&b->socket_asks, a, link);
	return 0;
}

/*
 * The answers are alike: one that nobody waits for any more serves the next, and the last of them
 * is closed.
 */
void socket_ask_cancel(struct socket_ask *a)
{
	if (!a->sandbox)
		return;
	TAILQ_REMOVE(&a->sandbox->socket_asks, a, link);
	a->sandbox = NULL;
}

/* By family: an init without IPv6 sends one. */
static void sort_fds(const int *fds, size_t n, int ret[SOCKET_ASK_FDS])
{
	for (size_t i = 0; i < n; i++) {
		int family = 0;
		socklen_t len = sizeof(family);
		if (getsockopt(fds[i], SOL_SOCKET, SO_DOMAIN, &family, &len) < 0)
			family = 0;
		int *place = family == AF_INET ? &ret[0] : family == AF_INET6 ? &ret[1] : NULL;
		if (place && *place < 0)
			*place = fds[i];
		else
			fd_close(fds[i]);
	}
}

void socket_asks_answered(struct sandbox *b, int *fds, size_t n)
{
	int sorted[SOCKET_ASK_FDS] = { -1, -1 };
	struct socket_ask *a = take_first(b);
	sort_fds(fds, n, sorted);
	if (a)
		a->on_sockets(a, sorted);
	for (int i = 0; i < SOCKET_ASK_FDS; i++)
		fd_close(sorted[i]);
}

void socket_asks_end(struct sandbox *b)
{
	struct socket_ask *a;
	while ((a = take_first(b))) {
		int none[SOCKET_ASK_FDS] = { -1, -1 };
		a->on_sockets(a, none);
	}
}
