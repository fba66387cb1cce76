/* What is counted of cells and refused sessions, and the log's lines about what profiles refused. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "session/internal.h"

/* Of one second: a session that is refused in a loop fills no log. */
enum { DENIALS_LOGGED = 10 };

enum { MESSAGE_SHOWN = 240 };

const char *const picture_outcome_names[PICTURE_OUTCOMES] = {
	[PICTURE_TAKEN] = "taken",
	[PICTURE_EMPTY] = "empty",
	[PICTURE_FAILED] = "failed",
};

const char *const refusal_names[REFUSALS] = {
	[REFUSED_FULL] = "server_full",
	[REFUSED_QUOTA] = "token_quota",
	[REFUSED_RESOURCES] = "no_resources",
	[REFUSED_DRAINING] = "draining",
	[REFUSED_LIMIT] = "limit",
	[REFUSED_PROFILE] = "profile",
	[REFUSED_NETWORK] = "network",
	[REFUSED_OTHER] = "other",
};

/* ---- refusals -------------------------------------------------------------- */

static const struct {
	const char *slug;
	enum refusal why;
} refusals[] = {
	{ "server_full", REFUSED_FULL },
	{ "no_resources", REFUSED_RESOURCES },
	{ "draining", REFUSED_DRAINING },
	{ "limit_too_large", REFUSED_LIMIT },
	{ "limit_not_enforced", REFUSED_LIMIT },
	{ "unknown_profile", REFUSED_PROFILE },
	{ "invalid_profile", REFUSED_PROFILE },
	{ "network_not_allowed", REFUSED_NETWORK },
	{ "invalid_network_rule", REFUSED_NETWORK },
};

void sessions_count_refusal(struct sessions *t, enum refusal why)
{
	t->stats.refused[why]++;
}

void sessions_count_refused(struct sessions *t, const struct error *e)
{
	enum refusal why = REFUSED_OTHER;
	for (size_t i = 0; e && i < ARRAY_LEN(refusals); i++)
		if (text_eq(refusals[i].slug, e->slug))
			why = refusals[i].why;
	sessions_count_refusal(t, why);
}

/* ---- cells ----------------------------------------------------------------- */

unsigned stats_profile_slot(struct sessions_stats *stats, const struct profile_choice *profile)
{
	unsigned n = PROFILE_COUNT + stats->n_own_profiles;
	if (!profile->own)
		return profile->table;
	for (unsigned i = PROFILE_COUNT; i < n; i++)
		if (text_eq(stats->profiles[i].name, profile->own))
			return i;
	if (n == STATS_PROFILES)
		return profile->table;

	stats->profiles[n].name = profile->own;
	stats->n_own_profiles++;
	return n;
}

static const char *template_word(const struct session *s)
{
	static const char *const words[] = { "default", "plain" };
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (text_eq(words[i], s->origin.template))
			return words[i];
	return "packages"; /* names of sets are not bounded */
}

static struct cells_row *row_of(
	struct sessions_stats *stats, unsigned profile, const char *dialect, const char *template)
{
	struct cells_row *rows = stats->cells;
	for (unsigned i = 0; i < stats->n_cells; i++)
		if (rows[i].profile == profile && text_eq(rows[i].dialect, dialect) &&
			text_eq(rows[i].template, template))
			return &rows[i];

	if (stats->n_cells < STATS_CELL_ROWS - 1)
		rows[stats->n_cells] = (struct cells_row){
			.profile = profile, .dialect = dialect, .template = template
		};
	else if (stats->n_cells == STATS_CELL_ROWS - 1)
		rows[stats->n_cells] = (struct cells_row){
			.profile = STATS_PROFILES, .dialect = "other", .template = "other"
		};
	else
		return &rows[STATS_CELL_ROWS - 1];
	return &rows[stats->n_cells++];
}

/*
 * Whether one more may be logged now. The first of a new second tells how many were left out before
 * it.
 */
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
		log_info("policy: profile %s refused cell %u of %s, rule %s, line %d: %.*s",
			s->profile.name, s->queue.cells, s->id, policy_rule_codes[s->outcome.rule],
			e->line, MESSAGE_SHOWN, e->message);
}

void session_count_cell(struct session *s, const struct cell *c, enum cell_status status)
{
	struct sessions_stats *stats = &s->table->stats;
	row_of(stats, s->stats_slot, c->dialect, template_word(s))->count[status]++;
	if (!s->outcome.has_error || s->outcome.rule >= POLICY_RULES)
		return;
	stats->profiles[s->stats_slot].violations[s->outcome.rule]++;
	log_denial(s);
}

void session_count_picture(struct session *s, const struct screenshot *shot)
{
	if (!shot)
		return;
	enum picture_outcome outcome = !shot->data       ? PICTURE_FAILED
				       : shot->no_window ? PICTURE_EMPTY
							 : PICTURE_TAKEN;
	struct profile_stats *stats = &s->table->stats.profiles[s->stats_slot];
	stats->pictures[outcome]++;
	if (!shot->data)
		return;
	stats->pictures_settled += shot->info.settled;
	stats_observe(&s->table->stats.picture_seconds, shot->info.after_ms / 1e3);
}
