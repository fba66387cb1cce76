#include "session/phase.h"

#include <assert.h>

#include "base/log.h"
#include "session/internal.h"

#define BIT(phase) (1u << PHASE_##phase)

/* Which phases may follow each phase. */
static const unsigned next_phases[PHASE_COUNT] = {
	[PHASE_STARTING] = BIT(IDLE) | BIT(DEAD) | BIT(STARTING) | BIT(ENDING),
	[PHASE_IDLE] = BIT(RUNNING) | BIT(SNAPSHOT) | BIT(FORKING) | BIT(RESTORING) | BIT(DEAD) |
		       BIT(STARTING) | BIT(ENDING),
	[PHASE_RUNNING] = BIT(IDLE) | BIT(DEAD) | BIT(STARTING) | BIT(ENDING),
	[PHASE_SNAPSHOT] = BIT(IDLE) | BIT(FORKING) | BIT(DEAD) | BIT(STARTING) | BIT(ENDING),
	[PHASE_FORKING] = BIT(IDLE) | BIT(DEAD) | BIT(STARTING) | BIT(ENDING),
	[PHASE_DEAD] = BIT(RESTORING) | BIT(STARTING) | BIT(DEAD) | BIT(ENDING),
	[PHASE_RESTORING] = BIT(IDLE) | BIT(RUNNING) | BIT(REPLAYING) | BIT(RESTORING) | BIT(DEAD) |
			    BIT(STARTING) | BIT(ENDING),
	[PHASE_REPLAYING] = BIT(IDLE) | BIT(RUNNING) | BIT(RESTORING) | BIT(DEAD) | BIT(STARTING) |
			    BIT(ENDING),
	[PHASE_ENDING] = 0,
};

static const char *const names[PHASE_COUNT] = {
	[PHASE_STARTING] = "starting",
	[PHASE_IDLE] = "idle",
	[PHASE_RUNNING] = "running",
	[PHASE_SNAPSHOT] = "snapshot",
	[PHASE_FORKING] = "forking",
	[PHASE_DEAD] = "dead",
	[PHASE_RESTORING] = "restoring",
	[PHASE_REPLAYING] = "replaying",
	[PHASE_ENDING] = "ending",
};

const char *session_phase_name(enum session_phase phase)
{
	return names[phase];
}

bool session_phase_may_follow(enum session_phase from, enum session_phase to)
{
	return next_phases[from] & 1u << to;
}

void session_set_phase(struct session *s, enum session_phase to)
{
	if (!session_phase_may_follow(s->phase, to))
		log_error("session %s: illegal change of phase from %s to %s", s->id,
			names[s->phase], names[to]);
	assert(session_phase_may_follow(s->phase, to));

	s->phase = to;
}

bool session_has_guest(const struct session *s)
{
	return s->phase == PHASE_IDLE || s->phase == PHASE_RUNNING || s->phase == PHASE_SNAPSHOT ||
	       s->phase == PHASE_FORKING;
}

bool session_is_restoring(const struct session *s)
{
	return s->phase == PHASE_RESTORING || s->phase == PHASE_REPLAYING;
}
