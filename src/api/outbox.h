/*
 * Messages on their way to a client that may read slowly: sent at once while it keeps up, kept in
 * order while it does not.
 *
 * The target is an event stream or a WebSocket; `send` returns as http_stream_write(): 0, 1 (wait
 * until drained) or an error, after which nothing is sent any more (the target's own callback tells
 * of the end).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/buffer.h"
#include "base/memory_account.h"

struct outbox_message;

struct outbox {
	int (*send)(void *target, const char *data, size_t len);
	void *target;
	/* private */
	STAILQ_HEAD(, outbox_message) messages;
	size_t bytes;
	struct hold held;
	bool full; /* wait for outbox_drained() */
	bool dead;
};

void outbox_init(
	struct outbox *o, int (*send)(void *target, const char *data, size_t len), void *target);
void outbox_finish(struct outbox *o);

/*
 * Sends the buffer's content or keeps it (the buffer is empty after). -ENOBUFS: more than
 * LIMIT_OUTBOX_BYTES would wait, or more than the daemon keeps for everybody, and the message is
 * dropped; -ENOMEM; -EPIPE when the target is lost.
 */
int outbox_send(struct outbox *o, struct buffer *message);

/* The target can take more. */
void outbox_drained(struct outbox *o);

bool outbox_empty(const struct outbox *o);
