/* Checkpoints: snapshots somebody asked for, and rollbacks to them. One request at a time in a session, between its cells. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "sandbox/sandbox.h"
#include "session/internal.h"

/* ---- looking ------------------------------------------------------------------- */

static void describe(const struct session *s, struct snapshot *c, bool size, struct checkpoint_info *ret)
{
	const struct snapshot *parent = c->parent ? sandbox_snapshot(s->sandbox, c->parent) : NULL;
	*ret = (struct checkpoint_info){ .id = c->id, .name = c->name, .parent = parent ? parent->id : NULL, .cell = c->cell,
		.created_wall_ns = c->wall_ns, .size_bytes = size ? evict_snapshot_size(c) : 0, .current = c->ticket == s->head, .files = !c->files_left };
}

bool session_checkpoint_info(struct session *s, unsigned i, bool size, struct checkpoint_info *ret)
{
	struct snapshot *c;
	if (!s->sandbox)
		return false;
	TAILQ_FOREACH(c, &s->sandbox->snapshots, link) {
		if (!snapshot_is_kept(c) || i--)
			continue;
		describe(s, c, size, ret);
		return true;
	}
	return false;
}

/* By id, or the newest of that name. */
struct snapshot *checkpoint_find(struct session *s, const char *which)
{
	struct snapshot *c;
	TAILQ_FOREACH_REVERSE(c, &s->sandbox->snapshots, snapshot_list, link)
		if (snapshot_is_kept(c) && (text_eq(c->id, which) || text_eq(c->name, which)))
			return c;
	return NULL;
}

int checkpoint_not_found(const char *which, struct error *e)
{
	error_set(e, -ENOENT, "there is no checkpoint %.64s in this session", which);
	error_remedy(e, "GET …/checkpoints lists those there are; the one that was not used for longest goes when there are too many.");
	return error_slug(e, "checkpoint_not_found");
}

/* Tells the asker of a checkpoint or rollback. */
static void tell(struct session *s, checkpoint_done done, void *userdata, const struct error *e, struct snapshot *c, bool back)
{
	_cleanup_free_ char *evicted = done && !e ? TAKE_PTR(s->evicted) : NULL;
	struct checkpoint_info info;
	struct arrival a = { .checkpoint = c ? &info : NULL, .evicted = evicted, .back = back };
	if (c)
		describe(s, c, false, &info);
	if (back && done && !e)
		a.replayed = replay_tell(s);
	if (done)
		done(userdata, e, e ? NULL : &a);
}

/* ---- checkpoints ------------------------------------------------------------------- */

static void name_it(struct session *s, struct snapshot *c)
{
	evict_for_new(s);
	c->name = TAKE_PTR(s->request->checkpoint.name);
	c->used_ns = clock_now_ns();
	s->table->stats.checkpoints++;
	operation_succeed(s, c);
}

int checkpoint_ask(struct session *s, uint64_t *ret_ticket)
{
	struct operation *o = s->request;
	if (!s->setup_sent)
		session_send_setup(s);
	if (history_park(s, ret_ticket) < 0) {
		operation_fail(s, -ENOMEM, NULL, NULL, "the interpreter takes no requests now");
		return -ENOMEM;
	}

	o->stage = OPERATION_SNAPSHOT;
	session_start_clock(s, CLOCK_RECOVERING, CHECKPOINT_MS);
	return 0;
}

bool checkpoint_is_current(const struct session *s)
{
	return s->latest && !s->latest->fragile && s->replay.good && !s->replay.n && !s->files_touched;
}

static void begin_checkpoint(struct session *s)
{
	if (checkpoint_is_current(s) && !s->latest->name) /* else it is another checkpoint already */
		name_it(s, s->latest);
	else
		checkpoint_ask(s, &s->request->checkpoint.ticket);
}

static void parked(struct session *s, uint64_t ticket)
{
	(void)ticket;
	name_it(s, s->latest);
}

/* A snapshot taken after the recovery would be of another state than the one that was asked for. */
static void died_before_checkpoint(struct session *s)
{
	operation_fail(s, -ECANCELED, NULL, "The next observation says what became of the variables; run the lost cells again, then try again.",
		"the interpreter died before the checkpoint was taken");
	recovery_begin(s);
}

static void finish_checkpoint(struct session *s, struct operation *o, const struct error *e, struct snapshot *c)
{
	tell(s, o->checkpoint.done, o->userdata, e, c, false);
}

static void release_checkpoint(struct operation *o)
{
	free(o->checkpoint.name);
}

const struct operation_ops checkpoint_operation = {
	.slug = "cannot_checkpoint",
	.begin = begin_checkpoint,
	.parked = parked,
	.guest_died = died_before_checkpoint,
	.finish = finish_checkpoint,
	.release = release_checkpoint,
};

/* ---- undo: which snapshot and which cells lead to the state before the last cell ------ */

static bool has_named(struct session *s)
{
	struct snapshot *c;
	TAILQ_FOREACH(c, &s->sandbox->snapshots, link)
		if (c->name)
			return true;
	return false;
}

/* The state before the last cell, when the session's is that of `head` and some cells that can be run again. */
static bool undo_in_path(struct session *s, struct operation *o)
{
	if (!s->params.keep_files_bytes || (s->latest ? s->latest->files_left : !s->replay.fresh || has_named(s)))
		return false;
	replay_drop_last(s);
	o->rollback.replay = s->replay.n > 0;
	o->rollback.from_start = !s->latest;
	o->rollback.ticket = s->latest ? s->latest->ticket : 0;
	return true;
}

/* The same, when the state is that of a copy: on the way to it from its parent. */
static bool undo_to_parent(struct session *s, struct operation *o, struct snapshot *c)
{
	struct snapshot *parent = c->parent ? sandbox_snapshot(s->sandbox, c->parent) : NULL;
	if (parent && c->steps == 1) {
		o->rollback.ticket = parent->ticket;
		return true;
	}
	if (!c->path.len || !s->params.keep_files_bytes || (parent ? parent->files_left : !c->from_start || has_named(s)))
		return false;
	history_forget_cells(s, true);
	if (buffer_append(&s->replay.frames, c->path.data, c->path.len) < 0)
		return false;
	s->replay.n = c->steps;
	s->replay.same = c->same;
	replay_drop_last(s);
	o->rollback.replay = s->replay.n > 0;
	o->rollback.from_start = !parent;
	o->rollback.ticket = parent ? parent->ticket : 0;
	return true;
}

static bool plan_undo(struct session *s, struct operation *o)
{
	struct snapshot *c = s->head ? sandbox_snapshot(s->sandbox, s->head) : NULL;
	if (s->replay.good && s->replay.n)
		return undo_in_path(s, o);
	if (s->since == 1 && c) {
		o->rollback.ticket = c->ticket;
		return true;
	}
	while (c && !s->since && !c->steps && c->parent) /* snapshots of one state */
		c = sandbox_snapshot(s->sandbox, c->parent);
	return c && !s->since && undo_to_parent(s, o, c);
}

/* ---- rollbacks ----------------------------------------------------------------------- */

static void rollback_failed(struct session *s)
{
	if (recovery_retry(s, &s->request->rollback.tries))
		return;

	operation_fail(s, -ECANCELED, NULL, NULL, "the copy did not come to life: the session was started afresh");
	recovery_lose(s, "the copy did not come to life");
}

static void checkpoint_died(struct session *s, struct snapshot *c)
{
	if (c)
		history_evict(s, c);
	operation_fail(s, -ENOENT, "checkpoint_not_found", "The session goes on as it is. GET …/checkpoints lists what is left.",
		"the checkpoint has died (was memory short?)");
}

static void nothing_to_undo(struct session *s)
{
	const char *remedy = has_named(s) ? "Go back to one of the checkpoints: to run the cells again from the session's start would end them. A larger "
					    "keep_checkpoints keeps more cells." :
					    "Make the session with a larger keep_checkpoints, or take checkpoints and go back to one of them.";
	operation_fail(s, -ENOENT, "nothing_to_undo", remedy, "what was before the last cell is not kept");
}

/* The interpreter was let go of already: the session goes on from the snapshot that its state came from. The cells to run again are those of the plan. */
static void died_at_the_last_moment(struct session *s, struct snapshot *c)
{
	checkpoint_died(s, c);
	if (s->ending)
		return;
	death_note(s, &(struct process_exit){ .signaled = true, .status = SIGKILL }, false);
	history_forget_cells(s, false);
	recovery_begin(s);
}

/* False when there is nothing to go back to, and the request has ended. An undo is planned only now: its plan changes which cells are run again. */
static bool go_back(struct session *s)
{
	struct operation *o = s->request;
	if (o->rollback.undo && !plan_undo(s, o)) {
		nothing_to_undo(s);
		return false;
	}
	struct snapshot *c = sandbox_snapshot(s->sandbox, o->rollback.ticket);
	if (o->rollback.from_start) {
		s->replay.fresh = s->replay.good = true;
		history_start_again(s);
		return true;
	}
	if (!c || c->pidfd < 0 || process_signal(c->pidfd, 0) < 0) {
		checkpoint_died(s, c);
		return false;
	}

	if (history_go_back(s, c, o->rollback.replay) < 0)
		died_at_the_last_moment(s, sandbox_snapshot(s->sandbox, o->rollback.ticket)); /* c itself may be gone */
	return true;
}

static void begin_rollback(struct session *s)
{
	go_back(s);
}

static void rolled_back(struct session *s)
{
	s->files_touched = false;
	if (s->latest)
		s->latest->used_ns = clock_now_ns();
	if (s->latest && s->latest->wall_ns < s->died.wall_ns)
		s->has_died = false; /* what the death cost is there again */
	operation_succeed(s, s->latest);
}

/* While it waits the interpreter's death does not matter: it would be replaced anyway. */
static void died_in_rollback(struct session *s)
{
	if (operation_restores(s))
		rollback_failed(s);
	else if (!go_back(s))
		recovery_begin(s);
}

static void finish_rollback(struct session *s, struct operation *o, const struct error *e, struct snapshot *c)
{
	tell(s, o->rollback.done, o->userdata, e, c, true);
}

const struct operation_ops rollback_operation = {
	.slug = "cannot_rollback",
	.begin = begin_rollback,
	.restored = rolled_back,
	.guest_died = died_in_rollback,
	.restore_failed = rollback_failed,
	.finish = finish_rollback,
};

/* ---- asking ---------------------------------------------------------------------------- */

int checkpoint_check_idle(struct session *s, struct error *e)
{
	if (s->ending || s->table->draining) {
		error_set(e, -ESHUTDOWN, "the session is about to end");
		return error_slug(e, "draining");
	}
	if (s->running || s->queued || s->request) {
		error_set(e, -EBUSY, "the session is busy: this works between its cells");
		error_remedy(e, "Wait for the answer of the running cell, or interrupt it.");
		return error_slug(e, "session_busy");
	}
	if (s->sandbox && !history_possible(s)) {
		error_set(e, -ENOTSUP, "snapshots of a session need control groups, which this machine does not give");
		error_remedy(e, "`glovebox doctor` says what is missing.");
		return error_slug(e, "cannot_checkpoint");
	}
	return 0;
}

int session_checkpoint(struct session *s, const char *name, checkpoint_done done, void *userdata, struct error *e)
{
	char made[32];
	int r = checkpoint_check_idle(s, e);
	if (r < 0)
		return r;
	if (!s->table->config.max_checkpoints) {
		error_set(e, -ENOTSUP, "this server keeps no checkpoints (--max-checkpoints 0)");
		error_remedy(e, "{\"undo\": true} takes the last cell back without one; a fork keeps a state as a session of its own.");
		return error_slug(e, "cannot_checkpoint");
	}
	snprintf(made, sizeof(made), "cell %u", s->cells);
	struct operation *o = operation_new(OPERATION_CHECKPOINT, userdata);
	if (!o || !(o->checkpoint.name = strdup(name ? name : made))) {
		operation_free(o);
		return error_set(e, -ENOMEM, "out of memory");
	}

	o->checkpoint.done = done;
	operation_request(s, o);
	return 0;
}

int session_rollback(struct session *s, const char *which, checkpoint_done done, void *userdata, struct error *e)
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

	o->rollback.ticket = c ? c->ticket : 0;
	o->rollback.undo = !which;
	o->rollback.done = done;
	operation_request(s, o);
	return 0;
}

int session_checkpoint_delete(struct session *s, const char *which, struct error *e)
{
	int r = checkpoint_check_idle(s, e);
	struct snapshot *c = r < 0 || !s->sandbox ? NULL : checkpoint_find(s, which);
	if (r < 0)
		return r;
	if (!c)
		return checkpoint_not_found(which, e);
	if (c == s->latest) { /* it is what a cell that fails goes back to: it only loses its name */
		free(c->name);
		c->name = NULL;
	} else {
		history_evict(s, c);
	}
	return 0;
}
