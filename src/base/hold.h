/*
 * Memory that others make the daemon hold: frames of guests that are not whole yet, what cells said until it is answered, events for clients that
 * read slowly. Each of these has a maximum of its own; the sum over thousands of sessions needs one too, or a few hostile ones could fill the machine.
 *
 * Everybody gets what is small. Beyond that a holder may have a quarter of what is left of LIMIT_HELD_BYTES: a lone one is never
 * short, many share, and something is left for whoever comes. Who is refused leaves out what he wanted to keep, or waits.
 * One account for the process, which has one thread.
 */
#pragma once

#include <stddef.h>

struct hold {
	size_t bytes;
};

/* What may be held without asking. */
enum { HOLD_FREE_BYTES = 128 * 1024 };

/* Says that the holder has so many bytes now. -ENOBUFS when they are more than it may have; then nothing changes. Less is always fine. */
int hold_set(struct hold *h, size_t bytes);

/* How much all hold together. */
size_t hold_total(void);
