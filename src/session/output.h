/*
 * What a cell printed on one descriptor: the first bytes, a count of what was left out, and the last bytes.
 *
 * Memory is bounded by the cap and taken as needed: nothing until something is printed, the tail only when the head is full.
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "session/session.h"

struct output {
	uint64_t cap;       /* of head and tail together */
	struct buffer head; /* up to cap / 2 */
	char *tail;         /* a ring of cap - cap / 2 bytes, or NULL */
	size_t tail_at;     /* where the next byte goes */
	uint64_t tail_total;
	struct buffer joined; /* for output_view */
};

void output_init(struct output *o, uint64_t cap);
void output_finish(struct output *o); /* frees; keeps the cap */

/* Takes the bytes; returns how many of them went into the head (those a live listener may see). -ENOMEM loses them. */
int output_add(struct output *o, const char *data, size_t len, size_t *ret_in_head);

/* What there is, valid until the next call; cut ends are trimmed to whole UTF-8 sequences. */
void output_view(struct output *o, struct captured *ret);

/* How many bytes at the end of data are the beginning of an unfinished UTF-8 sequence (0 to 3). */
size_t output_unfinished(const char *data, size_t len);
