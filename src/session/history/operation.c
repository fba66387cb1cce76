/*
 * The pending operation of a session: its stages, which events reach it, and its end. The kinds are
 * in checkpoint.c, rollback.c, session_fork.c and recovery.c.
 */
#include "session/history/operation.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "session/internal.h"

/* for an interpreter that starts, with time for the zygote to be started again */
enum { WAITING_MS = 60000 };

static const struct operation_ops *const kinds[OPERATION_KINDS] = {
	[OPERATION_CHECKPOINT] = &checkpoint_operation,
	[OPERATION_ROLLBACK] = &rollback_operation,
	[OPERATION_FORK] = &fork_operation,
	[OPERATION_RECOVERY] = &recovery_operation,
};

struct operation *operation_new(enum operation_kind kind, void *userdata)
{
	struct operation *o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;

	o->kind = kind;
	o->userdata = userdata;
	return o;
}

void operation_free(struct operation *o)
{
	if (o && kinds[o->kind]->release)
		kinds[o->kind]->release(o);
	free(o);
}

struct operation *operation_active(const struct session *s)
{
	return s->history.recovery ? s->history.recovery : s->history.request;
}

void operation_request(struct session *s, struct operation *o)
{
	assert(!s->history.request && !s->queue.running);
	s->history.request = o;
	s->times.used_ns = clock_now_ns();

	if (!s->history.recovery) /* which has a deadline of its own */
		operation_waits(s);
	operation_begin(s);
}

void operation_waits(struct session *s)
{
	if (s->history.request)
		session_start_clock(s, CLOCK_RECOVERING, WAITING_MS);
}

/* ---- the end ---------------------------------------------------------------------- */

/*
 * The operation leaves its session before anybody is told: whoever hears of its end may ask for the
 * next one.
 */
static void finish(struct session *s, const struct error *e, struct snapshot *c)
{
	struct operation *o = TAKE_PTR(s->history.request);
	if (!s->history.recovery && s->clock.mode == CLOCK_RECOVERING)
		session_stop_clock(s);

	if (s->phase == PHASE_SNAPSHOT || s->phase == PHASE_FORKING)
		session_set_phase(s, PHASE_IDLE);
	kinds[o->kind]->finish(s, o, e, c);
	operation_free(o);
	session_start_next(s);
}

void operation_succeed(struct session *s, struct snapshot *c)
{
	finish(s, NULL, c);
}

void operation_fail(
	struct session *s, int err, const char *slug, const char *remedy, const char *format, ...)
{
	struct error e = { 0 };
	char text[512];

	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);

	error_set(&e, err, "%s", text);
	error_remedy(&e, "%s", remedy ? remedy : "{look_at_session} and try again.");
	error_slug(&e, slug ? slug : kinds[s->history.request->kind]->slug);
	finish(s, &e, NULL);
}

void operation_cancel(struct session *s, const char *why)
{
	operation_free(TAKE_PTR(s->history.recovery));
	if (s->history.request)
		operation_fail(s, -ECANCELED, s->phase == PHASE_ENDING ? "session_gone" : NULL,
			s->phase == PHASE_ENDING
				? "{new_session}; its variables and files are gone."
				: NULL,
			"%s", why);
}

void session_history_abandon(struct session *s, void *userdata)
{
	struct operation *o = s->history.request;
	if (!o || o->userdata != userdata)
		return;

	if (o->kind == OPERATION_CHECKPOINT)
		o->checkpoint.done = NULL;
	else if (o->kind == OPERATION_ROLLBACK)
		o->rollback.done = NULL;
	else
		o->fork.done = NULL;
}

/* ---- events ------------------------------------------------------------------------ */

void operation_begin(struct session *s)
{
	if (!s->history.request || s->history.recovery || s->phase != PHASE_IDLE)
		return;

	/* its snapshot comes by itself, if the interpreter is what it should be */
	if (history_awaits(s)) {
		session_start_clock(s, CLOCK_RECOVERING, CHECKPOINT_MS);
		return;
	}

	kinds[s->history.request->kind]->begin(s);
}

static uint64_t awaited_snapshot(const struct operation *o)
{
	return o->kind == OPERATION_FORK ? o->fork.snapshot_id : o->checkpoint.snapshot_id;
}

void operation_parked(struct session *s, uint64_t snapshot_id, const char *why)
{
	struct operation *o = s->history.request;
	if (s->phase != PHASE_SNAPSHOT || awaited_snapshot(o) != snapshot_id)
		return;

	if (why)
		operation_fail(s, -EDEADLK, NULL, "Remove the cause in a cell, then try again.",
			"no snapshot of the session can be taken now: %s", why);
	else
		kinds[o->kind]->parked(s, snapshot_id);
}

void operation_restored(struct session *s)
{
	struct operation *o = operation_active(s);
	assert(o && kinds[o->kind]->restored);
	kinds[o->kind]->restored(s);
}

void operation_guest_died(struct session *s)
{
	struct operation *o = operation_active(s);
	if (o)
		kinds[o->kind]->guest_died(s);
	else
		recovery_begin(s);
}

void operation_jail_died(struct session *s)
{
	if (s->phase != PHASE_SNAPSHOT && s->phase != PHASE_FORKING)
		return;

	session_set_phase(s, PHASE_DEAD);
	operation_fail(s, -ECANCELED, NULL, NULL, "the session's jail ended meanwhile");
}

void operation_restore_failed(struct session *s)
{
	struct operation *o = operation_active(s);
	assert(o && session_is_restoring(s));
	kinds[o->kind]->restore_failed(s);
}

void operation_timed_out(struct session *s)
{
	struct operation *o = operation_active(s);
	if (session_is_restoring(s))
		kinds[o->kind]->restore_failed(s);
	else if (s->phase == PHASE_FORKING)
		operation_fail(s, -ETIMEDOUT, NULL, "Try again, with fewer at a time.",
			"the session cannot be forked: the new sessions were not ready in time");
	else if (o && !session_has_guest(s))
		operation_fail(s, -ETIMEDOUT, NULL, NULL, "the interpreter did not start in time");
	else if (o)
		operation_fail(s, -ETIMEDOUT, NULL, NULL,
			"the interpreter did not answer in time (is a thread blocking it?)");
}
