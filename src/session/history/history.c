/* A session's way through time: snapshots of its guest before and after cells, and going back to one when a cell ends the guest. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process.h"
#include "sandbox/sandbox.h"
#include "session/internal.h"

enum {
	RECOVER_MS = 10000,          /* for a copy to come to life; files are written in that time too */
};

bool history_possible(const struct session *s)
{
	return s->sandbox && sandbox_can_snapshot(s->sandbox);
}

/* The cells to run again: none, from a state that is known or not. */
void history_forget_cells(struct session *s, bool good)
{
	buffer_finish(&s->replay.frames);
	s->replay.n = s->replay.same = 0;
	s->replay.wall_ms = 0;
	s->replay.good = good;
	s->replay.fresh = false;
}

static void forget_latest(struct session *s)
{
	s->latest = NULL;
	history_forget_cells(s, false);
}

void history_forget(struct session *s)
{
	forget_latest(s);
	s->head = 0;
	s->since = COPY_STEPS_UNKNOWN;
}

/* ---- making snapshots --------------------------------------------------------------- */

/* The way from c's parent to o, which came from c. */
static void join_path(const struct snapshot *c, struct snapshot *o)
{
	struct buffer whole = BUFFER_INIT(REPLAY_BYTES);
	bool known = (!c->steps || c->path.len) && (!o->steps || o->path.len) && c->steps + o->steps <= REPLAY_CELLS;
	o->parent = c->parent;
	o->same = c->same == c->steps ? c->steps + o->same : c->same;
	o->steps += c->steps;
	o->from_start = c->from_start;
	if (known && buffer_append(&whole, c->path.data, c->path.len) == 0 && buffer_append(&whole, o->path.data, o->path.len) == 0) {
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
	TAILQ_FOREACH(o, &s->sandbox->snapshots, link)
		if (o->parent == c->ticket)
			join_path(c, o);
	if (s->head == c->ticket) {
		s->head = c->parent;
		s->since += c->steps;
	}
	if (s->latest == c)
		forget_latest(s);
	snapshot_drop(c);
	sandbox_count_snapshots(s->sandbox);
}

/* Of those that were made by themselves, the newest stay: the one to go back to, and as many as the session keeps. After a way back the session's own state,
 * and what undo goes back to, may be older than those. */
static void prune(struct session *s)
{
	struct snapshot *head = s->head ? sandbox_snapshot(s->sandbox, s->head) : NULL;
	uint64_t stay = s->params.keep_checkpoints + 1, n = 0, before = head && s->params.keep_checkpoints ? head->parent : 0;
	for (struct snapshot *c = TAILQ_LAST(&s->sandbox->snapshots, snapshot_list), *older; c; c = older) {
		older = TAILQ_PREV(c, snapshot_list, link);
		if (!c->name && !c->held && c->pidfd >= 0 && n++ >= stay && c->ticket != before && c->ticket != s->head)
			history_evict(s, c);
	}
	s->weigh_due = true;
	evict_over_memory(s, false);
	sandbox_count_snapshots(s->sandbox);
}

/* Adds the request for a copy to the frames. */
static struct snapshot *ask(struct session *s, enum wire_type type, bool may_be_fragile, struct buffer *frames)
{
	struct snapshot *c;
	size_t start, before = frames->len;
	if (snapshot_create(s->sandbox, &c) < 0)
		return NULL;
	if (wire_begin(frames, type, 0, &start) < 0 || wire_put_u64(frames, WIRE_TICKET, c->ticket) < 0 ||
		wire_put_u64(frames, WIRE_FRAGILE, may_be_fragile) < 0) {
		frames->len = before;
		snapshot_drop(c);
		return NULL;
	}
	wire_end(frames, start);
	c->exact = type == WIRE_PARK;
	return c;
}

/* Snapshots that were asked for and will not come. */
static void drop_asked(struct session *s)
{
	for (struct snapshot *c = TAILQ_FIRST(&s->sandbox->snapshots), *next; c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->again)
			evict_note(s, c);
		else if (c->pidfd < 0)
			snapshot_drop(c);
	}
}

bool history_awaits(struct session *s)
{
	struct snapshot *c;
	TAILQ_FOREACH(c, &s->sandbox->snapshots, link)
		if (c->again)
			return true;
	return false;
}

/* Has the guest a request that it has not come round to, beside the `new` ones? */
static bool asked_next(struct session *s, size_t new)
{
	struct snapshot *c;
	size_t n = 0;
	TAILQ_FOREACH(c, &s->sandbox->snapshots, link)
		n += !snapshot_is_kept(c);
	return n > new;
}

/* Can the session come back to the state before the running cell, without a new copy and with nothing different? */
static bool covered(struct session *s)
{
	return replay_possible(s) && (!s->replay.n || (replay_is_exact(s) && !s->running->strict));
}

void history_send_cell(struct session *s)
{
	struct cell *c = s->running;
	_cleanup_buffer_ struct buffer frames = BUFFER_INIT(0);
	size_t now = 0;
	bool wanted = c->transaction && history_possible(s) && !s->n_left; /* inside another cell's main loop nothing can be copied */
	if (!wanted)
		snprintf(s->no_snapshot, sizeof(s->no_snapshot), c->transaction ? "this needs control groups, which this machine does not give" :
									  "the cell is no transaction");
	bool needed = wanted && !covered(s);
	/* Should the guest refuse a copy, running the cells again is better than nothing, and is told. */
	if (!wanted || (needed && (c->strict || !replay_possible(s))))
		forget_latest(s);
	if (needed)
		now = ask(s, WIRE_PARK, true, &frames) != NULL;
	if (now)
		session_begin_limit(s, CHECKPOINT_MS); /* the guest waits for processes that end, if need be */
	if (wanted && !asked_next(s, now))
		ask(s, WIRE_PARK_NEXT, true, &frames);
	s->files_touched = false;
	if (buffer_append(&frames, c->frame.data, c->frame.len) == 0) /* a copy of it: the cell may have to be run again */
		guest_send(sandbox_guest(s->sandbox), &frames);
}

/* A fragile copy may have been ended by the kernel, in place of the guest: then there is none of the state before. */
static void look_after_fragile(struct session *s)
{
	struct snapshot *c = s->latest;
	if (!c || !c->fragile || !copy_has_ended(c))
		return;
	history_evict(s, c);
	session_ran_out_of_memory(s); /* that was it, and not the next death */
	snprintf(s->no_snapshot, sizeof(s->no_snapshot), "the copy of the state before was given up, because memory ran short");
}

void history_cell_done(struct session *s, bool repeatable)
{
	struct cell *c = s->running;
	s->since++;
	look_after_fragile(s);
	if (!c->transaction || !repeatable || c->outside || s->params.network.net == JAIL_NET_ALLOW) {
		history_forget_cells(s, false);
	} else if (s->replay.good) {
		replay_add(s);
	}
}

static void recovered(struct session *s);
static bool replays(const struct session *s);

/* ---- what the guest says about them ---------------------------------------------------- */

static void take_path(struct session *s, struct snapshot *c)
{
	c->path = s->replay.frames;
	c->same = s->replay.same;
	s->replay.frames = (struct buffer)BUFFER_INIT(0);
}

/* A guest that was a copy itself has left another one in its place, or could not. */
static void take_again(struct session *s, struct snapshot *c, const int came[GUEST_FDS_MAX], bool refused)
{
	if (snapshot_parked(c, came[0], came[1]) < 0 || refused)
		evict_note(s, c);
	else
		c->again = false;
	prune(s);
	operation_begin(s);
}

bool history_frame(struct session *s, const struct wire_frame *f)
{
	struct wire_field field;
	size_t at = 0;
	uint64_t ticket = 0;
	bool refused = false, files_left = false, fragile = false;
	if (f->type == WIRE_REPLAYED && replays(s)) {
		recovered(s);
		return true;
	}
	if (f->type != WIRE_PARKED)
		return false;
	while (wire_field_next(f, &at, &field) == 1) {
		if (field.tag == WIRE_TICKET) {
			wire_field_u64(&field, &ticket);
		} else if (field.tag == WIRE_FILES_LEFT) {
			files_left = true;
		} else if (field.tag == WIRE_FRAGILE) {
			fragile = true;
		} else if (field.tag == WIRE_TEXT) {
			refused = true;
			snprintf(s->no_snapshot, sizeof(s->no_snapshot), "%.*s", (int)(field.len < 255 ? field.len : 255), field.data);
		}
	}
	struct snapshot *c = sandbox_snapshot(s->sandbox, ticket);
	if (!c || c->pidfd >= 0)
		return false;
	int came[GUEST_FDS_MAX];
	guest_take_fds(sandbox_guest(s->sandbox), came);
	if (c->again) {
		take_again(s, c, came, refused);
		return true;
	}
	if (c->exact && s->running)
		session_begin_limit(s, 0); /* it was taken before the cell, whose time begins now */
	if (snapshot_parked(c, came[0], came[1]) < 0 || refused) {
		s->table->stats.snapshots_refused++;
		if (!s->replay.good)
			forget_latest(s);
		snapshot_drop(c);
		prune(s);
		operation_parked(s, ticket, s->no_snapshot);
		return true;
	}
	s->table->stats.snapshots_parked++;
	s->no_snapshot[0] = '\0';
	if (s->latest && s->latest->ticket == s->head && !s->since && !s->files_touched && !c->exact) {
		snapshot_drop(c); /* there is one of this state */
		sandbox_count_snapshots(s->sandbox);
		return true;
	}
	TAILQ_REMOVE(&s->sandbox->snapshots, c, link); /* in the order in which they were made, not asked for */
	TAILQ_INSERT_TAIL(&s->sandbox->snapshots, c, link);
	c->cell = f->serial;
	c->files_left = files_left;
	c->fragile = fragile;
	c->from_start = s->replay.fresh;
	if (s->replay.good && s->replay.n == s->since)
		take_path(s, c);
	history_forget_cells(s, true);
	c->parent = s->head;
	c->steps = s->since;
	s->head = c->ticket;
	s->since = 0;
	s->latest = c;
	struct snapshot *same = c->steps || !c->parent ? NULL : sandbox_snapshot(s->sandbox, c->parent);
	if (same && !same->name && !same->held)
		history_evict(s, same); /* it was taken by itself a moment ago */
	prune(s);
	operation_parked(s, ticket, NULL);
	return true;
}

/* ---- going back -------------------------------------------------------------------------- */

static void end_display(struct session *s)
{
	if (s->display)
		display_restart(s->display); /* it is among what is about to be killed; not when its end is noticed: the new guest may be quicker */
}

/* Nothing but the snapshots survives. */
static void sweep(struct session *s)
{
	end_display(s);
	sandbox_kill_others(s->sandbox);
}

static void begin_restore(struct session *s)
{
	operation_active(s)->stage = OPERATION_RESTORE;
	s->guest_ready = false;
	s->n_left = 0;
	session_start_clock(s, CLOCK_RECOVERING, RECOVER_MS);
}

/* A session without a copy: before its first cell it was a fresh interpreter and an empty directory. */
static void start_again(struct session *s)
{
	begin_restore(s);
	s->setup_sent = false;
	s->wipe = s->params.keep_files_bytes > 0;
	end_display(s);
	sandbox_replace_guest(s->sandbox);
}

/* Makes an interpreter from the last snapshot, or a fresh one where the kept cells start from that. */
static bool restore(struct session *s)
{
	session_stop_clock(s);
	drop_asked(s);
	bool had_copy = s->latest;
	look_after_fragile(s);
	if (had_copy && !s->latest)
		return false;
	if (!s->latest && (!s->replay.fresh || !history_possible(s)))
		return false;
	if (!s->latest) {
		start_again(s);
		return true;
	}

	sweep(s);
	if (sandbox_revive(s->sandbox, s->latest, s->params.keep_files_bytes > 0, false, &s->latest) < 0)
		return false;
	begin_restore(s);
	return true;
}

bool history_recover(struct session *s)
{
	bool known = s->running ? s->running->transaction : replay_fits(s); /* before a cell that was looked at when it started */
	if (!known || !s->replay.good)
		return false;
	/* Between cells, one of those that may differ can be what ended the interpreter, and would do so again. */
	if (!s->running && !replay_is_exact(s))
		s->death.back_to = replay_cut(s);
	return restore(s);
}

bool history_fall_back(struct session *s)
{
	struct snapshot *c = s->head ? sandbox_snapshot(s->sandbox, s->head) : NULL;
	if (!c || c->pidfd < 0 || process_signal(c->pidfd, 0) < 0)
		return false;

	history_forget_cells(s, true);
	s->latest = c;
	s->death.back_to = c->cell;
	return restore(s);
}

bool history_retry(struct session *s)
{
	return restore(s);
}

static bool replays(const struct session *s)
{
	const struct operation *o = operation_active(s);
	return o && o->stage == OPERATION_REPLAY;
}

/* From the copy's state to that before the cell that failed. */
static void send_replay(struct session *s)
{
	_cleanup_buffer_ struct buffer frames = BUFFER_INIT(0);
	size_t start, at = 0;
	if (buffer_append(&frames, s->replay.frames.data, s->replay.frames.len) < 0 || wire_begin(&frames, WIRE_REPLAY, 0, &start) < 0) {
		operation_restore_failed(s);
		return;
	}
	wire_end(&frames, start);
	while (at < start)
		at += wire_retype(&frames, at, WIRE_REPLAY);
	operation_active(s)->stage = OPERATION_REPLAY;
	guest_send(sandbox_guest(s->sandbox), &frames);
}

static void recovered(struct session *s)
{
	s->guest_ready = true;
	session_send_paths(s); /* one may have come while cells were run again */
	session_stop_clock(s);
	s->head = s->latest ? s->latest->ticket : 0;
	s->since = s->replay.n;
	replay_done(s);
	operation_restored(s);
	session_start_next(s);
}

int history_park(struct session *s, uint64_t *ret_ticket)
{
	_cleanup_buffer_ struct buffer frames = BUFFER_INIT(0);
	struct snapshot *c = ask(s, WIRE_PARK, false, &frames);
	if (!c)
		return -ENOMEM;
	*ret_ticket = c->ticket;
	guest_send(sandbox_guest(s->sandbox), &frames);
	return 0;
}

void history_start_again(struct session *s)
{
	session_stop_clock(s);
	drop_asked(s);
	s->latest = NULL;
	start_again(s);
}

int history_go_back(struct session *s, struct snapshot *c, bool replay)
{
	session_stop_clock(s);
	drop_asked(s);
	bool quiet = !s->n_left && sandbox_is_quiet(s->sandbox);
	if (quiet)
		end_display(s);
	else
		sweep(s);
	s->guest_ready = false; /* it is let go of, whatever comes of the snapshot */
	int r = sandbox_revive(s->sandbox, c, s->params.keep_files_bytes > 0, quiet, &s->latest);
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
	s->guest_ready = false;
	if (!s->setup_sent)
		session_send_setup(s);
	else {
		session_send_paths(s);
		tools_send(s, true); /* they may have changed since the copy was made */
	}
	if (s->replay.n)
		send_replay(s);
	else
		recovered(s);
}
