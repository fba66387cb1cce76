/*
 * Memory that others make the daemon hold: frames of guests that are not whole yet, what cells
 * print until it is answered, requests that are not complete, answers and events for clients that
 * read slowly. Each of these has a maximum of its own; the sum over thousands of sessions and
 * connections needs one too, or a few hostile ones could fill the machine.
 *
 * The sum never exceeds LIMIT_HELD_BYTES. A holder may have a quarter of what is left of the first
 * three quarters: a lone one is never short, many share. The last quarter is for holders of at most
 * HOLD_FREE_BYTES, so that small cells are answered while others hold all they can. A refused
 * holder leaves out what it wanted to keep, waits, or is cut. One account for the process, which
 * has one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct hold {
	size_t bytes;
};

/* What a holder may have as long as the sum allows it. */
enum { HOLD_FREE_BYTES = 128 * 1024 };

/*
 * Says that the holder has so many bytes now. -ENOBUFS when they are more than it may have; then
 * nothing changes. Less is always fine.
 */
int hold_set(struct hold *h, size_t bytes);

/* How much all hold together. */
size_t hold_total(void);

/* More than half is held: clients that take nothing have less time. */
bool hold_is_short(void);

/* Hardly anything is left: new work is refused. */
bool hold_is_full(void);
