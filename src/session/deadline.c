/* Deadlines of cells, and interrupts. */
#include <signal.h>

#include "base/clock.h"
#include "session/internal.h"

enum {
	WAKE_MS = 20,
	/* for a killed interpreter to end; freeing much memory on a busy host takes seconds */
	KILLED_MS = 30000,
};

void session_stop_clock(struct session *s)
{
	s->clock.mode = CLOCK_OFF;
	s->clock.painting_ns = 0;
	uv_timer_stop(&s->clock.timer);
}

static void interrupt_running(struct session *s);
static void on_deadline(uv_timer_t *t);

#define PAUSE_MAX_NS (LIMIT_TOOL_PAUSE_SECONDS * NSEC_PER_SEC)

/*
 * The timer goes off at what comes first: the cell's limit (the end of the longest pause while it
 * stands still), or a call's.
 */
void session_arm_clock(struct session *s)
{
	uint64_t now = clock_now_ns(), at = s->clock.limit_at_ns, call_at = tools_next_deadline(s);
	if (s->clock.paused_at_ns)
		at = s->clock.paused_at_ns + (PAUSE_MAX_NS - s->clock.paused_ns);
	if (call_at < at)
		at = call_at;
	uv_timer_start(
		&s->clock.timer, on_deadline, at > now ? (at - now + 999999) / 1000000 : 0, 0);
}

void session_start_limit(struct session *s)
{
	s->clock.mode = CLOCK_LIMIT;
	s->clock.limit_at_ns = s->queue.started_ns + (uint64_t)(s->queue.running->timeout_s * 1e9);
	s->clock.paused_at_ns = s->clock.paused_ns = 0;
	session_arm_clock(s);
}

void session_restart_limit(struct session *s, uint64_t after_ms)
{
	if (s->clock.mode != CLOCK_LIMIT || s->clock.paused_at_ns)
		return;
	s->clock.limit_at_ns = clock_now_ns() + after_ms * NSEC_PER_MSEC +
			       (uint64_t)(s->queue.running->timeout_s * 1e9);
	session_arm_clock(s);
}

static void go_on(struct session *s, uint64_t now)
{
	if (!s->clock.paused_at_ns)
		return;
	s->clock.limit_at_ns += now - s->clock.paused_at_ns;
	s->clock.paused_ns += now - s->clock.paused_at_ns;
	s->clock.paused_at_ns = 0;
}

void session_tools_waiting(struct session *s, bool waiting)
{
	uint64_t now = clock_now_ns();
	if (s->clock.mode != CLOCK_LIMIT)
		return;

	if (!waiting)
		go_on(s, now);
	else if (!s->clock.paused_at_ns && s->clock.paused_ns < PAUSE_MAX_NS)
		s->clock.paused_at_ns = now;
	session_arm_clock(s);
}

static void check_limit(struct session *s)
{
	uint64_t now = clock_now_ns();
	tools_expire(s, now);
	if (s->clock.paused_at_ns &&
		now - s->clock.paused_at_ns + s->clock.paused_ns >= PAUSE_MAX_NS)
		go_on(s, now);
	if (s->clock.paused_at_ns || now < s->clock.limit_at_ns) {
		session_arm_clock(s);
		return;
	}

	cell_set_stop(s->queue.running, STOP_TIMEOUT);
	interrupt_running(s);
}

static void on_deadline(uv_timer_t *t)
{
	struct session *s = t->data;
	if (s->clock.mode == CLOCK_RECOVERING) {
		operation_timed_out(s);
		return;
	}

	if (!s->queue.running)
		return;

	if (s->clock.mode == CLOCK_LIMIT) {
		check_limit(s);
	} else if (s->clock.mode == CLOCK_PAINTING) {
		if (s->queue.running->capture)
			cell_picture_stuck(s->queue.running->capture);
		interrupt_running(s);
	} else if (s->clock.mode == CLOCK_KILLED) {
		session_guest_failed(s, "its interpreter did not end when it was killed");
	} else if (clock_now_ns() - s->clock.interrupt_ns >=
		   (uint64_t)(s->table->config.grace_s * 1e9)) {
		sandbox_kill_all(s->sandbox);
		session_start_clock(s, CLOCK_KILLED, KILLED_MS);
	} else {
		guest_signal(sandbox_guest(s->sandbox), WIRE_WAKE_SIGNAL);
	}
}

void session_start_clock(struct session *s, enum clock_mode mode, uint64_t ms)
{
	s->clock.mode = mode;
	uv_timer_start(&s->clock.timer, on_deadline, ms, 0);
}

static void interrupt_running(struct session *s)
{
	if (s->clock.mode == CLOCK_INTERRUPTING || s->clock.mode == CLOCK_KILLED ||
		session_is_restoring(s))
		return;
	s->clock.mode = CLOCK_INTERRUPTING;
	s->clock.interrupt_ns = clock_now_ns();
	guest_signal(sandbox_guest(s->sandbox), SIGINT);
	uv_timer_start(&s->clock.timer, on_deadline, WAKE_MS, WAKE_MS);
}

void session_clock_painting(struct session *s, uint64_t ms)
{
	uint64_t now = clock_now_ns();
	if (!s->clock.painting_ns) {
		go_on(s, now);
		s->clock.painting_ns = now;
		s->clock.painting_late = s->clock.mode == CLOCK_INTERRUPTING ||
					 s->clock.mode == CLOCK_KILLED;
	} else if (s->clock.mode != CLOCK_PAINTING) {
		return; /* it was interrupted meanwhile */
	}

	s->clock.mode = CLOCK_PAINTING;
	uv_timer_start(&s->clock.timer, on_deadline, ms, 0);
}

void session_clock_painted(struct session *s)
{
	uint64_t now = clock_now_ns(), since = s->clock.painting_ns;
	s->clock.painting_ns = 0;
	enum cell_stop stop = s->queue.running->stop;
	if (!since || (stop != STOP_NONE && stop != STOP_TIMEOUT)) {
		return; /* it is interrupted already */
	} else if (
		s->clock.painting_late) { /* what is left of it has the grace that it would have had */
		s->clock.mode = CLOCK_INTERRUPTING;
		s->clock.interrupt_ns = now;
		uv_timer_start(&s->clock.timer, on_deadline, WAKE_MS, WAKE_MS);
	} else {
		s->clock.mode = CLOCK_LIMIT;
		s->clock.limit_at_ns += now - since;
		session_arm_clock(s);
	}
}

void session_interrupt_running(struct session *s)
{
	interrupt_running(s);
}

void session_stop_cell(struct session *s, enum cell_stop why)
{
	if (cell_set_stop(s->queue.running, why))
		interrupt_running(s);
}

bool session_interrupt(struct session *s)
{
	if (!s->queue.running && s->queue.n_background) { /* what was left running ends */
		guest_signal(sandbox_guest(s->sandbox), SIGINT);
		session_wake_guest(s);
		return true;
	}

	if (!s->queue.running)
		return false;
	if (s->outcome.done) /* the code is over, its last picture is not there yet */
		return true;

	cell_set_stop(s->queue.running, STOP_INTERRUPT);
	interrupt_running(s);
	return true;
}

void cell_abandon(struct cell *c)
{
	struct session *s = c->session;
	c->abandoned = true;
	if (c->options.detach)
		return;

	if (s->queue.running == c) {
		session_interrupt(s);
	} else {
		queue_remove(s, c);
		cell_free(c);
	}
}
