/*
 * The server's events, for everybody who follows them: GET /v1/events.
 *
 * The hub keeps the latest events (LIMIT_HUB_EVENTS, LIMIT_HUB_BYTES) so that a client that comes
 * back goes on where it was. Every follower has a place in that list and is sent what comes after
 * it as fast as it reads; one that is too slow to keep up loses the oldest and is told so (`lost`).
 * Nothing is queued for a follower beside the connection's own buffer.
 *
 * A follower sees the events of sessions of its own token only. Each token has a list and numbers
 * of its own; beyond the limits the token that keeps the most loses its oldest event.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "session/cells/session_cells.h"

struct api;
struct call;
struct event_hub;

int event_hub_create(struct api *a, uv_loop_t *loop, struct event_hub **ret);
void event_hub_destroy(struct event_hub *h); /* NULL is fine; all followers are gone */
void event_hub_drain(struct event_hub *h);   /* ends all streams: the server is about to end */

/* Which events a follower wants. */
struct event_filter {
	uint64_t owner;
	const char *session; /* of this one alone; NULL: of all */
	bool quiet;          /* without output and displays */
	uint64_t until_ns;   /* nothing after this moment; 0: for ever */
	const char *after;   /* id of the last event it has seen; NULL: only what is to come */
};

/* Answers the call with a stream of events, or makes a WebSocket of it. */
void event_hub_follow(struct event_hub *h, struct call *c, const struct event_filter *f);
