/* Draining a server: the server creates no new sessions, and serves its existing sessions. */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "session/internal.h"
#include "session/table.h"

void sessions_drain(struct sessions *t, double deadline_s)
{
	t->drain.on = true;
	t->drain.until_ns = deadline_s > 0 ? clock_now_ns() + (uint64_t)(deadline_s * 1e9) : 0;
	log_info("draining: no new sessions; %llu sessions are served to their end",
		(unsigned long long)t->stats.live);
}

void sessions_stop_drain(struct sessions *t)
{
	if (t->drain.on)
		log_info("the drain was cancelled; sessions can be made again");
	t->drain.on = false;
}

bool sessions_draining(const struct sessions *t, double *ret_left_s)
{
	uint64_t now = clock_now_ns(), until = t->drain.until_ns;
	if (ret_left_s)
		*ret_left_s = until > now ? (double)(until - now) / 1e9 : 0;
	return t->drain.on;
}

int sessions_check_drain(const struct sessions *t, struct error *e)
{
	if (!t->drain.on)
		return 0;

	error_set(e, -ESHUTDOWN, "this server is being drained and makes no new sessions");
	error_remedy(e, "Use another server. Existing sessions continue.");
	return error_slug(e, "draining");
}

void sessions_end_drained(struct sessions *t, uint64_t now_ns)
{
	if (!t->drain.on || !t->drain.until_ns || now_ns < t->drain.until_ns)
		return;

	t->drain.until_ns = 0;
	log_info("the drain is over: ending %llu sessions", (unsigned long long)t->stats.live);
	for (struct session *s = TAILQ_FIRST(&t->list), *next; s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (s->phase != PHASE_ENDING)
			session_end(s, "the server was drained");
	}
}
