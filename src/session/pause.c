#include "session/pause.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "session/cells/session_cells.h"
#include "session/contexts/contexts.h"
#include "session/internal.h"
#include "session/processes/processes.h"

#define RESUMED_LEAST_S 300.0

static const struct session *whole(const struct session *s)
{
	return s->origin.context_of ? s->origin.context_of : s;
}

bool session_is_paused(const struct session *s)
{
	return whole(s)->pause.since_ns != 0;
}

static double seconds_since(uint64_t ns)
{
	return (double)(clock_now_ns() - ns) / 1e9;
}

double pause_expires_in_s(const struct session *s)
{
	return s->table->config.max_paused_s - seconds_since(s->pause.since_ns);
}

int pause_refuse(const struct session *s, struct error *e)
{
	if (!session_is_paused(s))
		return 0;
	error_set(e, -EBUSY, "the session is paused");
	error_remedy(e, "{resume}.");
	return error_slug(e, "session_paused");
}

static bool is_busy(const struct session *s)
{
	return s->queue.running || s->queue.n_waiting || s->history.request;
}

bool pause_possible(struct session *s)
{
	bool busy = is_busy(s);
	for (struct session *c = session_context_next(s, NULL); c && !busy;
		c = session_context_next(s, c))
		busy = is_busy(c);
	return !busy;
}

static void signal_processes(struct session *s, int sig)
{
	struct error ignored = { 0 };
	for (struct session_process *p = session_process_next(s, NULL); p;
		p = session_process_next(s, p))
		session_process_signal(p, sig, &ignored); /* one that has ended needs none */
}

int session_pause(struct session *s, struct error *e)
{
	int r = context_refuse(s, e);
	if (r == 0)
		r = pause_refuse(s, e);
	if (r < 0)
		return r;
	if (!pause_possible(s)) {
		error_set(e, -EBUSY, "a cell of the session runs or waits");
		error_remedy(
			e, "Wait until it has ended, or interrupt it, and pause the session then.");
		return error_slug(e, "session_busy");
	}

	signal_processes(s, SIGSTOP);
	double left = s->params.ttl_s - seconds_since(s->times.created_ns);
	s->pause = (struct session_pause){ .since_ns = clock_now_ns(), .left_s = left };
	session_update(s, &(struct session_update){ 0 });
	return 0;
}

int session_resume(struct session *s, double ttl_s, struct error *e)
{
	int r = context_refuse(s, e);
	if (r < 0)
		return r;
	if (!s->pause.since_ns) {
		error_set(e, -EBUSY, "the session is not paused");
		return error_slug(e, "not_paused");
	}

	double left = s->pause.left_s > RESUMED_LEAST_S ? s->pause.left_s : RESUMED_LEAST_S;
	s->pause = (struct session_pause){ 0 };
	s->times.used_ns = clock_now_ns();
	signal_processes(s, SIGCONT);
	session_update(s, &(struct session_update){ .ttl_s = seconds_since(s->times.created_ns) +
							     (ttl_s > 0 ? ttl_s : left) });
	return 0;
}
