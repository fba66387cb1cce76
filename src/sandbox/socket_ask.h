/*
 * Sockets in the network namespace of a sandbox, for connections from the daemon to servers of the
 * session. The jail's init makes them, unconnected; a socket stays in its namespace whichever
 * process holds it, so it can connect only to the session's own loopback.
 */
#pragma once

#include <stddef.h>
#include <sys/queue.h>

enum { SOCKET_ASK_FDS = 2 };

struct sandbox;

/* Owned by the caller until on_sockets was called, or socket_ask_cancel(). */
struct socket_ask {
	TAILQ_ENTRY(socket_ask) link;
	struct sandbox *sandbox;
	/*
	 * TCP sockets, non-blocking: IPv4, then IPv6; -1 for what there is not. Those taken are set
	 * to -1, the others are closed after the call. Called once, never from
	 * sandbox_ask_sockets().
	 */
	void (*on_sockets)(struct socket_ask *a, int fds[SOCKET_ASK_FDS]);
};

/* -EPIPE: the sandbox has no jail now, or its init does not accept the request. -ENOMEM. */
int sandbox_ask_sockets(struct sandbox *b, struct socket_ask *a);
void socket_ask_cancel(struct socket_ask *a); /* idempotent */

/* ---- of the sandbox layer ---- */
void socket_asks_answered(struct sandbox *b, int *fds, size_t n);
void socket_asks_end(struct sandbox *b); /* it closes: there will be no answers */
