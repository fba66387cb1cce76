/*
 * A cell: a piece of code that waits in a session's queue or runs. Freed by cell_free(), after its
 * observer was told or has left.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include "base/buffer.h"
#include "session/display/recording.h"
#include "session/session.h"

enum { CELL_ID_MAX = 64 };

/*
 * Why the daemon interrupted a cell. The later in this list wins when there are several reasons; of
 * the limits between interrupt and time, the first one.
 */
enum cell_stop {
	STOP_NONE,
	STOP_INTERRUPT, /* a client asked for it */
	STOP_CPU,       /* its limit of CPU time */
	STOP_OUTPUT,    /* its limit of output */
	STOP_VOLUME,    /* the quota of a volume */
	STOP_TIMEOUT,   /* its time limit */
};

/* A limit other than the time. */
static inline bool cell_stop_is_limit(enum cell_stop why)
{
	return why >= STOP_CPU && why <= STOP_VOLUME;
}

/* How the session goes back to the state before the cell when the cell ends the interpreter. */
enum cell_transaction {
	TRANSACTION_NONE,   /* it does not */
	TRANSACTION_REPLAY, /* from any snapshot, with the cells since then run again */
	TRANSACTION_EXACT,  /* from a snapshot of the very moment */
};

struct cell {
	TAILQ_ENTRY(cell) link;
	struct session *session;
	char id[CELL_ID_MAX + 1];
	struct buffer frame; /* EXECUTE, ready to be sent; the number is set when the cell starts */
	struct cell_observer observer;
	void *userdata;
	const char *dialect; /* which sent the cell, a word of the program */
	double timeout_s;
	/* of a cell that wants pictures, or that must not block; else NULL */
	struct cell_picture *capture;
	struct {
		bool wanted;
		struct recording_params params;
		unsigned id;            /* 0: none was started */
		struct film_cell *film; /* of a recording that is part of the answer; else NULL */
	} recording;
	struct {
		bool detach;         /* the cell goes on when its client leaves */
		bool printed_answer; /* a final answer may be printed */
		bool program;        /* a one-shot, after which the session ends */
	} options;
	enum cell_transaction transaction;
	enum cell_stop stop;
	bool started;
	bool abandoned;        /* the client has left: the observer is not told */
	bool has_side_effects; /* outside the session: the cell cannot be run again */
};

void cell_free(struct cell *c);

/*
 * Notes why the cell is interrupted, by the precedence of enum cell_stop. False when an earlier
 * reason stays.
 */
bool cell_set_stop(struct cell *c, enum cell_stop why);
