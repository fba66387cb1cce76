/*
 * Checkpoints: snapshots that a client asked for. A session handles one request at a time, between
 * its cells.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "session/contexts/contexts.h"
#include "session/internal.h"

/* ---- looking ------------------------------------------------------------------- */

static void describe(
	const struct session *s, struct snapshot *c, bool size, struct checkpoint_info *ret)
{
	const struct snapshot *parent = c->parent ? sandbox_snapshot(s->sandbox, c->parent) : NULL;
	*ret = (struct checkpoint_info){ .id = c->id,
		.name = c->name,
		.parent = parent ? parent->id : NULL,
		.cell = c->cell,
		.created_wall_ns = c->wall_ns,
		.size_bytes = size ? evict_snapshot_size(c) : 0,
		.current = c->snapshot_id == s->history.head,
		.files = !c->without_files };
}

bool session_checkpoint_info(struct session *s, unsigned i, bool size, struct checkpoint_info *ret)
{
	struct snapshot *c;
	if (!s->sandbox)
		return false;

	for (c = NULL; (c = sandbox_next_snapshot(s->sandbox, c));) {
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
	for (c = NULL; (c = sandbox_previous_snapshot(s->sandbox, c));)
		if (snapshot_is_kept(c) && (text_eq(c->id, which) || text_eq(c->name, which)))
			return c;
	return NULL;
}

int checkpoint_not_found(const char *which, struct error *e)
{
	error_set(e, -ENOENT, "there is no checkpoint %.64s in this session", which);
	error_remedy(e,
		"{list_checkpoints}; the least recently used one is evicted when there are too many.");
	return error_slug(e, "checkpoint_not_found");
}

/* Tells the asker of a checkpoint or rollback. */
void checkpoint_tell(struct session *s, checkpoint_done done, void *userdata, const struct error *e,
	struct snapshot *c, bool back)
{
	_cleanup_free_ char *evicted = done && !e ? TAKE_PTR(s->history.evicted) : NULL;
	struct checkpoint_info info;
	struct checkpoint_result a = {
		.checkpoint = c ? &info : NULL, .evicted = evicted, .back = back
	};

	if (c)
		describe(s, c, false, &info);
	if (back && done && !e)
		a.replayed = replay_tell(s);
	if (!e && back)
		watch_rollback(s, a.checkpoint);
	else if (!e && c)
		watch_checkpoint(s, a.checkpoint);
	if (done)
		done(userdata, e, e ? NULL : &a);
}

/* ---- checkpoints ------------------------------------------------------------------- */

static void name_it(struct session *s, struct snapshot *c)
{
	evict_for_new(s);
	c->name = TAKE_PTR(s->history.request->checkpoint.name);
	c->used_ns = clock_now_ns();
	s->table->stats.checkpoints++;
	operation_succeed(s, c);
}

int checkpoint_ask(struct session *s, uint64_t *ret_snapshot_id)
{
	if (!s->setup.sent)
		session_send_setup(s);
	if (history_ask_snapshot(s, ret_snapshot_id) < 0) {
		operation_fail(
			s, -ENOMEM, NULL, NULL, "the interpreter does not accept requests now");
		return -ENOMEM;
	}

	session_set_phase(s, PHASE_SNAPSHOT);
	session_start_clock(s, CLOCK_RECOVERING, CHECKPOINT_MS);
	return 0;
}

bool checkpoint_is_current(struct session *s)
{
	return s->history.latest && !s->history.latest->fragile && s->history.replay.good &&
	       !s->history.replay.n && !s->usage.uploads.touched && !session_files_shared(s);
}

static void begin_checkpoint(struct session *s)
{
	/* else it is another checkpoint already */
	if (checkpoint_is_current(s) && !s->history.latest->name)
		name_it(s, s->history.latest);
	else
		checkpoint_ask(s, &s->history.request->checkpoint.snapshot_id);
}

static void parked(struct session *s, uint64_t snapshot_id)
{
	(void)snapshot_id;
	name_it(s, s->history.latest);
}

/* A snapshot taken after the recovery would be of another state than the one that was asked for. */
static void died_before_checkpoint(struct session *s)
{
	operation_fail(s, -ECANCELED, NULL,
		"The next observation says what became of the variables; run the lost cells again, then try again.",
		"the interpreter died before the checkpoint was taken");
	recovery_begin(s);
}

static void finish_checkpoint(
	struct session *s, struct operation *o, const struct error *e, struct snapshot *c)
{
	checkpoint_tell(s, o->checkpoint.done, o->userdata, e, c, false);
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

/* ---- asking ---------------------------------------------------------------------------- */

int checkpoint_check_idle(struct session *s, struct error *e)
{
	if (s->phase == PHASE_ENDING || s->table->end.draining) {
		error_set(e, -ESHUTDOWN, "the session is about to end");
		return error_slug(e, "draining");
	}

	if (session_is_context(s))
		return context_refuse(s, e);

	if (s->queue.running || s->queue.n_waiting || s->history.request) {
		error_set(e, -EBUSY, "the session is busy: this works between its cells");
		error_remedy(e, "Wait for the answer of the running cell, or interrupt it.");
		return error_slug(e, "session_busy");
	}

	if (s->sandbox && !history_possible(s)) {
		error_set(e, -ENOTSUP,
			"this session has no snapshots: it shares the jail of another one");
		error_remedy(e, "Take a snapshot of the session that it belongs to.");
		return error_slug(e, "cannot_checkpoint");
	}
	return 0;
}

int session_checkpoint(
	struct session *s, const char *name, checkpoint_done done, void *userdata, struct error *e)
{
	char made[32];
	int r = checkpoint_check_idle(s, e);

	if (r < 0)
		return r;

	if (!s->table->config.max_checkpoints) {
		error_set(e, -ENOTSUP, "this server keeps no checkpoints (max-checkpoints is 0)");
		error_remedy(e,
			"{undo} restores the state before the last cell without a checkpoint; a fork keeps a state as a session of its own.");
		return error_slug(e, "cannot_checkpoint");
	}

	snprintf(made, sizeof(made), "cell %u", s->queue.cells);
	struct operation *o = operation_new(OPERATION_CHECKPOINT, userdata);
	if (!o || !(o->checkpoint.name = strdup(name ? name : made))) {
		operation_free(o);
		return error_set(e, -ENOMEM, "out of memory");
	}

	o->checkpoint.done = done;
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

	/* it is what a cell that fails goes back to: it only loses its name */
	if (c == s->history.latest) {
		free(c->name);
		c->name = NULL;
	} else {
		history_evict(s, c);
	}
	return 0;
}
