/*
 * The clock of a session: one timer, which serves the time limit of the running cell, the interrupt
 * after it, the painting of a cell's windows, and the deadline of an operation on the history.
 * `mode` says which of these the timer serves now.
 *
 * The clock of a cell stands still while calls of tools wait, for at most LIMIT_TOOL_PAUSE_SECONDS
 * in all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "session/session_cell.h"

enum clock_mode {
	CLOCK_OFF,
	CLOCK_LIMIT,        /* the running cell's time limit, or that of a tool call */
	CLOCK_INTERRUPTING, /* the cell was interrupted; it is killed after the grace period */
	CLOCK_KILLED, /* the interpreter was killed; its sandbox is given up if it does not end */
	CLOCK_RECOVERING, /* an operation on the history */
	CLOCK_PAINTING,   /* the code has ended, its windows are painted */
};

struct session_clock {
	enum clock_mode mode;
	uv_timer_t timer;
	uint64_t limit_at_ns;  /* when the cell's time is over */
	uint64_t paused_at_ns; /* since when the clock stands still; 0: it runs */
	uint64_t paused_ns;    /* how long it stood still before */
	uint64_t interrupt_ns; /* when the cell was interrupted */
	uint64_t painting_ns;  /* since when the cell's windows are painted; 0: they are not */
	bool painting_late;    /* the cell had been interrupted before */
};

/* Starts the timer for a mode other than CLOCK_LIMIT. */
void session_start_clock(struct session *s, enum clock_mode mode, uint64_t ms);
/* Starts the time limit of the running cell. */
void session_start_limit(struct session *s);
/* Sets the timer to the next deadline of the running cell. */
void session_arm_clock(struct session *s);
/* Starts the time limit of the running cell again, from `after_ms` from now on. */
void session_restart_limit(struct session *s, uint64_t after_ms);
void session_stop_clock(struct session *s);

/* The clock stands still while calls of tools wait. */
void session_tools_waiting(struct session *s, bool waiting);

/*
 * The code of the running cell has ended and its windows are painted: the clock stands still, and
 * the guest is interrupted after `ms`.
 */
void session_clock_painting(struct session *s, uint64_t ms);
void session_clock_painted(struct session *s); /* that is over: the clock goes on */

/* Interrupts the running cell; the cell is killed when it does not stop within the grace period. */
void session_interrupt_running(struct session *s);
/* The same, with the reason. */
void session_stop_cell(struct session *s, enum cell_stop why);
