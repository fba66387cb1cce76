/*
 * The output of a process, in pieces and in order, kept for readers that connect and disconnect at
 * any time. Pure memory: no I/O.
 *
 * Positions count the bytes of both streams together, from 0. The oldest pieces are dropped when
 * more than the maximum is kept. A reader is a position that the caller keeps; a reader whose
 * position lies before the oldest piece has missed output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/memory_account.h"
#include "session/session.h"

struct kept_piece;

struct kept_output {
	TAILQ_HEAD(kept_pieces, kept_piece) pieces;
	size_t max, bytes;
	uint64_t first, end; /* positions of the oldest byte kept, and behind the newest */
	struct hold held;
};

void kept_output_init(struct kept_output *k, size_t max);
void kept_output_finish(struct kept_output *k);

/* Keeps a piece. Without memory it is counted and missed by everybody. */
void kept_output_add(struct kept_output *k, enum stream stream, const char *data, size_t len);

/* Drops pieces that end at or before `keep_from`, and beyond the maximum those before. */
void kept_output_trim(struct kept_output *k, uint64_t keep_from);

/* More than the maximum is kept, since a reader has not read it. */
bool kept_output_is_full(const struct kept_output *k);

struct kept_view {
	enum stream stream;
	const char *data;
	size_t len;
	uint64_t next;   /* the position behind it */
	uint64_t missed; /* bytes between the position asked for and the piece */
};

/*
 * What is at a position: false when nothing is there yet. Valid until the next call that changes
 * it.
 */
bool kept_output_read(const struct kept_output *k, uint64_t position, struct kept_view *ret);
