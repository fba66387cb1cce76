/*
 * The cells that sessions ran, kept while the session lives, whoever sent them. Bounded for each
 * session (LIMIT_RECORDS, LIMIT_HISTORY_BYTES) and for all sessions together
 * (LIMIT_ALL_HISTORY_BYTES; less while the daemon is short of memory): beyond that, the oldest
 * record of the owner with the largest share is dropped. Records count as memory that the daemon
 * holds.
 */
#pragma once

#include "base/memory_account.h"
#include "session/cells/cell_record.h"

/* All sessions' of one owner: of a token, or of everybody where there are none. */
struct cell_share {
	LIST_ENTRY(cell_share) link;
	uint64_t owner;
	unsigned histories; /* it goes with the last one */
	TAILQ_HEAD(cell_record_ages, cell_record) by_age;
	size_t bytes;
};

/* All sessions'. */
struct cell_store {
	LIST_HEAD(cell_shares, cell_share) shares;
	size_t bytes;
};

/* One session's. */
struct cell_history {
	struct cell_store *store;
	struct cell_share *share; /* NULL: nothing is kept */
	struct hold held;
	TAILQ_HEAD(cell_record_list, cell_record) records;
	struct cell_record *running; /* the record of the running cell, or NULL */
	uint64_t last;               /* number of the newest record */
	uint64_t dropped;            /* records that went, to stay within the limits */
	unsigned n;
	size_t bytes;
};

void cell_store_init(struct cell_store *t);
void cell_history_init(struct cell_history *h, struct cell_store *t, uint64_t owner);
void cell_history_finish(struct cell_history *h);

/* A record that was just made; the history owns it from now on. NULL is fine. */
void cell_history_add(struct cell_history *h, struct cell_record *r);

/* The running cell is over. */
void cell_history_end(struct cell_history *h, const struct observation *o);

/* The first record whose number is larger than `after`; NULL: there is none. */
const struct cell_record *cell_history_next(const struct cell_history *h, uint64_t after);
const struct cell_record *cell_history_find(const struct cell_history *h, uint64_t number);
