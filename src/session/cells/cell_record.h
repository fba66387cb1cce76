/*
 * A cell that a session ran, kept for whoever looks later: its code, its outcome, and which dialect
 * sent it. Also a mark in the list of cells: a rollback, a reset, a checkpoint.
 *
 * A record owns everything that it points to. Output is kept up to LIMIT_RECORD_OUTPUT_BYTES of
 * each stream (the log has all of it), and a record that would be larger than LIMIT_RECORD_BYTES
 * loses its pictures first, then its values.
 */
#pragma once

#include "session/session.h"

enum cell_record_kind {
	RECORD_CELL,
	RECORD_ROLLBACK,   /* the session went back: the cells since are undone */
	RECORD_RESET,      /* a fresh interpreter: variables are gone */
	RECORD_CHECKPOINT, /* a checkpoint was taken */
	RECORD_KINDS
};
extern const char *const cell_record_kind_names[RECORD_KINDS];

struct cell_record {
	TAILQ_ENTRY(cell_record) link;   /* in its session, oldest first */
	TAILQ_ENTRY(cell_record) by_age; /* among those of all sessions of its owner */
	struct cell_history *history;
	uint64_t number; /* in its session, from 1; never used again */
	enum cell_record_kind kind;
	size_t bytes; /* what it takes in memory */

	unsigned cell;       /* the number of the cell; of a mark: the last cell before */
	const char *dialect; /* a word of the program: "native", "mcp" … */
	uint64_t wall_ns;    /* when the cell started, or the mark was made */
	bool running;        /* the outcome is not there yet */
	size_t code_cut;     /* bytes of the code that are not kept */
	char *code;          /* of a mark: the checkpoint's name, or NULL */
	size_t code_len;
	unsigned back_to;         /* of a rollback: the cell after which the state is as now */
	struct observation after; /* when not running; its texts are in `block` */
	char *block;
};

/* A cell that starts now, or a mark. NULL without memory. */
struct cell_record *cell_record_create(
	enum cell_record_kind kind, unsigned cell, const char *text, size_t len);

/*
 * Its outcome. What does not fit is left out and counted. -ENOMEM: the record has no outcome but
 * its status.
 */
int cell_record_finish(struct cell_record *r, const struct observation *o);

void cell_record_destroy(struct cell_record *r); /* must be in no list; NULL is fine */
