/*
 * The output of a cell on one descriptor: the first bytes, the number of omitted bytes, and the
 * last bytes.
 *
 * Memory is bounded by the cap and taken as needed: nothing until something is printed, the tail
 * only when the head is full. It counts as held (base/memory_account.h): when the daemon holds too
 * much already, less than the cap is kept, and the rest is counted as left out.
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "session/session.h"

struct output {
	uint64_t cap;       /* of head and tail together */
	struct buffer head; /* up to cap / 2 */
	struct buffer tail; /* a ring, once it has tail_max bytes */
	size_t tail_max;    /* cap - cap / 2, or what the daemon could hold */
	size_t tail_at;     /* where the next byte of the ring goes */
	uint64_t tail_total;
	bool is_short; /* the daemon held too much to keep as much as the cap allows */
};

void output_init(struct output *o, uint64_t cap);
void output_finish(struct output *o); /* frees; keeps the cap */

/* Takes the bytes; returns how many of them went into the head (those a live listener may see). */
size_t output_add(struct output *o, const char *data, size_t len);

/* What there is, valid until the next call; cut ends are trimmed to whole UTF-8 sequences. */
void output_view(struct output *o, struct captured *ret);
