/* Watchers of a screen: recordings and live views (protocol.h says how they ask). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "display/protocol.h"

struct screen;

struct watcher {
	struct frame_options options; /* of its last question; watcher 0: the place is free */
	uint32_t serial;              /* of the question that waits; 0: none */
	uint8_t *seen;                /* the screen's pixels as it knows them; NULL: nothing yet */
	uint64_t changes;             /* of the screen when it was looked at */
	uint64_t sent_ns, asked_ns;
};

/* A question. */
void watch_ask(struct screen *s, uint32_t serial, const struct frame_options *o);
void watch_cancel(struct screen *s, uint32_t serial);
/*
 * Answers those who can be. Returns the milliseconds to the next that may, -1: when something is
 * painted.
 */
int watch_run(struct screen *s);
