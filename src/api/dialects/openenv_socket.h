/* One WebSocket of the OpenEnv dialect: what its two files share (openenv_socket.c the connection,
 * openenv_messages.c what is said). */
#pragma once

#include <sys/queue.h>

#include "api/dialects/openenv.h"
#include "api/outbox.h"

struct waiting;

struct env_socket {
	struct openenv *home;
	struct http_ws *ws;
	struct env *env; /* NULL when it lost it */
	struct outbox out;
	bool extras, stream, leaving;
	STAILQ_HEAD(, waiting) waiting;
	unsigned n_waiting;
	size_t waiting_bytes;
	TAILQ_ENTRY(env_socket) link;
};

/* Answers one message. The env may be gone after. */
void env_socket_handle(struct env_socket *s, const char *text, size_t len);

/* Why the connection gets no environment; the caller hangs up. */
void env_socket_refuse(struct env_socket *s, const struct error *e);
