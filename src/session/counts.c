/* What is counted of cells, by profile, and the log's lines about what profiles refused. */
#include "base/clock.h"
#include "base/log.h"
#include "session/internal.h"

/* Of one second: a session that is refused in a loop fills no log. */
enum { DENIALS_LOGGED = 10 };

enum { MESSAGE_SHOWN = 240 };

const char *const picture_outcome_names[PICTURE_OUTCOMES] = {
	[PICTURE_TAKEN] = "taken",
	[PICTURE_EMPTY] = "empty",
	[PICTURE_FAILED] = "failed",
};

/* Whether one more may be logged now. The first of a new second tells how many were left out before it. */
static bool may_log_denial(struct sessions *t)
{
	uint64_t second = clock_now_ns() / NSEC_PER_SEC;
	if (second != t->denials.second) {
		if (t->denials.left_out)
			log_info("policy: %u more denials were not logged", t->denials.left_out);
		t->denials = (struct denial_log){ .second = second };
	}
	if (t->denials.logged < DENIALS_LOGGED) {
		t->denials.logged++;
		return true;
	}
	t->denials.left_out++;
	t->stats.denials_not_logged++;
	return false;
}

static void log_denial(struct session *s)
{
	const struct cell_error *e = &s->outcome.error;
	if (may_log_denial(s->table))
		log_info("policy: profile %s refused cell %u of %s, rule %s, line %d: %.*s", s->profile.name, s->cells, s->id,
			policy_rule_codes[s->outcome.rule], e->line, MESSAGE_SHOWN, e->message);
}

void session_count_cell(struct session *s, enum cell_status status)
{
	struct sessions_stats *stats = &s->table->stats;
	unsigned table = s->profile.table;
	stats->cells[table][status]++;
	if (!s->outcome.has_error || s->outcome.rule >= POLICY_RULES)
		return;
	stats->violations[table][s->outcome.rule]++;
	log_denial(s);
}

void session_count_picture(struct session *s, const struct screenshot *shot)
{
	if (!shot)
		return;
	enum picture_outcome outcome = !shot->data ? PICTURE_FAILED : shot->no_window ? PICTURE_EMPTY : PICTURE_TAKEN;
	s->table->stats.pictures[s->profile.table][outcome]++;
}
