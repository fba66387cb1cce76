/*
 * A cell's events on their way to a client, as server-sent events or as WebSocket messages: session
 * (a death before the cell), started, stdout, stderr, display, done. Both carry the same JSON; a
 * WebSocket's also has the id of the request.
 *
 * Output arrives in arbitrary pieces; a character that is cut between two is held back until it is
 * whole, so the texts of a stream put together are exactly its text.
 */
#pragma once

#include "api/outbox.h"
#include "base/buffer.h"
#include "session/session.h"

struct events {
	struct outbox *out; /* not owned */
	const char *
		id; /* JSON text of the request's id for a WebSocket (not owned), NULL for server-sent
			       events */
	/* private */
	unsigned cell;
	struct buffer held[2]; /* the start of a character, per stream */
};

void events_init(struct events *ev, struct outbox *out, const char *id);
void events_finish(struct events *ev);

/* The interpreter died since the cell before: a `session` event. */
void events_died(struct events *ev, const char *session, const struct session_death *d);

void events_started(struct events *ev, const char *session, unsigned cell);
void events_output(struct events *ev, enum stream stream, const char *data, size_t len);
void events_display(struct events *ev, const struct bundle *b);

/* Sends what was held back: the start of a character that nothing completed. */
void events_flush(struct events *ev);

/*
 * The same, then the observation as a message of a WebSocket; without its output when there is no
 * memory for that. Returns as outbox_send().
 */
int events_done(struct events *ev, const struct observation *o);
