/*
 * One WebSocket of the OpenEnv dialect: what its files share (openenv_socket.c the connection,
 * openenv_messages.c what is said, openenv_history.c the part of it that goes back and branches).
 */
#pragma once

#include <sys/queue.h>

#include "api/outbox.h"
#include "dialects/openenv/openenv.h"

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

/* A message being answered. */
struct message {
	json_t *tree;
	char *id; /* JSON text or NULL */
};

/* Writing answers: {"type":…,"data": and what follows; the end of it, and off it goes. */
void message_begin(struct json_writer *w, struct buffer *b, const char *type);
void message_finish(struct env_socket *s, struct json_writer *w, struct buffer *b, const char *id);
void message_send_error(
	struct env_socket *s, const struct message *m, const char *message, const char *code);
void message_send_errors(struct env_socket *s, const struct message *m, const struct pydantic *p);
/* what the session said */
void message_send_failure(struct env_socket *s, const struct message *m, const struct error *e);

/* Reads the message's own members; false when they were wrong, which has been answered. */
bool message_check(struct env_socket *s, const struct message *m, const char *const *known,
	bool needs_data, json_t **ret_data);

/* openenv_history.c */
void openenv_checkpoint(struct env_socket *s, const struct message *m);
void openenv_checkpoints(struct env_socket *s, const struct message *m);
void openenv_rollback(struct env_socket *s, const struct message *m);
void openenv_undo(struct env_socket *s, const struct message *m);
void openenv_fork(struct env_socket *s, const struct message *m);

/* Answers one message. The env may be gone after. */
void env_socket_handle(struct env_socket *s, const char *text, size_t len);

/* Why the connection gets no environment; the caller hangs up. */
void env_socket_refuse(struct env_socket *s, const struct error *e);
