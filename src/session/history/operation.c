/* The pending operation of a session: its stages, which events reach it, and its end. The kinds are in checkpoint.c, session_fork.c and recovery.c. */
#include "session/history/operation.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "session/internal.h"

enum { WAITING_MS = 60000 }; /* for an interpreter that starts, with time for the zygote to be started again */

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
	o->stage = kind == OPERATION_RECOVERY ? OPERATION_RESTORE : OPERATION_WAITING;
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
	assert(!s->recovery || !s->request || s->request->stage == OPERATION_WAITING);
	return s->recovery ? s->recovery : s->request;
}

bool operation_restores(const struct session *s)
{
	const struct operation *o = operation_active(s);
	return o && (o->stage == OPERATION_RESTORE || o->stage == OPERATION_REPLAY);
}

void operation_request(struct session *s, struct operation *o)
{
	assert(!s->request && !s->running);
	s->request = o;
	s->used_ns = clock_now_ns();

	if (!s->recovery) /* which has a deadline of its own */
		operation_waits(s);
	operation_begin(s);
}

void operation_waits(struct session *s)
{
	if (s->request && s->request->stage == OPERATION_WAITING)
		session_start_clock(s, CLOCK_RECOVERING, WAITING_MS);
}

/* ---- the end ---------------------------------------------------------------------- */

/* The operation leaves its session before anybody is told: whoever hears of its end may ask for the next one. */
static void finish(struct session *s, const struct error *e, struct snapshot *c)
{
	struct operation *o = TAKE_PTR(s->request);
	if (!s->recovery && s->clock == CLOCK_RECOVERING)
		session_stop_clock(s);

	kinds[o->kind]->finish(s, o, e, c);
	operation_free(o);
	session_start_next(s);
}

void operation_succeed(struct session *s, struct snapshot *c)
{
	finish(s, NULL, c);
}

void operation_fail(struct session *s, int err, const char *slug, const char *remedy, const char *format, ...)
{
	struct error e = { 0 };
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);

	error_set(&e, err, "%s", text);
	error_remedy(&e, "%s", remedy ? remedy : "Look at the session with GET /v1/sessions/ID and try again.");
	error_slug(&e, slug ? slug : kinds[s->request->kind]->slug);
	finish(s, &e, NULL);
}

void operation_cancel(struct session *s, const char *why)
{
	operation_free(TAKE_PTR(s->recovery));
	if (s->request)
		operation_fail(s, -ECANCELED, s->ending ? "session_gone" : NULL,
			s->ending ? "Make a new one with POST /v1/sessions; its variables and files are gone." : NULL, "%s", why);
}

void session_history_abandon(struct session *s, void *userdata)
{
	struct operation *o = s->request;
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
	struct operation *o = operation_active(s);
	if (!o || o->stage != OPERATION_WAITING || !s->guest_ready || s->running)
		return;
	if (history_awaits(s)) { /* its snapshot comes by itself, if the interpreter is what it should be */
		session_start_clock(s, CLOCK_RECOVERING, CHECKPOINT_MS);
		return;
	}

	kinds[o->kind]->begin(s);
}

static uint64_t awaited_ticket(const struct operation *o)
{
	return o->kind == OPERATION_FORK ? o->fork.ticket : o->checkpoint.ticket;
}

void operation_parked(struct session *s, uint64_t ticket, const char *why)
{
	struct operation *o = operation_active(s);
	if (!o || o->stage != OPERATION_SNAPSHOT || awaited_ticket(o) != ticket)
		return;

	if (why)
		operation_fail(s, -EDEADLK, NULL, "Do what it says in a cell, then try again.", "no copy of the session can be taken now: %s", why);
	else
		kinds[o->kind]->parked(s, ticket);
}

void operation_ready(struct session *s)
{
	if (operation_restores(s))
		history_ready(s);
}

void operation_restored(struct session *s)
{
	if (operation_restores(s))
		kinds[operation_active(s)->kind]->restored(s);
}

void operation_guest_died(struct session *s)
{
	struct operation *o = operation_active(s);
	if (o)
		kinds[o->kind]->guest_died(s);
	else
		recovery_begin(s);
}

void operation_restore_failed(struct session *s)
{
	if (operation_restores(s))
		kinds[operation_active(s)->kind]->restore_failed(s);
}

void operation_timed_out(struct session *s)
{
	struct operation *o = operation_active(s);
	if (operation_restores(s))
		kinds[o->kind]->restore_failed(s);
	else if (o && o->stage == OPERATION_SPREAD)
		operation_fail(s, -ETIMEDOUT, NULL, "Try again, with fewer at a time.", "the session cannot be forked: the new sessions were not ready in time");
	else if (o && o->stage == OPERATION_WAITING && !s->guest_ready)
		operation_fail(s, -ETIMEDOUT, NULL, NULL, "the interpreter did not start in time");
	else if (o)
		operation_fail(s, -ETIMEDOUT, NULL, NULL, "the interpreter did not answer in time (a thread that holds it?)");
}
