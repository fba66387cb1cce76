/* Rollbacks: to a checkpoint, or to the state before the last cell. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "session/internal.h"

static const struct process_exit killed = { .signaled = true, .status = SIGKILL };

static bool has_named(struct session *s)
{
	struct snapshot *c;
	for (c = NULL; (c = sandbox_next_snapshot(s->sandbox, c));)
		if (c->name)
			return true;
	return false;
}

/*
 * The state before the last cell, when the session's is that of `head` and some cells that can be
 * run again.
 */
static bool undo_in_path(struct session *s, struct operation *o)
{
	if (!s->params.keep_files_bytes ||
		(s->history.latest ? s->history.latest->without_files
				   : !s->history.replay.fresh || has_named(s)))
		return false;

	replay_drop_last(s);
	o->rollback.replay = s->history.replay.n > 0;
	o->rollback.from_start = !s->history.latest;
	o->rollback.snapshot_id = s->history.latest ? s->history.latest->snapshot_id : 0;
	return true;
}

static bool is_alive(const struct snapshot *c)
{
	return snapshot_is_there(c) && !snapshot_has_ended(c);
}

/*
 * The same, when the state is that of a copy: on the way to it from its parent. From a parent that
 * has died nothing can be restored: the request fails, and the session's cells to run again stay
 * those that lead to its state.
 */
static bool undo_to_parent(struct session *s, struct operation *o, struct snapshot *c)
{
	struct snapshot *parent = c->parent ? sandbox_snapshot(s->sandbox, c->parent) : NULL;
	if (parent && (c->cells_since_parent == 1 || !is_alive(parent))) {
		o->rollback.snapshot_id = parent->snapshot_id;
		return true;
	}

	if (!c->path.len || !s->params.keep_files_bytes ||
		(parent ? parent->without_files : !c->from_start || has_named(s)))
		return false;

	history_forget_cells(s, true);
	if (buffer_append(&s->history.replay.frames, c->path.data, c->path.len) < 0)
		return false;

	s->history.replay.n = c->cells_since_parent;
	s->history.replay.same = c->same;
	replay_drop_last(s);
	o->rollback.replay = s->history.replay.n > 0;
	o->rollback.from_start = !parent;
	o->rollback.snapshot_id = parent ? parent->snapshot_id : 0;
	return true;
}

static bool plan_undo(struct session *s, struct operation *o)
{
	struct snapshot *c = s->history.head ? sandbox_snapshot(s->sandbox, s->history.head) : NULL;
	if (s->history.replay.good && s->history.replay.n)
		return undo_in_path(s, o);

	if (s->history.since == 1 && c) {
		o->rollback.snapshot_id = c->snapshot_id;
		return true;
	}

	while (c && !s->history.since && !c->cells_since_parent &&
		c->parent) /* snapshots of one state */
		c = sandbox_snapshot(s->sandbox, c->parent);
	return c && !s->history.since && undo_to_parent(s, o, c);
}

static void rollback_failed(struct session *s)
{
	if (recovery_retry(s, &s->history.request->rollback.tries))
		return;

	session_set_phase(
		s, PHASE_DEAD); /* the asker may request another operation at once, which waits */
	operation_fail(s, -ECANCELED, NULL, NULL,
		"the snapshot could not be restored: the session was started afresh");
	if (s->phase == PHASE_ENDING)
		return;

	death_note(s, &killed, false); /* else the report would be about an earlier death */
	recovery_lose(s, "the snapshot could not be restored");
}

static void checkpoint_died(struct session *s, struct snapshot *c)
{
	if (c)
		history_evict(s, c);
	operation_fail(s, -ENOENT, "checkpoint_not_found",
		"The session continues unchanged. {list_checkpoints}.",
		"the checkpoint has died (was memory short?)");
}

static void nothing_to_undo(struct session *s)
{
	const char *remedy =
		has_named(s)
			? "Roll back to one of the checkpoints. A larger keep_checkpoints keeps the states before more cells."
			: "Make the session with a larger keep_checkpoints, or take checkpoints and roll back to one of them.";
	operation_fail(s, -ENOENT, "nothing_to_undo", remedy,
		"there is no cell to undo, or the state before it is not kept");
}

/*
 * The interpreter was let go of already: the session goes on from the snapshot that its state came
 * from. The cells to run again are those of the plan.
 */
static void died_at_the_last_moment(struct session *s, struct snapshot *c)
{
	checkpoint_died(s, c);
	if (s->phase == PHASE_ENDING)
		return;
	death_note(s, &killed, false);
	history_forget_cells(s, false);
	recovery_begin(s);
}

/*
 * False when there is nothing to go back to, and the request has ended. An undo is planned only
 * now: its plan changes which cells are run again.
 */
static bool go_back(struct session *s)
{
	struct operation *o = s->history.request;
	if (o->rollback.undo && !plan_undo(s, o)) {
		nothing_to_undo(s);
		return false;
	}

	struct snapshot *c = sandbox_snapshot(s->sandbox, o->rollback.snapshot_id);
	if (o->rollback.from_start) {
		s->history.replay.fresh = s->history.replay.good = true;
		history_start_again(s);
		return true;
	}

	if (!c || !is_alive(c)) {
		checkpoint_died(s, c);
		return false;
	}

	if (history_go_back(s, c, o->rollback.replay) < 0)
		/* c itself may be gone */
		died_at_the_last_moment(s, sandbox_snapshot(s->sandbox, o->rollback.snapshot_id));
	return true;
}

static void begin_rollback(struct session *s)
{
	go_back(s);
}

static void rolled_back(struct session *s)
{
	s->usage.uploads.touched = false;
	if (s->history.latest)
		s->history.latest->used_ns = clock_now_ns();
	if (s->history.latest && s->history.latest->wall_ns < s->death.report.wall_ns)
		s->death.has_report = false; /* what the death cost is there again */
	operation_succeed(s, s->history.latest);
}

/*
 * While the rollback waits, the death of the interpreter does not matter: the rollback replaces the
 * interpreter anyway.
 */
static void died_in_rollback(struct session *s)
{
	if (session_is_restoring(s))
		rollback_failed(s);
	else if (!go_back(s))
		recovery_begin(s);
}

static void finish_rollback(
	struct session *s, struct operation *o, const struct error *e, struct snapshot *c)
{
	checkpoint_tell(s, o->rollback.done, o->userdata, e, c, true);
}

const struct operation_ops rollback_operation = {
	.slug = "cannot_rollback",
	.begin = begin_rollback,
	.restored = rolled_back,
	.guest_died = died_in_rollback,
	.restore_failed = rollback_failed,
	.finish = finish_rollback,
};

int session_rollback(
	struct session *s, const char *which, checkpoint_done done, void *userdata, struct error *e)
{
	int r = checkpoint_check_idle(s, e);
	if (r < 0)
		return r;

	struct snapshot *c = which && s->sandbox ? checkpoint_find(s, which) : NULL;
	if (which && !c)
		return checkpoint_not_found(which, e);

	struct operation *o = operation_new(OPERATION_ROLLBACK, userdata);
	if (!o)
		return error_set(e, -ENOMEM, "out of memory");

	o->rollback.snapshot_id = c ? c->snapshot_id : 0;
	o->rollback.undo = !which;
	o->rollback.done = done;
	operation_request(s, o);
	return 0;
}
