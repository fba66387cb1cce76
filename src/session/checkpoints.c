/* Checkpoints: copies somebody asked for, and going back to them. One request at a time in a session, between its cells. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "session/berth.h"
#include "session/internal.h"

enum { CHECKPOINT_MS = 10000, FORK_MS = 60000 };

/* A request on its way. */
struct travel {
	enum { CHECKPOINT, ROLLBACK, FORK } kind;
	bool replay;     /* and the session's cells to run again after it */
	bool from_start; /* not to a copy, but to a fresh interpreter */
	bool asked;      /* the guest was */
	uint64_t ticket; /* of the copy that is awaited, or gone back to */
	char *name;
	checkpoint_done done; /* NULL when its asker left, and for a fork */
	void *userdata;
	/* of a fork */
	fork_done fork_done;
	bool same_numbers;
	struct session_params own; /* name, metadata and ages of the new ones, where they are not the parent's */
	unsigned count, born;
	struct session **children; /* owned; those that are there or on their way */
	char why[256];             /* one of them failed */
};

/* ---- looking ------------------------------------------------------------------- */

static void describe(const struct session *s, struct copy *c, bool size, struct checkpoint_info *ret)
{
	const struct copy *parent = c->parent ? berth_copy(s->berth, c->parent) : NULL;
	*ret = (struct checkpoint_info){ .id = c->id, .name = c->name, .parent = parent ? parent->id : NULL, .cell = c->cell,
		.created_wall_ns = c->wall_ns, .size_bytes = size ? room_size(c) : 0, .current = c->ticket == s->head, .files = !c->files_left };
}

bool session_checkpoint_info(struct session *s, unsigned i, bool size, struct checkpoint_info *ret)
{
	struct copy *c;
	if (!s->berth)
		return false;
	TAILQ_FOREACH(c, &s->berth->copies, link) {
		if (!copy_is_kept(c) || i--)
			continue;
		describe(s, c, size, ret);
		return true;
	}
	return false;
}

/* By id, or the newest of that name. */
static struct copy *find(struct session *s, const char *which)
{
	struct copy *c;
	TAILQ_FOREACH_REVERSE(c, &s->berth->copies, copy_list, link)
		if (copy_is_kept(c) && (text_eq(c->id, which) || text_eq(c->name, which)))
			return c;
	return NULL;
}

static int not_found(const char *which, struct error *e)
{
	error_set(e, -ENOENT, "there is no checkpoint %.64s in this session", which);
	error_remedy(e, "GET …/checkpoints lists those there are; the one that was not used for longest goes when there are too many.");
	return error_slug(e, "checkpoint_not_found");
}

/* ---- the end of a request -------------------------------------------------------- */

static void finish(struct session *s, const struct error *e, struct copy *c)
{
	struct travel *t = TAKE_PTR(s->travel);
	_cleanup_free_ char *let_go = t->done && !e ? TAKE_PTR(s->let_go) : NULL;
	struct checkpoint_info info;
	struct copy *source = t->kind == FORK && s->berth ? berth_copy(s->berth, t->ticket) : NULL;
	if (source)
		source->held = false;
	if (!s->recovering && s->clock == CLOCK_RECOVERING)
		session_stop_clock(s);
	if (c)
		describe(s, c, false, &info);
	if (t->done)
		t->done(t->userdata, e, c ? &info : NULL, let_go);
	if (t->fork_done)
		t->fork_done(t->userdata, e, t->children, e ? 0 : t->count);
	bool unwanted = t->kind == FORK && !t->fork_done; /* nobody will ever know their ids */
	for (unsigned i = 0; (e || unwanted) && i < t->count && t->children; i++)
		if (t->children[i])
			session_end(t->children[i], e ? "not all of the forks could be made" : "whoever asked for the fork left");
	free(t->children);
	session_params_finish(&t->own);
	free(t->name);
	free(t);
}

static const char *slug_of(const struct travel *t)
{
	return t->kind == ROLLBACK ? "cannot_rollback" : t->kind == FORK ? "cannot_fork" : "cannot_checkpoint";
}

void travel_cancel(struct session *s, const char *why)
{
	struct error e = { 0 };
	if (!s->travel)
		return;
	error_set(&e, -ECANCELED, "%s", why);
	error_remedy(&e, s->ending ? "Make a new one with POST /v1/sessions; its variables and files are gone." :
				     "Look at the session with GET /v1/sessions/ID and try again.");
	error_slug(&e, s->ending ? "session_gone" : slug_of(s->travel));
	finish(s, &e, NULL);
}

void session_travel_abandon(struct session *s, void *userdata)
{
	if (s->travel && s->travel->userdata == userdata) {
		s->travel->done = NULL;
		s->travel->fork_done = NULL;
	}
}

static void spread(struct session *s, struct copy *c);

/* ---- checkpoints ------------------------------------------------------------------- */

static void name_it(struct session *s, struct copy *c)
{
	room_for_one(s);
	c->name = TAKE_PTR(s->travel->name);
	c->used_ns = clock_now_ns();
	s->table->stats.checkpoints++;
	finish(s, NULL, c);
}

void travel_parked(struct session *s, uint64_t ticket, const char *why)
{
	struct error e = { 0 };
	if (!s->travel || s->travel->kind == ROLLBACK || !s->travel->asked || s->travel->ticket != ticket)
		return;
	if (!why && s->travel->kind == FORK) {
		spread(s, s->latest);
		return;
	}
	if (!why) {
		name_it(s, s->latest);
	} else {
		error_set(&e, -EDEADLK, "no copy of the session can be taken now: %s", why);
		error_remedy(&e, "Do what it says in a cell, then try again.");
		error_slug(&e, slug_of(s->travel));
		finish(s, &e, NULL);
	}
	session_start_next(s);
}

static void begin_checkpoint(struct session *s)
{
	struct travel *t = s->travel;
	if (!s->setup_sent)
		session_send_setup(s);
	/* The copy that was taken after the last cell will do, unless it is another checkpoint already. */
	if (s->latest && s->replay.good && !s->replay.n && !s->files_touched && (t->kind == FORK || !s->latest->name)) {
		if (t->kind == FORK)
			spread(s, s->latest);
		else
			name_it(s, s->latest);
		return;
	}
	if (travel_park(s, &t->ticket) < 0) {
		travel_cancel(s, "the interpreter takes no requests now");
		return;
	}
	t->asked = true;
	session_start_clock(s, CLOCK_RECOVERING, CHECKPOINT_MS);
}

/* ---- rollbacks ----------------------------------------------------------------------- */

static void begin_rollback(struct session *s)
{
	struct travel *t = s->travel;
	struct copy *c = berth_copy(s->berth, t->ticket);
	struct error e = { 0 };
	if (t->from_start) {
		t->asked = true;
		s->replay.fresh = s->replay.good = true;
		travel_start_again(s);
		return;
	}
	if (!c || process_signal(c->pidfd, 0) < 0) {
		if (c)
			travel_let_go(s, c);
		error_set(&e, -ENOENT, "the checkpoint has died (was memory short?)");
		error_remedy(&e, "The session goes on as it is. GET …/checkpoints lists what is left.");
		error_slug(&e, "checkpoint_not_found");
		finish(s, &e, NULL);
		return;
	}
	t->asked = true;
	if (travel_go_back(s, c, t->replay) < 0)
		travel_failed(s);
}

void travel_arrived(struct session *s)
{
	s->files_touched = false;
	if (s->latest)
		s->latest->used_ns = clock_now_ns();
	finish(s, NULL, s->latest);
}

/* The frames without the last one of them. */
static void drop_last(struct buffer *b)
{
	size_t at = 0, last = 0;
	while (at < b->len) {
		last = at;
		at += wire_retype(b, at, WIRE_EXECUTE);
	}
	b->len = last;
}

static bool has_named(struct session *s)
{
	struct copy *c;
	TAILQ_FOREACH(c, &s->berth->copies, link)
		if (c->name)
			return true;
	return false;
}

/* The state before the last cell, when the session's is that of `head` and some cells that can be run again. */
static bool undo_in_path(struct session *s, struct travel *t)
{
	if (!s->params.keep_files_bytes || (s->latest ? s->latest->files_left : !s->replay.fresh || has_named(s)))
		return false;
	drop_last(&s->replay.frames);
	t->replay = --s->replay.n > 0;
	t->from_start = !s->latest;
	t->ticket = s->latest ? s->latest->ticket : 0;
	return true;
}

/* The same, when the state is that of a copy: on the way to it from its parent. */
static bool undo_to_parent(struct session *s, struct travel *t, struct copy *c)
{
	struct copy *parent = c->parent ? berth_copy(s->berth, c->parent) : NULL;
	if (parent && c->steps == 1) {
		t->ticket = parent->ticket;
		return true;
	}
	if (!c->path.len || !s->params.keep_files_bytes || (parent ? parent->files_left : !c->from_start || has_named(s)))
		return false;
	travel_forget_cells(s, true);
	if (buffer_append(&s->replay.frames, c->path.data, c->path.len) < 0)
		return false;
	drop_last(&s->replay.frames);
	s->replay.n = c->steps - 1;
	t->replay = s->replay.n > 0;
	t->from_start = !parent;
	t->ticket = parent ? parent->ticket : 0;
	return true;
}

static bool plan_undo(struct session *s, struct travel *t)
{
	struct copy *c = s->head ? berth_copy(s->berth, s->head) : NULL;
	if (s->replay.good && s->replay.n)
		return undo_in_path(s, t);
	if (s->since == 1 && c) {
		t->ticket = c->ticket;
		return true;
	}
	while (c && !s->since && !c->steps && c->parent) /* copies of one state */
		c = berth_copy(s->berth, c->parent);
	return c && !s->since && undo_to_parent(s, t, c);
}

/* ---- forks ----------------------------------------------------------------------------- */

static void fail_fork(struct session *s, int err, const char *why)
{
	struct error e = { 0 };
	error_set(&e, err, "the session cannot be forked: %s", why);
	error_remedy(&e, "Do what it says, or fork from a checkpoint that was taken before.");
	error_slug(&e, "cannot_fork");
	finish(s, &e, NULL);
	session_start_next(s);
}

/* The parent's parameters with what the new ones have of their own. */
static int child_params(const struct session *s, const struct session_params *own, struct session_params *ret)
{
	_cleanup_free_ char *name = own->name ? strdup(own->name) : NULL, *metadata = own->metadata ? strdup(own->metadata) : NULL;
	if (!name != !own->name || !metadata != !own->metadata || session_params_copy(&s->params, ret) < 0)
		return -ENOMEM;
	ret->name = TAKE_PTR(name);
	if (metadata) {
		free(ret->metadata);
		ret->metadata = TAKE_PTR(metadata);
	}
	ret->ttl_s = own->ttl_s > 0 ? own->ttl_s : ret->ttl_s;
	ret->idle_timeout_s = own->idle_timeout_s > 0 ? own->idle_timeout_s : ret->idle_timeout_s;
	return 0;
}

static void adopt(struct session *s, struct session *child)
{
	child->fork_of = s;
	memcpy(child->from, s->id, sizeof(child->from));
}

/* Asks for all of them; each says travel_born() when it is there. */
static void spread(struct session *s, struct copy *c)
{
	struct travel *t = s->travel;
	struct error e = { 0 };
	t->asked = true;
	if (!c) {
		fail_fork(s, -ENOENT, "the checkpoint is gone");
		return;
	}
	session_stop_clock(s);
	struct fork_source from = { c, !t->same_numbers };
	t->ticket = c->ticket;
	c->held = true;
	int r = 0;
	for (unsigned i = 0; r == 0 && i < t->count; i++) {
		struct session_params p;
		if ((r = child_params(s, &t->own, &p)) < 0)
			break;
		s->table->fork_source = &from;
		r = session_create(s->table, &p, &e, &t->children[i]);
		s->table->fork_source = NULL;
		if (r < 0)
			session_params_finish(&p);
		else
			adopt(s, t->children[i]);
	}
	if (r < 0)
		fail_fork(s, r, e.err ? e.text : "out of memory");
	else
		session_start_clock(s, CLOCK_RECOVERING, FORK_MS);
}

void travel_born(struct session *child, const char *why)
{
	struct session *s = child->fork_of;
	struct travel *t = s ? s->travel : NULL;
	child->fork_of = NULL;
	if (!t || t->kind != FORK)
		return;
	for (unsigned i = 0; why && i < t->count; i++)
		if (t->children[i] == child)
			t->children[i] = NULL; /* it ends by itself */
	if (why && !t->why[0])
		snprintf(t->why, sizeof(t->why), "%s", why);
	if (++t->born < t->count)
		return;
	if (t->why[0]) {
		char text[sizeof(t->why)];
		memcpy(text, t->why, sizeof(text));
		fail_fork(s, -ECANCELED, text);
		return;
	}
	s->table->stats.forks += t->count;
	finish(s, NULL, NULL);
	session_start_next(s);
}

struct session *sessions_find_checkpoint(struct sessions *t, const char *id, uint64_t owner)
{
	for (struct session *s = sessions_next(t, NULL); s; s = sessions_next(t, s)) {
		struct copy *c = s->params.owner == owner && s->berth ? find(s, id) : NULL;
		if (c && text_eq(c->id, id))
			return s;
	}
	return NULL;
}

const char *session_fork_note(const struct session *s)
{
	return s->berth ? berth_note(s->berth) : "";
}

/* What a fork cannot have two of. */
static int check_forkable(struct session *s, const struct fork_request *q, struct error *e)
{
	const char *why = s->display ? "it has a display" : s->params.network.net == JAIL_NET_ALLOW ? "it may reach the network" : NULL;
	if (why) {
		error_set(e, -ENOTSUP, "the session cannot be forked: %s", why);
		error_remedy(e, "Make it without, or make a new session and run the cells again.");
		return error_slug(e, "cannot_fork");
	}
	if (s->table->stats.live + q->count > s->table->config.max_sessions) {
		error_set(e, -ENOSPC, "%u more sessions are more than the %u this server allows", q->count, s->table->config.max_sessions);
		error_remedy(e, "DELETE sessions that are no longer needed, or raise --max-sessions.");
		return error_slug(e, "too_many_sessions");
	}
	return 0;
}

/* ---- asking ---------------------------------------------------------------------------- */

static int check_idle(struct session *s, struct error *e)
{
	if (s->ending || s->table->draining) {
		error_set(e, -ESHUTDOWN, "the session is about to end");
		return error_slug(e, "draining");
	}
	if (s->running || s->queued || s->travel) {
		error_set(e, -EBUSY, "the session is busy: this works between its cells");
		error_remedy(e, "Wait for the answer of the running cell, or interrupt it.");
		return error_slug(e, "session_busy");
	}
	if (s->berth && !travel_possible(s)) {
		error_set(e, -ENOTSUP, "copies of a session need control groups, which this machine does not give");
		error_remedy(e, "`glovebox doctor` says what is missing.");
		return error_slug(e, "cannot_checkpoint");
	}
	return 0;
}

void travel_begin(struct session *s)
{
	if (!s->travel || s->travel->asked || !s->guest_ready || s->running || s->recovering)
		return;
	if (travel_awaits(s)) {
		session_start_clock(s, CLOCK_RECOVERING, CHECKPOINT_MS); /* it comes by itself, if the guest is what it should be */
		return;
	}
	if (s->travel->kind == ROLLBACK)
		begin_rollback(s);
	else if (s->travel->kind == FORK && s->travel->ticket)
		spread(s, berth_copy(s->berth, s->travel->ticket));
	else
		begin_checkpoint(s);
}

static int begin(struct session *s, struct travel *t, checkpoint_done done, void *userdata)
{
	t->done = done;
	t->userdata = userdata;
	s->travel = t;
	s->used_ns = clock_now_ns();
	travel_begin(s);
	return 0;
}

int session_checkpoint(struct session *s, const char *name, checkpoint_done done, void *userdata, struct error *e)
{
	char made[32];
	int r = check_idle(s, e);
	if (r < 0)
		return r;
	if (!s->table->config.max_checkpoints) {
		error_set(e, -ENOTSUP, "this server keeps no checkpoints (--max-checkpoints 0)");
		error_remedy(e, "{\"undo\": true} takes the last cell back without one; a fork keeps a state as a session of its own.");
		return error_slug(e, "cannot_checkpoint");
	}
	snprintf(made, sizeof(made), "cell %u", s->cells);
	struct travel *t = calloc(1, sizeof(*t));
	if (!t || !(t->name = strdup(name ? name : made))) {
		free(t);
		return error_set(e, -ENOMEM, "out of memory");
	}
	return begin(s, t, done, userdata);
}

int session_rollback(struct session *s, const char *which, checkpoint_done done, void *userdata, struct error *e)
{
	int r = check_idle(s, e);
	if (r < 0)
		return r;
	struct copy *c = which && s->guest_ready ? find(s, which) : NULL;
	if (which && !c)
		return not_found(which, e);
	struct travel *t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(e, -ENOMEM, "out of memory");
	t->kind = ROLLBACK;
	if (c) {
		t->ticket = c->ticket;
	} else if (!s->guest_ready || !plan_undo(s, t)) {
		free(t);
		error_set(e, -ENOENT, "what was before the last cell is not kept");
		error_remedy(e, has_named(s) ? "Go back to one of the checkpoints: to run the cells again from the session's start would end them. A larger "
						      "keep_checkpoints keeps more cells." :
						      "Make the session with a larger keep_checkpoints, or take checkpoints and go back to one of them.");
		return error_slug(e, "nothing_to_undo");
	}
	return begin(s, t, done, userdata);
}

int session_checkpoint_delete(struct session *s, const char *which, struct error *e)
{
	int r = check_idle(s, e);
	struct copy *c = r < 0 || !s->berth ? NULL : find(s, which);
	if (r < 0)
		return r;
	if (!c)
		return not_found(which, e);
	if (c == s->latest) { /* it is what a cell that fails goes back to: it only loses its name */
		free(c->name);
		c->name = NULL;
	} else {
		travel_let_go(s, c);
	}
	return 0;
}

int session_fork(struct session *s, const struct fork_request *q, fork_done done, void *userdata, struct error *e)
{
	int r = check_idle(s, e);
	if (r == 0)
		r = check_forkable(s, q, e);
	struct copy *c = r == 0 && q->at && s->guest_ready ? find(s, q->at) : NULL;
	if (r < 0)
		return r;
	if (q->at && !c)
		return not_found(q->at, e);
	struct travel *t = calloc(1, sizeof(*t));
	if (!t || !(t->children = calloc(q->count, sizeof(struct session *)))) {
		free(t);
		return error_set(e, -ENOMEM, "out of memory");
	}
	t->kind = FORK;
	t->ticket = c ? c->ticket : 0;
	t->count = q->count;
	t->same_numbers = q->same_numbers;
	t->fork_done = done;
	if (q->own) {
		t->own = *q->own;
		*q->own = (struct session_params){ 0 };
	}
	return begin(s, t, NULL, userdata);
}
