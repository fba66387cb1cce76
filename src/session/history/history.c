/* A session's way through time: copies of its guest before and after cells, and going back to one when a cell ends the guest. */
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

bool travel_possible(const struct session *s)
{
	return s->berth && berth_can_park(s->berth);
}

/* The cells to run again: none, from a state that is known or not. */
void travel_forget_cells(struct session *s, bool good)
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
	travel_forget_cells(s, false);
}

void travel_forget(struct session *s)
{
	forget_latest(s);
	s->head = 0;
	s->since = COPY_STEPS_UNKNOWN;
}

/* ---- making copies --------------------------------------------------------------- */

/* The way from c's parent to o, which came from c. */
static void join_path(const struct copy *c, struct copy *o)
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
void travel_let_go(struct session *s, struct copy *c)
{
	struct copy *o;
	TAILQ_FOREACH(o, &s->berth->copies, link)
		if (o->parent == c->ticket)
			join_path(c, o);
	if (s->head == c->ticket) {
		s->head = c->parent;
		s->since += c->steps;
	}
	if (s->latest == c)
		forget_latest(s);
	copy_drop(c);
	berth_count_copies(s->berth);
}

/* Of those that were made by themselves, the newest stay: the one to go back to, and as many as the session keeps. After a way back the session's own state,
 * and what undo goes back to, may be older than those. */
static void prune(struct session *s)
{
	struct copy *head = s->head ? berth_copy(s->berth, s->head) : NULL;
	uint64_t stay = s->params.keep_checkpoints + 1, n = 0, before = head && s->params.keep_checkpoints ? head->parent : 0;
	for (struct copy *c = TAILQ_LAST(&s->berth->copies, copy_list), *older; c; c = older) {
		older = TAILQ_PREV(c, copy_list, link);
		if (!c->name && !c->held && c->pidfd >= 0 && n++ >= stay && c->ticket != before && c->ticket != s->head)
			travel_let_go(s, c);
	}
	s->weigh_due = true;
	room_for_memory(s, false);
	berth_count_copies(s->berth);
}

/* Adds the request for a copy to the frames. */
static struct copy *ask(struct session *s, enum wire_type type, bool may_be_fragile, struct buffer *frames)
{
	struct copy *c;
	size_t start, before = frames->len;
	if (copy_create(s->berth, &c) < 0)
		return NULL;
	if (wire_begin(frames, type, 0, &start) < 0 || wire_put_u64(frames, WIRE_TICKET, c->ticket) < 0 ||
		wire_put_u64(frames, WIRE_FRAGILE, may_be_fragile) < 0) {
		frames->len = before;
		copy_drop(c);
		return NULL;
	}
	wire_end(frames, start);
	c->exact = type == WIRE_PARK;
	return c;
}

/* Copies that were asked for and will not come. */
static void drop_asked(struct session *s)
{
	for (struct copy *c = TAILQ_FIRST(&s->berth->copies), *next; c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->again)
			room_lost(s, c);
		else if (c->pidfd < 0)
			copy_drop(c);
	}
}

bool travel_awaits(struct session *s)
{
	struct copy *c;
	TAILQ_FOREACH(c, &s->berth->copies, link)
		if (c->again)
			return true;
	return false;
}

/* Has the guest a request that it has not come round to, beside the `new` ones? */
static bool asked_next(struct session *s, size_t new)
{
	struct copy *c;
	size_t n = 0;
	TAILQ_FOREACH(c, &s->berth->copies, link)
		n += !copy_is_kept(c);
	return n > new;
}

/* Can the session come back to the state before the running cell, without a new copy and with nothing different? */
static bool covered(struct session *s)
{
	return replay_possible(s) && (!s->replay.n || (replay_is_exact(s) && !s->running->strict));
}

void travel_send_cell(struct session *s)
{
	struct cell *c = s->running;
	_cleanup_buffer_ struct buffer frames = BUFFER_INIT(0);
	size_t now = 0;
	bool wanted = c->transaction && travel_possible(s) && !s->n_left; /* inside another cell's main loop nothing can be copied */
	if (!wanted)
		snprintf(s->no_copy, sizeof(s->no_copy), c->transaction ? "this needs control groups, which this machine does not give" :
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
		guest_send(berth_guest(s->berth), &frames);
}

/* A fragile copy may have been ended by the kernel, in place of the guest: then there is none of the state before. */
static void look_after_fragile(struct session *s)
{
	struct copy *c = s->latest;
	if (!c || !c->fragile || !copy_has_ended(c))
		return;
	travel_let_go(s, c);
	session_ran_out_of_memory(s); /* that was it, and not the next death */
	snprintf(s->no_copy, sizeof(s->no_copy), "the copy of the state before was given up, because memory ran short");
}

void travel_cell_done(struct session *s, bool repeatable)
{
	struct cell *c = s->running;
	s->since++;
	look_after_fragile(s);
	if (!c->transaction || !repeatable || c->outside || s->params.network.net == JAIL_NET_ALLOW) {
		travel_forget_cells(s, false);
	} else if (s->replay.good) {
		replay_add(s);
	}
}

static void recovered(struct session *s);
static bool replays(const struct session *s);

/* ---- what the guest says about them ---------------------------------------------------- */

static void take_path(struct session *s, struct copy *c)
{
	c->path = s->replay.frames;
	c->same = s->replay.same;
	s->replay.frames = (struct buffer)BUFFER_INIT(0);
}

/* A guest that was a copy itself has left another one in its place, or could not. */
static void take_again(struct session *s, struct copy *c, const int came[GUEST_FDS_MAX], bool refused)
{
	if (copy_parked(c, came[0], came[1]) < 0 || refused)
		room_lost(s, c);
	else
		c->again = false;
	prune(s);
	operation_begin(s);
}

bool travel_frame(struct session *s, const struct wire_frame *f)
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
			snprintf(s->no_copy, sizeof(s->no_copy), "%.*s", (int)(field.len < 255 ? field.len : 255), field.data);
		}
	}
	struct copy *c = berth_copy(s->berth, ticket);
	if (!c || c->pidfd >= 0)
		return false;
	int came[GUEST_FDS_MAX];
	guest_take_fds(berth_guest(s->berth), came);
	if (c->again) {
		take_again(s, c, came, refused);
		return true;
	}
	if (c->exact && s->running)
		session_begin_limit(s, 0); /* it was taken before the cell, whose time begins now */
	if (copy_parked(c, came[0], came[1]) < 0 || refused) {
		s->table->stats.copies_refused++;
		if (!s->replay.good)
			forget_latest(s);
		copy_drop(c);
		prune(s);
		operation_parked(s, ticket, s->no_copy);
		return true;
	}
	s->table->stats.copies_parked++;
	s->no_copy[0] = '\0';
	if (s->latest && s->latest->ticket == s->head && !s->since && !s->files_touched && !c->exact) {
		copy_drop(c); /* there is one of this state */
		berth_count_copies(s->berth);
		return true;
	}
	TAILQ_REMOVE(&s->berth->copies, c, link); /* in the order in which they were made, not asked for */
	TAILQ_INSERT_TAIL(&s->berth->copies, c, link);
	c->cell = f->serial;
	c->files_left = files_left;
	c->fragile = fragile;
	c->from_start = s->replay.fresh;
	if (s->replay.good && s->replay.n == s->since)
		take_path(s, c);
	travel_forget_cells(s, true);
	c->parent = s->head;
	c->steps = s->since;
	s->head = c->ticket;
	s->since = 0;
	s->latest = c;
	struct copy *same = c->steps || !c->parent ? NULL : berth_copy(s->berth, c->parent);
	if (same && !same->name && !same->held)
		travel_let_go(s, same); /* it was taken by itself a moment ago */
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

/* Nothing but the copies survives. */
static void sweep(struct session *s)
{
	end_display(s);
	berth_kill_others(s->berth);
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
	berth_replace_guest(s->berth);
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
	if (!s->latest && (!s->replay.fresh || !travel_possible(s)))
		return false;
	if (!s->latest) {
		start_again(s);
		return true;
	}

	sweep(s);
	if (berth_revive(s->berth, s->latest, s->params.keep_files_bytes > 0, false, &s->latest) < 0)
		return false;
	begin_restore(s);
	return true;
}

bool travel_recover(struct session *s)
{
	bool known = s->running ? s->running->transaction : replay_fits(s); /* before a cell that was looked at when it started */
	if (!known || !s->replay.good)
		return false;
	/* Between cells, one of those that may differ can be what ended the interpreter, and would do so again. */
	if (!s->running && !replay_is_exact(s))
		s->death.back_to = replay_cut(s);
	return restore(s);
}

bool travel_fall_back(struct session *s)
{
	struct copy *c = s->head ? berth_copy(s->berth, s->head) : NULL;
	if (!c || c->pidfd < 0 || process_signal(c->pidfd, 0) < 0)
		return false;

	travel_forget_cells(s, true);
	s->latest = c;
	s->death.back_to = c->cell;
	return restore(s);
}

bool travel_retry(struct session *s)
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
	guest_send(berth_guest(s->berth), &frames);
}

static void recovered(struct session *s)
{
	s->guest_ready = true;
	session_stop_clock(s);
	s->head = s->latest ? s->latest->ticket : 0;
	s->since = s->replay.n;
	replay_done(s);
	operation_restored(s);
	session_start_next(s);
}

int travel_park(struct session *s, uint64_t *ret_ticket)
{
	_cleanup_buffer_ struct buffer frames = BUFFER_INIT(0);
	struct copy *c = ask(s, WIRE_PARK, false, &frames);
	if (!c)
		return -ENOMEM;
	*ret_ticket = c->ticket;
	guest_send(berth_guest(s->berth), &frames);
	return 0;
}

void travel_start_again(struct session *s)
{
	session_stop_clock(s);
	drop_asked(s);
	s->latest = NULL;
	start_again(s);
}

int travel_go_back(struct session *s, struct copy *c, bool replay)
{
	session_stop_clock(s);
	drop_asked(s);
	bool quiet = !s->n_left && berth_is_quiet(s->berth);
	if (quiet)
		end_display(s);
	else
		sweep(s);
	int r = berth_revive(s->berth, c, s->params.keep_files_bytes > 0, quiet, &s->latest);
	if (r < 0)
		return r;
	if (!replay)
		travel_forget_cells(s, true);
	s->table->stats.rollbacks++;
	begin_restore(s);
	return 0;
}

void travel_ready(struct session *s)
{
	s->guest_ready = false;
	if (!s->setup_sent)
		session_send_setup(s);
	else
		tools_send(s, true); /* they may have changed since the copy was made */
	if (s->replay.n)
		send_replay(s);
	else
		recovered(s);
}
