/*
 * Restoring an earlier state: a new guest from a snapshot, or a fresh one, and the cells that it
 * runs again.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "session/internal.h"

enum {
	/* for a snapshot to become a guest; files are written in that time too */
	RECOVER_MS = 10000,
};

static void end_display(struct session *s)
{
	if (s->display)
		/* it is among what is about to be killed; not when its end is noticed: the new
		 * guest may be quicker */
		display_restart(s->display);
}

/* Nothing but the snapshots survives. */
static void kill_all_but_snapshots(struct session *s)
{
	end_display(s);
	sandbox_kill_others(s->sandbox);
}

static void begin_restore(struct session *s)
{
	session_set_phase(s, PHASE_RESTORING);
	s->queue.n_background = 0;
	session_start_clock(s, CLOCK_RECOVERING, RECOVER_MS);
}

/*
 * A session without a copy: before its first cell it was a fresh interpreter and an empty
 * directory.
 */
static void start_again(struct session *s)
{
	begin_restore(s);
	s->setup.sent = false;
	s->setup.clear_workspace = s->params.keep_files_bytes > 0;
	end_display(s);
	sandbox_replace_guest(s->sandbox);
}

/*
 * Makes an interpreter from the last snapshot, or a fresh one where the kept cells start from that.
 */
static bool restore(struct session *s)
{
	session_stop_clock(s);
	history_drop_asked(s);
	bool had_copy = s->history.latest;
	history_check_fragile(s);
	if (had_copy && !s->history.latest)
		return false;
	if (!s->history.latest && (!s->history.replay.fresh || !history_possible(s)))
		return false;

	if (!s->history.latest) {
		start_again(s);
		return true;
	}

	kill_all_but_snapshots(s);
	if (sandbox_restore_snapshot(s->sandbox, s->history.latest, s->params.keep_files_bytes > 0,
		    false, &s->history.latest) < 0)
		return false;

	begin_restore(s);
	return true;
}

bool history_recover(struct session *s)
{
	/* before a cell that was looked at when it started */
	bool known = s->queue.running ? s->queue.running->transaction != TRANSACTION_NONE
				      : replay_fits(s);
	if (!known || !s->history.replay.good)
		return false;

	/*
	 * One of those that may differ can be what ended the interpreter (by a thread or a child
	 * process), and would do so again: between cells, and when interpreters keep dying after
	 * them.
	 */
	bool suspect = !s->queue.running || s->history.replay.deaths >= REPLAY_DEATHS;
	if (!replay_is_exact(s) && suspect)
		s->death.last.back_to = replay_cut(s);
	return restore(s);
}

bool history_fall_back(struct session *s)
{
	struct snapshot *c = s->history.head ? sandbox_snapshot(s->sandbox, s->history.head) : NULL;
	if (!c || !snapshot_is_there(c) || snapshot_has_ended(c))
		return false;

	history_forget_cells(s, true);
	s->history.latest = c;
	s->death.last.back_to = c->cell;
	return restore(s);
}

bool history_retry(struct session *s)
{
	return restore(s);
}

/* From the copy's state to that before the cell that failed. */
static void send_replay(struct session *s)
{
	_cleanup_buffer_ struct buffer frames = BUFFER_INIT(0);
	size_t start, at = 0;

	if (buffer_append(&frames, s->history.replay.frames.data, s->history.replay.frames.len) <
			0 ||
		wire_begin(&frames, WIRE_REPLAY, 0, &start) < 0) {
		operation_restore_failed(s);
		return;
	}

	wire_end(&frames, start);
	while (at < start)
		at += wire_retype(&frames, at, WIRE_REPLAY);
	session_set_phase(s, PHASE_REPLAYING);
	guest_send(sandbox_guest(s->sandbox), &frames);
}

void history_replayed(struct session *s)
{
	/* the end of a cell that died is reported first */
	session_set_phase(s, s->queue.running ? PHASE_RUNNING : PHASE_IDLE);
	session_send_paths(s); /* one may have come while cells were run again */
	session_stop_clock(s);
	s->history.head = s->history.latest ? s->history.latest->snapshot_id : 0;
	s->history.since = s->history.replay.n;
	replay_done(s);
	operation_restored(s);
	session_start_next(s);
}

void history_start_again(struct session *s)
{
	session_stop_clock(s);
	/* first: else the cells to run again go with a latest snapshot that will not come */
	s->history.latest = NULL;
	history_drop_asked(s);
	start_again(s);
}

int history_go_back(struct session *s, struct snapshot *c, bool replay)
{
	session_stop_clock(s);
	s->history.latest = NULL; /* as above: the cells to run again stay */
	history_drop_asked(s);
	bool quiet = !s->queue.n_background && sandbox_is_quiet(s->sandbox);
	if (quiet)
		end_display(s);
	else
		kill_all_but_snapshots(s);
	session_set_phase(s, PHASE_DEAD); /* it is let go of, whatever comes of the snapshot */
	int r = sandbox_restore_snapshot(
		s->sandbox, c, s->params.keep_files_bytes > 0, quiet, &s->history.latest);
	if (r < 0)
		return r;

	if (!replay)
		history_forget_cells(s, true);
	s->table->stats.rollbacks++;
	begin_restore(s);
	return 0;
}

void history_ready(struct session *s)
{
	if (!s->setup.sent)
		session_send_setup(s);
	else {
		session_send_paths(s);
		tools_send(s, true); /* they may have changed since the copy was made */
	}

	if (*sandbox_files_not_restored(s->sandbox))
		s->history.replay.same = 0; /* cells that use files do not find what they found */

	if (s->history.replay.n)
		send_replay(s);
	else
		history_replayed(s);
}
