/* Deadlines of cells, and interrupts. */
#include <signal.h>

#include "base/clock.h"
#include "session/internal.h"

enum { WAKE_MS = 20 };

void session_stop_clock(struct session *s)
{
	s->clock = CLOCK_OFF;
	s->painting_ns = 0;
	uv_timer_stop(&s->deadline);
}

static void interrupt_running(struct session *s);
static void on_deadline(uv_timer_t *t);

#define PAUSE_MAX_NS (LIMIT_TOOL_PAUSE_SECONDS * NSEC_PER_SEC)

/* The timer goes off at what comes first: the cell's limit (the end of the longest pause while it stands still), or a call's. */
void session_arm_clock(struct session *s)
{
	uint64_t now = clock_now_ns(), at = s->limit_at_ns, call_at = tools_next_deadline(s);
	if (s->paused_at_ns)
		at = s->paused_at_ns + (PAUSE_MAX_NS - s->paused_ns);
	if (call_at < at)
		at = call_at;
	uv_timer_start(&s->deadline, on_deadline, at > now ? (at - now + 999999) / 1000000 : 0, 0);
}

void session_begin_limit(struct session *s, uint64_t after_ms)
{
	if (s->clock != CLOCK_LIMIT || s->paused_at_ns)
		return;
	s->limit_at_ns = clock_now_ns() + after_ms * NSEC_PER_MSEC + (uint64_t)(s->running->timeout_s * 1e9);
	session_arm_clock(s);
}

static void go_on(struct session *s, uint64_t now)
{
	if (!s->paused_at_ns)
		return;
	s->limit_at_ns += now - s->paused_at_ns;
	s->paused_ns += now - s->paused_at_ns;
	s->paused_at_ns = 0;
}

void session_tools_waiting(struct session *s, bool waiting)
{
	uint64_t now = clock_now_ns();
	if (s->clock != CLOCK_LIMIT)
		return;
	if (!waiting)
		go_on(s, now);
	else if (!s->paused_at_ns && s->paused_ns < PAUSE_MAX_NS)
		s->paused_at_ns = now;
	session_arm_clock(s);
}

static void check_limit(struct session *s)
{
	uint64_t now = clock_now_ns();
	tools_expire(s, now);
	if (s->paused_at_ns && now - s->paused_at_ns + s->paused_ns >= PAUSE_MAX_NS)
		go_on(s, now);
	if (s->paused_at_ns || now < s->limit_at_ns) {
		session_arm_clock(s);
		return;
	}
	s->running->timed_out = true;
	interrupt_running(s);
}

static void on_deadline(uv_timer_t *t)
{
	struct session *s = t->data;
	if (s->clock == CLOCK_RECOVERING) {
		operation_timed_out(s);
		return;
	}
	if (!s->running)
		return;
	if (s->clock == CLOCK_LIMIT) {
		check_limit(s);
	} else if (s->clock == CLOCK_PAINTING) {
		if (s->running->capture)
			capture_stuck(s->running->capture);
		interrupt_running(s);
	} else if (clock_now_ns() - s->interrupt_ns >= (uint64_t)(s->table->config.grace_s * 1e9)) {
		sandbox_kill_all(s->sandbox);
		uv_timer_stop(t); /* its end is reported when it is there */
	} else {
		guest_signal(sandbox_guest(s->sandbox), WIRE_WAKE_SIGNAL);
	}
}

void session_start_clock(struct session *s, enum session_clock clock, uint64_t ms)
{
	s->clock = clock;
	uv_timer_start(&s->deadline, on_deadline, ms, 0);
}

static void interrupt_running(struct session *s)
{
	if (s->clock == CLOCK_INTERRUPTING || operation_restores(s))
		return;
	s->clock = CLOCK_INTERRUPTING;
	s->interrupt_ns = clock_now_ns();
	guest_signal(sandbox_guest(s->sandbox), SIGINT);
	uv_timer_start(&s->deadline, on_deadline, WAKE_MS, WAKE_MS);
}

void session_clock_painting(struct session *s, uint64_t ms)
{
	uint64_t now = clock_now_ns();
	if (!s->painting_ns) {
		go_on(s, now);
		s->painting_ns = now;
		s->painting_late = s->clock == CLOCK_INTERRUPTING;
	} else if (s->clock != CLOCK_PAINTING) {
		return; /* it was interrupted meanwhile */
	}
	s->clock = CLOCK_PAINTING;
	uv_timer_start(&s->deadline, on_deadline, ms, 0);
}

void session_clock_painted(struct session *s)
{
	uint64_t now = clock_now_ns(), since = s->painting_ns;
	s->painting_ns = 0;
	if (!since || s->running->interrupted || s->running->stop) {
		return; /* it is interrupted already */
	} else if (s->painting_late) { /* what is left of it has the grace that it would have had */
		s->clock = CLOCK_INTERRUPTING;
		s->interrupt_ns = now;
		uv_timer_start(&s->deadline, on_deadline, WAKE_MS, WAKE_MS);
	} else {
		s->clock = CLOCK_LIMIT;
		s->limit_at_ns += now - since;
		session_arm_clock(s);
	}
}

void session_interrupt_running(struct session *s)
{
	interrupt_running(s);
}

void session_stop_cell(struct session *s, enum cell_stop why)
{
	if (s->running->stop || s->running->timed_out)
		return;
	s->running->stop = why;
	interrupt_running(s);
}

bool session_interrupt(struct session *s)
{
	if (!s->running && s->n_left) { /* what was left running ends */
		guest_signal(sandbox_guest(s->sandbox), SIGINT);
		session_wake_guest(s);
		return true;
	}
	if (!s->running)
		return false;
	if (s->outcome.done) /* the code is over, its last picture is not there yet */
		return true;
	s->running->interrupted = true;
	interrupt_running(s);
	return true;
}

void cell_abandon(struct cell *c)
{
	struct session *s = c->session;
	c->abandoned = true;
	if (c->detach)
		return;
	if (s->running == c) {
		session_interrupt(s);
	} else {
		TAILQ_REMOVE(&s->queue, c, link);
		s->queued--;
		s->table->stats.queued_cells--;
		cell_free(c);
	}
}
