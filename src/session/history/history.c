/*
 * A session's way through time: snapshots of its guest before and after cells, and going back to
 * one when a cell ends the guest.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process.h"
#include "session/internal.h"

bool history_possible(const struct session *s)
{
	return s->sandbox && sandbox_can_snapshot(s->sandbox);
}

/* The cells to run again: none, from a state that is known or not. */
void history_forget_cells(struct session *s, bool good)
{
	buffer_finish(&s->history.replay.frames);
	s->history.replay.n = s->history.replay.same = 0;
	s->history.replay.wall_ms = 0;
	s->history.replay.good = good;
	s->history.replay.fresh = false;
	s->history.replay.deaths = 0;
}

static void forget_latest(struct session *s)
{
	s->history.latest = NULL;
	history_forget_cells(s, false);
}

void history_forget(struct session *s)
{
	forget_latest(s);
	s->history.head = 0;
	s->history.since = SNAPSHOT_CELLS_UNKNOWN;
}

/* ---- making snapshots --------------------------------------------------------------- */

/* The way from c's parent to o, which came from c. */
static void join_path(const struct snapshot *c, struct snapshot *o)
{
	struct buffer whole = BUFFER_INIT(REPLAY_BYTES);
	bool known = (!c->cells_since_parent || c->path.len) &&
		     (!o->cells_since_parent || o->path.len) &&
		     c->cells_since_parent + o->cells_since_parent <= REPLAY_CELLS;

	o->parent = c->parent;
	o->same = c->same == c->cells_since_parent ? c->cells_since_parent + o->same : c->same;
	o->cells_since_parent += c->cells_since_parent;
	o->from_start = c->from_start;
	if (known && buffer_append(&whole, c->path.data, c->path.len) == 0 &&
		buffer_append(&whole, o->path.data, o->path.len) == 0) {
		buffer_finish(&o->path);
		o->path = whole;
	} else {
		buffer_finish(&whole);
		buffer_finish(&o->path);
	}
}

/* Lets go of a copy; those that came from it now come from where it came from. */
void history_evict(struct session *s, struct snapshot *c)
{
	struct snapshot *o;
	for (o = NULL; (o = sandbox_next_snapshot(s->sandbox, o));)
		if (o->parent == c->snapshot_id)
			join_path(c, o);
	if (s->history.head == c->snapshot_id) {
		s->history.head = c->parent;
		s->history.since += c->cells_since_parent;
	}

	if (s->history.latest == c)
		forget_latest(s);
	snapshot_drop(c);
	sandbox_count_snapshots(s->sandbox);
}

/*
 * Of those that were made by themselves, the newest stay: the one to go back to, and as many as the
 * session keeps. After a way back the session's own state, and what undo goes back to, may be older
 * than those.
 */
static void prune(struct session *s)
{
	struct snapshot *head = s->history.head ? sandbox_snapshot(s->sandbox, s->history.head)
						: NULL;
	uint64_t stay = s->params.keep_checkpoints + 1, n = 0,
		 before = head && s->params.keep_checkpoints ? head->parent : 0;

	for (struct snapshot *c = sandbox_previous_snapshot(s->sandbox, NULL), *older; c;
		c = older) {
		older = sandbox_previous_snapshot(s->sandbox, c);
		if (!c->name && !c->held && snapshot_is_there(c) && n++ >= stay &&
			c->snapshot_id != before && c->snapshot_id != s->history.head)
			history_evict(s, c);
	}

	s->history.measured.due = true;
	evict_over_memory(s, false);
	sandbox_count_snapshots(s->sandbox);
}

/* Adds the request for a copy to the frames. */
static struct snapshot *ask(
	struct session *s, enum wire_type type, bool may_be_fragile, struct buffer *frames)
{
	struct snapshot *c;
	size_t start, before = frames->len;

	if (snapshot_create(s->sandbox, &c) < 0)
		return NULL;

	if (wire_begin(frames, type, 0, &start) < 0 ||
		wire_put_u64(frames, WIRE_SNAPSHOT_ID, c->snapshot_id) < 0 ||
		wire_put_u64(frames, WIRE_FRAGILE, may_be_fragile) < 0) {
		frames->len = before;
		snapshot_drop(c);
		return NULL;
	}

	wire_end(frames, start);
	c->must_be_new = type == WIRE_PARK;
	return c;
}

/* Snapshots that were asked for and will not come. */
void history_drop_asked(struct session *s)
{
	for (struct snapshot *c = sandbox_next_snapshot(s->sandbox, NULL), *next; c; c = next) {
		next = sandbox_next_snapshot(s->sandbox, c);
		if (c->respawning)
			evict_note(s, c);
		else if (!snapshot_is_there(c))
			snapshot_drop(c);
	}
}

bool history_awaits(struct session *s)
{
	struct snapshot *c;
	for (c = NULL; (c = sandbox_next_snapshot(s->sandbox, c));)
		if (c->respawning)
			return true;
	return false;
}

/* Has the guest a request that it has not come round to, beside the `new` ones? */
static bool asked_next(struct session *s, size_t new)
{
	struct snapshot *c;
	size_t n = 0;
	for (c = NULL; (c = sandbox_next_snapshot(s->sandbox, c));)
		n += !snapshot_is_kept(c);
	return n > new;
}

/*
 * Can the session come back to the state before the running cell, without a new copy and with
 * nothing different?
 */
static bool covered(struct session *s)
{
	return replay_possible(s) &&
	       (!s->history.replay.n ||
		       (replay_is_exact(s) && s->queue.running->transaction != TRANSACTION_EXACT));
}

void history_before_cell(struct session *s, struct buffer *frames)
{
	struct cell *c = s->queue.running;
	size_t now = 0;
	session_files_shared(s); /* else the cells since the snapshot lead to its state */

	/* inside another cell's main loop nothing can be copied */
	bool wanted = c->transaction && history_possible(s) && !s->queue.n_background;
	if (!wanted)
		snprintf(s->history.no_snapshot, sizeof(s->history.no_snapshot),
			!c->transaction ? "the cell is no transaction"
			: history_possible(s)
				? "another cell still runs in the background"
				: "this sandbox has no snapshots: it shares the jail of another one");
	bool needed = wanted && !covered(s);

	/*
	 * Should the guest refuse a copy, running the cells again is better than nothing, and is
	 * told.
	 */
	if (!wanted || (needed && (c->transaction == TRANSACTION_EXACT || !replay_possible(s))))
		forget_latest(s);
	if (needed)
		now = ask(s, WIRE_PARK, true, frames) != NULL;
	if (now)
		/* the guest waits for processes that end, if need be */
		session_restart_limit(s, CHECKPOINT_MS);
	if (wanted && !asked_next(s, now))
		ask(s, WIRE_PARK_NEXT, true, frames);
}

/*
 * A fragile copy may have been ended by the kernel, in place of the guest: then there is none of
 * the state before.
 */
void history_check_fragile(struct session *s)
{
	struct snapshot *c = s->history.latest;
	if (!c || !c->fragile || !snapshot_has_ended(c))
		return;
	history_evict(s, c);
	session_ran_out_of_memory(s); /* that was it, and not the next death */
	snprintf(s->history.no_snapshot, sizeof(s->history.no_snapshot),
		"the snapshot of the state before was evicted, because memory ran short");
}

void history_cell_done(struct session *s, bool repeatable)
{
	struct cell *c = s->queue.running;
	s->history.since++;
	history_check_fragile(s);
	if (!c->transaction || !repeatable || c->has_side_effects ||
		s->params.network.net == JAIL_NET_ALLOW) {
		history_forget_cells(s, false);
	} else if (s->history.replay.good) {
		replay_add(s);
	}
}

/* ---- what the guest says about them ---------------------------------------------------- */

static void take_path(struct session *s, struct snapshot *c)
{
	c->path = s->history.replay.frames;
	c->same = s->history.replay.same;
	s->history.replay.frames = (struct buffer)BUFFER_INIT(0);
}

/* A guest that was a copy itself has left another one in its place, or could not. */
static void take_again(
	struct session *s, struct snapshot *c, const int came[GUEST_FDS_MAX], bool refused)
{
	if (snapshot_parked(c, came[0], came[1]) < 0 || refused)
		evict_note(s, c);
	else
		c->respawning = false;
	prune(s);
	operation_begin(s);
}

/* What a guest says about a snapshot that it was asked for. */
struct said {
	uint64_t snapshot_id;
	bool refused, without_files, fragile;
};

static struct said read_parked(struct session *s, const struct wire_frame *f)
{
	struct said said = { 0 };
	struct wire_field field;

	for (size_t at = 0; wire_field_next(f, &at, &field) == 1;) {
		if (field.tag == WIRE_SNAPSHOT_ID) {
			wire_field_u64(&field, &said.snapshot_id);
		} else if (field.tag == WIRE_FILES_LEFT) {
			said.without_files = true;
		} else if (field.tag == WIRE_FRAGILE) {
			said.fragile = true;
		} else if (field.tag == WIRE_TEXT) {
			said.refused = true;
			snprintf(s->history.no_snapshot, sizeof(s->history.no_snapshot), "%.*s",
				(int)(field.len < 255 ? field.len : 255), field.data);
		}
	}
	return said;
}

static void take_refusal(struct session *s, struct snapshot *c, uint64_t snapshot_id)
{
	s->table->stats.snapshots_refused++;
	if (!s->history.replay.good)
		forget_latest(s);
	snapshot_drop(c);
	prune(s);
	operation_parked(s, snapshot_id, s->history.no_snapshot);
}

/* Is there a snapshot of this state already? */
static bool is_superfluous(const struct session *s, const struct snapshot *c)
{
	return s->history.latest && s->history.latest->snapshot_id == s->history.head &&
	       !s->history.since && !s->usage.uploads.touched && !c->must_be_new;
}

/* Makes the snapshot the head of the history: the cells since the last one lead to it. */
static void add_snapshot(struct session *s, struct snapshot *c)
{
	struct session_history *h = &s->history;

	/* in the order in which they were made, not asked for */
	sandbox_snapshot_is_newest(s->sandbox, c);
	c->from_start = h->replay.fresh;
	if (h->replay.good && h->replay.n == h->since)
		take_path(s, c);
	history_forget_cells(s, true);

	c->parent = h->head;
	c->cells_since_parent = h->since;
	h->head = c->snapshot_id;
	h->since = 0;
	h->latest = c;

	struct snapshot *same = c->cells_since_parent || !c->parent
					? NULL
					: sandbox_snapshot(s->sandbox, c->parent);
	if (same && !same->name && !same->held)
		history_evict(s, same); /* it was taken by itself a moment ago */
	prune(s);
}

/* False for a snapshot that was not asked for: the frame is forged. */
static bool take_parked(struct session *s, const struct wire_frame *f)
{
	struct said said = read_parked(s, f);
	struct snapshot *c = sandbox_snapshot(s->sandbox, said.snapshot_id);
	int came[GUEST_FDS_MAX];

	if (!c || snapshot_is_there(c))
		return false;

	guest_take_fds(sandbox_guest(s->sandbox), came);
	if (c->respawning) {
		take_again(s, c, came, said.refused);
		return true;
	}

	if (c->must_be_new && s->queue.running)
		session_restart_limit(
			s, 0); /* it was taken before the cell, whose time begins now */
	if (snapshot_parked(c, came[0], came[1]) < 0 || said.refused) {
		take_refusal(s, c, said.snapshot_id);
		return true;
	}

	s->table->stats.snapshots_parked++;
	s->history.no_snapshot[0] = '\0';
	if (is_superfluous(s, c)) {
		snapshot_drop(c);
		sandbox_count_snapshots(s->sandbox);
		return true;
	}

	c->cell = f->serial;
	c->without_files = said.without_files;
	c->fragile = said.fragile;
	add_snapshot(s, c);
	operation_parked(s, said.snapshot_id, NULL);
	return true;
}

bool history_frame(struct session *s, const struct wire_frame *f)
{
	if (f->type == WIRE_REPLAYED && s->phase == PHASE_REPLAYING) {
		history_replayed(s);
		return true;
	}
	return f->type == WIRE_PARKED && take_parked(s, f);
}

int history_ask_snapshot(struct session *s, uint64_t *ret_snapshot_id)
{
	_cleanup_buffer_ struct buffer frames = BUFFER_INIT(0);
	struct snapshot *c = ask(s, WIRE_PARK, false, &frames);
	if (!c)
		return -ENOMEM;
	*ret_snapshot_id = c->snapshot_id;
	guest_send(sandbox_guest(s->sandbox), &frames);
	return 0;
}
