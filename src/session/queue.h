/*
 * The cells of a session: those that wait, the one that runs, and those that were left in a main
 * loop.
 *
 * Invariants:
 * - A cell is in `waiting`, or is `running`, or has been freed. At most one cell runs.
 * - `cells` is the number of the cell that started last; the running cell has this number.
 * - A cell that was left in a main loop (`background`) has been answered already; only its number
 *   is kept, until the guest says that its code has ended.
 */
#pragma once

#include <sys/queue.h>
#include <uv.h>

#include "session/session_cell.h"

TAILQ_HEAD(cell_queue, cell);

struct session_queue {
	struct cell_queue waiting;
	unsigned n_waiting;
	struct cell *running; /* NULL for none */
	unsigned cells;
	uint64_t started_ns; /* when the running cell started */
	uint32_t background[LIMIT_LEFT_CELLS];
	unsigned n_background;
	uv_timer_t wake_timer; /* wakes a guest whose main loop must notice the next cell */
};

/* What a cell left of the session's variables. */
enum state_after { STATE_KEPT, STATE_LOST, STATE_BEFORE };

/* ---- queue.c ---- */

/* Starts the next cell when the phase and the display allow it. */
void session_start_next(struct session *s);
/* Takes a waiting cell out of the queue; the cell is the caller's. */
void queue_remove(struct session *s, struct cell *c);

/* ---- cell_end.c ---- */

/* Replaces the error that the guest reported by an error of the daemon. */
void session_override_error(struct session *s, const char *type, const char *code,
	const char *remedy, const char *text);
void session_tell_timeout(struct session *s, bool killed);
/* Says which limit stopped the running cell. */
enum cell_status session_tell_stop(struct session *s, bool killed);
/* Tells the observer of the cell. */
void session_report_cell(struct session *s, struct cell *c, enum cell_status status, int exit_code,
	enum state_after after);
/*
 * Reports the running cell and frees it; the next cell starts in this call when the guest can take
 * it.
 */
void session_close_cell(
	struct session *s, enum cell_status status, int exit_code, enum state_after after);
/* Ends the running cell, whose output and pictures are complete; a film is awaited first. */
void session_end_cell(struct session *s, enum cell_status status, int exit_code);
void session_fail_all_cells(struct session *s, enum cell_status status, const char *code,
	const char *text, const char *remedy);

/* ---- background_cells.c ---- */

/*
 * Handles a frame of a cell that was left in a main loop; false when the frame is not from one of
 * these.
 */
bool background_frame(struct session *s, const struct wire_frame *f);
/* Ends the running cell as "running" and leaves its code in the main loop. */
void session_leave_cell(struct session *s);
/* Wakes a main loop in which a cell was left, so that it handles the next frame. */
void session_wake_guest(struct session *s);
/* Wakes it repeatedly until the guest has started the next cell. */
void session_keep_waking_guest(struct session *s);

/* ---- counts.c ---- */

/* The slot of sessions_stats.profiles in which the session's cells are counted. */
unsigned stats_profile_slot(struct sessions_stats *stats, const struct profile_choice *profile);
/* Counts a cell that is over, with the session's outcome. */
void session_count_cell(struct session *s, const struct cell *c, enum cell_status status);
/* Counts a session that was refused, by the slug of the error. */
void sessions_count_refused(struct sessions *t, const struct error *e);
/* Counts the picture that the cell was asked for; NULL for none. */
void session_count_picture(struct session *s, const struct screenshot *shot);

/* ---- printed_answer.c ---- */

/* Makes the final answer that the cell printed the answer of the outcome. */
void session_take_printed_answer(struct session *s);
