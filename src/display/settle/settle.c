#include "display/settle/settle.h"

#include "base/clock.h"

/*
 * Of the time in which nothing is painted, clients may compute so much of it, and must have been
 * seen to wait so much.
 */
#define SETTLE_BUSINESS 0.4
#define SETTLE_SEEN 0.5

static double ms_since(uint64_t then, uint64_t now)
{
	return now > then ? (double)(now - then) / 1e6 : 0;
}

void settle_begin(
	struct settle *q, const struct shot_options *o, const struct activity *a, uint64_t now_ns)
{
	*q = (struct settle){ .asked_ns = now_ns,
		.start_ns = o->first_window ? 0 : now_ns,
		.changes = o->from_start ? 0 : a->changes,
		.first_window = o->first_window,
		.in_loop = o->in_loop,
		.or_settled = o->or_settled,
		.settle_ms = o->settle_ms ? o->settle_ms : SETTLE_IDLE_MS,
		.max_ms = o->max_ms ? o->max_ms : SETTLE_MAX_MS,
		.render_ms = o->render_ms };
}

static void changed(struct activity *a)
{
	a->changes++;
	a->quiet_ns = 0;
}

void activity_painted(struct activity *a, uint64_t now_ns)
{
	a->paint_ns = now_ns;
	changed(a);
}

void activity_mapped(struct activity *a, uint64_t now_ns)
{
	a->map_ns = now_ns;
	changed(a);
}

void activity_answered(struct activity *a)
{
	a->quiet_ns = 0;
	a->idle_ns = 0;
}

void activity_sample(struct activity *a, const struct sample *s, uint64_t began_ns, uint64_t now_ns)
{
	/* count anew from the last paint on */
	if (a->seen_changes != a->changes || !a->since_paint_ns) {
		a->seen_changes = a->changes;
		a->since_paint_ns = now_ns;
		a->since_paint_run_ns = s->run_ns;
		a->samples = a->busy_samples = 0;
		a->idle_ns = 0;
	}

	/*
	 * Where we were starved, so were they: nobody knows what they did between two looks far
	 * apart.
	 */
	uint64_t step = now_ns - a->sample_ns;
	step = step < 2 * SETTLE_TICK_MS * NSEC_PER_MSEC ? step
							 : 2 * SETTLE_TICK_MS * NSEC_PER_MSEC;
	a->idle_ns += s->waiting && a->samples ? step : 0;
	a->waited_ns += s->waiting ? step : 0;
	a->sample_ns = now_ns;
	a->began_ns = began_ns;
	a->samples++;
	a->busy_samples += !s->waiting;
	if (!s->waiting) {
		a->quiet_ns = 0;
	} else if (!a->quiet_ns || a->quiet_run_ns != s->run_ns) {
		a->quiet_ns = now_ns;
		a->quiet_run_ns = s->run_ns;
	}

	a->last = *s;
}

bool activity_wants_look(const struct activity *a, uint64_t now_ns)
{
	/* most windows are done before there is a need to look */
	uint64_t last = a->look_ns > a->map_ns ? a->look_ns : a->map_ns;
	return a->changes != a->look_changes && ms_since(last, now_ns) >= SETTLE_STILL_LOOK_MS;
}

void activity_looked(struct activity *a, uint64_t pixels, uint64_t now_ns)
{
	/* After a long time without samples, the activity in between is unknown. */
	if (!a->still_ns || pixels != a->pixels || ms_since(a->look_ns, now_ns) > SETTLE_STILL_MS) {
		a->still_ns = now_ns;
		a->still_changes = a->changes;
	}
	a->pixels = pixels;
	a->look_ns = now_ns;
	a->look_changes = a->changes;
}

/* Painted again and again for so long, always the same. */
static bool is_still(const struct activity *a, uint64_t start_ns, double for_ms)
{
	uint64_t from = a->still_ns > start_ns ? a->still_ns : start_ns;
	return a->still_ns && ms_since(from, a->look_ns) >= for_ms &&
	       a->look_changes - a->still_changes >= SETTLE_STILL_PAINTS;
}

/*
 * The clients' share of a processor since the last paint, or of the samples they were seen to want
 * one: the larger, since on a loaded machine they get little of what they want.
 */
static double business(const struct activity *a, uint64_t now_ns)
{
	double wall = ms_since(a->since_paint_ns, now_ns) + 0.001;
	double cpu = (double)(a->last.run_ns - a->since_paint_run_ns) / 1e6 / wall;
	double seen = a->samples ? (double)a->busy_samples / a->samples : 1;
	return cpu > seen ? cpu : seen;
}

/*
 * From the end of the first sample that found everybody waiting to the start of the last one. The
 * time after it does not count: the screen process may have been preempted between its sample and
 * the decision, and a single sample does not show how long a client has been waiting.
 */
uint64_t activity_quiet_ns(const struct activity *a, uint64_t since_ns)
{
	uint64_t from = a->quiet_ns > since_ns ? a->quiet_ns : since_ns;
	if (!a->samples || !a->quiet_ns || !a->last.waiting || a->began_ns < from)
		return 0;
	return a->began_ns - from;
}

static bool is_quiet(const struct activity *a, double for_ms)
{
	if (a->last.blind && for_ms < SETTLE_BLIND_QUIET_MS)
		for_ms = SETTLE_BLIND_QUIET_MS;
	return a->last.near_ms >= SETTLE_NEAR_MS &&
	       (double)activity_quiet_ns(a, 0) >= for_ms * NSEC_PER_MSEC;
}

/* Is there something to wait for the end of? */
static bool has_started(struct settle *q, const struct activity *a, bool windows, uint64_t now_ns)
{
	if (q->start_ns)
		return true;
	if (!windows)
		return false;
	if (a->changes == q->changes &&
		!(a->last.in_loop && is_quiet(a, SETTLE_UNCHANGED_MS) &&
			ms_since(q->asked_ns, now_ns) >= SETTLE_UNCHANGED_MS))
		return false;
	q->start_ns = a->changes == q->changes  ? now_ns
		      : a->map_ns > q->asked_ns ? a->map_ns
						: a->paint_ns;
	if (q->start_ns < q->asked_ns)
		q->start_ns = now_ns;
	return true;
}

/*
 * Mapped, but not painted yet: a slow start, or a machine so busy that its program gets no time.
 * But one colour may be all there ever is.
 */
static bool is_patient(struct settle *q, const struct activity *a, double total)
{
	if (!q->counted) {
		q->run_ns = a->last.run_ns;
		q->waited_ns = a->waited_ns;
		q->counted = true;
	}
	double longer = q->max_ms < SETTLE_FLAT_MAX_MS ? q->max_ms : SETTLE_FLAT_MAX_MS;
	double had = ((double)a->last.run_ns - (double)q->run_ns +
			     (double)(a->waited_ns - q->waited_ns)) /
		     1e6;
	return total >= q->max_ms + longer &&
	       (had >= longer || total >= q->max_ms + SETTLE_STARVED_FACTOR * longer);
}

/*
 * Looks are not free: the code that is being watched computes on the same processors. A main loop,
 * or a first stroke, may be hours away.
 */
uint64_t settle_next_ns(
	const struct settle *q, const struct activity *a, bool windows, uint64_t looked_ns)
{
	bool started = q->start_ns || (windows && a->changes != q->changes);
	uint64_t tick = looked_ns + SETTLE_TICK_MS * NSEC_PER_MSEC,
		 quiet = a->quiet_ns + SETTLE_QUIET_MS * NSEC_PER_MSEC;
	if (!started && !windows)
		return q->render_ms ? q->asked_ns + q->render_ms * NSEC_PER_MSEC : UINT64_MAX;
	if (!started || q->in_loop)
		return looked_ns + SETTLE_LOOP_TICK_MS * NSEC_PER_MSEC;
	return a->quiet_ns && quiet > looked_ns && quiet < tick ? quiet : tick;
}

/*
 * Is it a main loop that they are in? One that animates waits for events in between, with its next
 * timer as the limit.
 */
static bool is_in_loop(
	struct settle *q, const struct activity *a, uint64_t now_ns, enum shot_reason *ret)
{
	if (a->last.in_loop && is_quiet(a, SETTLE_QUIET_MS)) {
		*ret = SHOT_QUIET;
		return true;
	}
	*ret = SHOT_CAP;
	q->ticking += a->last.ticking;
	return a->last.foreign || q->ticking >= SETTLE_LOOP_SAMPLES;
}

bool settle_decide(struct settle *q, const struct activity *a, bool windows, bool (*flat)(void *),
	void *userdata, uint64_t now_ns, enum shot_reason *ret)
{
	if (!has_started(q, a, windows, now_ns)) {
		*ret = SHOT_NO_WINDOW;
		return q->render_ms && ms_since(q->asked_ns, now_ns) >= q->render_ms;
	}

	bool in_loop = q->in_loop && is_in_loop(q, a, now_ns, ret);
	if (in_loop || (q->in_loop && !q->or_settled))
		return in_loop;
	uint64_t last = a->paint_ns > q->start_ns ? a->paint_ns : q->start_ns;
	double idle = ms_since(last, now_ns), total = ms_since(q->start_ns, now_ns);
	double cpu = (double)(a->last.run_ns - a->since_paint_run_ns) / 1e6;
	bool patient = is_patient(q, a, total);
	*ret = SHOT_QUIET;
	/*
	 * Code that sleeps, or waits for another program, before it has painted anything may be
	 * about to.
	 */
	if (is_quiet(a, SETTLE_QUIET_MS) &&
		(a->last.in_loop || q->in_loop || !windows || !flat(userdata)))
		return true;
	if (q->in_loop) /* on the way to a loop, only rest counts: it has been patient already */
		return false;
	*ret = SHOT_IDLE;
	if (idle >= q->settle_ms && (double)a->idle_ns / 1e6 >= SETTLE_SEEN * q->settle_ms &&
		business(a, now_ns) < SETTLE_BUSINESS &&
		(idle >= (double)q->settle_ms * SETTLE_FLAT_FACTOR || !windows || !flat(userdata)))
		return true;
	*ret = SHOT_STILL;
	if (is_still(a, q->start_ns, SETTLE_STILL_MS) &&
		(is_still(a, q->start_ns, SETTLE_STILL_MS * SETTLE_FLAT_FACTOR) || !flat(userdata)))
		return true;
	*ret = SHOT_BUSY;
	if (a->samples && idle >= SETTLE_BUSY_CPU_MS &&
		(cpu >= SETTLE_BUSY_CPU_MS || idle >= SETTLE_BUSY_WALL_MS) &&
		(patient || !flat(userdata)))
		return true;
	*ret = SHOT_CAP;
	return total >= q->max_ms && (patient || !flat(userdata));
}
