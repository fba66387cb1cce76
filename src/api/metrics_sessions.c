/* The figures of the session table, of packages and of the machine, in Prometheus' text format. */
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/metrics_internal.h"
#include "base/machine_room.h"
#include "base/text.h"
#include "packages/packages.h"
#include "session/session.h"

enum { LABEL_MAX = 128 };

/* ---- writing --------------------------------------------------------------- */

void metric_head(struct buffer *b, const char *name, const char *type, const char *help)
{
	buffer_printf(b, "# HELP glovebox_%s %s\n# TYPE glovebox_%s %s\n", name, help, name, type);
}

void metric_one(
	struct buffer *b, const char *name, const char *type, const char *help, double value)
{
	metric_head(b, name, type, help);
	buffer_printf(b, "glovebox_%s %.15g\n", name, value);
}

/* One histogram of a metric; `label` is "" or `name="value"`. */
void metric_histogram_rows(
	struct buffer *b, const char *name, const char *label, const struct stats_histogram *h)
{
	const char *comma = *label ? "," : "", *open = *label ? "{" : "",
		   *close = *label ? "}" : "";
	unsigned long long count = (unsigned long long)h->count;
	for (size_t i = 0; i < STATS_BUCKETS - 1; i++)
		buffer_printf(b, "glovebox_%s_bucket{%s%sle=\"%g\"} %llu\n", name, label, comma,
			stats_bounds_s[i], (unsigned long long)h->bucket[i]);
	buffer_printf(b, "glovebox_%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, label, comma, count);
	buffer_printf(b, "glovebox_%s_sum%s%s%s %.9g\nglovebox_%s_count%s%s%s %llu\n", name, open,
		label, close, h->sum, name, open, label, close, count);
}

void metric_histogram(
	struct buffer *b, const char *name, const char *help, const struct stats_histogram *h)
{
	metric_head(b, name, "histogram", help);
	metric_histogram_rows(b, name, "", h);
}

static void write_sessions(struct buffer *b, const struct sessions_stats *s)
{
	metric_one(b, "sessions", "gauge", "Sessions alive.", (double)s->live);
	metric_one(b, "sessions_limit", "gauge", "Maximum number of sessions.", s->limit);
	metric_one(b, "sessions_created_total", "counter", "Sessions created.", (double)s->created);
	metric_one(b, "sessions_ended_total", "counter", "Sessions ended.", (double)s->ended);
	metric_head(b, "sessions_refused_total", "counter",
		"Requests for a session that were refused.");
	for (int i = 0; i < REFUSALS; i++)
		buffer_printf(b, "glovebox_sessions_refused_total{reason=\"%s\"} %llu\n",
			refusal_names[i], (unsigned long long)s->refused[i]);
	metric_one(b, "sessions_from_ready_total", "counter",
		"Sessions created from a ready guest.", (double)s->taken_ready);
	metric_one(b, "guests_ready", "gauge", "Guests kept ready.", s->ready_guests);
	metric_one(b, "guests_forked_total", "counter", "Guests forked from a zygote.",
		(double)s->forked);
	metric_one(b, "guests_replaced_total", "counter", "Interpreters that had to be replaced.",
		(double)s->guests_replaced);
	metric_one(b, "tool_calls_total", "counter", "Tool calls made by sessions.",
		(double)s->tool_calls);
	metric_one(b, "tool_errors_total", "counter", "Tool calls that ended with an error.",
		(double)s->tool_errors);
	metric_one(b, "copies_parked_total", "counter", "Snapshots of guests taken.",
		(double)s->snapshots_parked);
	metric_one(b, "copies_refused_total", "counter",
		"Snapshots that could not be taken because of threads, child processes or open sockets.",
		(double)s->snapshots_refused);
	metric_one(b, "cells_rolled_back_total", "counter",
		"Cells that killed their interpreter and were rolled back without loss of state.",
		(double)s->cells_rolled_back);
	metric_one(b, "checkpoints_total", "counter", "Checkpoints requested.",
		(double)s->checkpoints);
	metric_one(b, "checkpoints_evicted_total", "counter",
		"Checkpoints evicted because of their number or memory.",
		(double)s->checkpoints_evicted);
	metric_one(b, "sessions_forked_total", "counter",
		"Sessions forked from another session or a checkpoint.", (double)s->forks);
	metric_one(b, "rollbacks_total", "counter", "Rollbacks of sessions to a checkpoint.",
		(double)s->rollbacks);
	metric_one(b, "zygote_restarts_total", "counter", "Restarts of zygotes.",
		(double)s->zygote_restarts);
	metric_histogram(b, "session_create_seconds",
		"Time from the request for a session until its guest is ready.",
		&s->create_seconds);
}

/* ---- by profile ------------------------------------------------------------ */

/* The names of profiles in files are whatever the files are called. */
static const char *profile_label(const struct sessions_stats *s, unsigned slot, char ret[LABEL_MAX])
{
	const char *name = slot == STATS_PROFILES ? "other"
			   : slot < PROFILE_COUNT ? profile_tables[slot].name
						  : s->profiles[slot].name;
	size_t n = 0;
	for (; *name && n < LABEL_MAX - 2; name++) {
		if (*name == '"' || *name == '\\')
			ret[n++] = '\\';
		ret[n++] = (unsigned char)*name < ' ' ? '?' : *name;
	}
	ret[n] = '\0';
	return ret;
}

static unsigned count_slots(const struct sessions_stats *s)
{
	return PROFILE_COUNT + s->n_own_profiles;
}

static void write_row(struct buffer *b, const struct sessions_stats *s, const char *name,
	unsigned slot, const char *label, const char *value, uint64_t count)
{
	char profile[LABEL_MAX];
	buffer_printf(b, "glovebox_%s{profile=\"%s\",%s=\"%s\"} %llu\n", name,
		profile_label(s, slot, profile), label, value, (unsigned long long)count);
}

static void write_cells_row(
	struct buffer *b, const struct sessions_stats *s, const struct cells_row *row)
{
	char profile[LABEL_MAX];
	for (int i = 0; i < CELL_STATUS_COUNT; i++)
		buffer_printf(b,
			"glovebox_cells_total{profile=\"%s\",dialect=\"%s\",template=\"%s\",status=\"%s\"} %llu\n",
			profile_label(s, row->profile, profile), row->dialect, row->template,
			cell_status_name((enum cell_status)i), (unsigned long long)row->count[i]);
}

static bool is_usual(const struct cells_row *row)
{
	return row->profile < PROFILE_COUNT && text_eq(row->dialect, "native") &&
	       text_eq(row->template, "default");
}

/*
 * The built-in profiles over our own API have rows from the start, so that the first cell is an
 * increase; other combinations have rows when they occur.
 */
static void write_cell_counts(struct buffer *b, const struct sessions_stats *s)
{
	metric_head(
		b, "cells_total", "counter", "Cells by profile, dialect, template and outcome.");
	for (unsigned p = 0; p < PROFILE_COUNT; p++) {
		struct cells_row none = {
			.profile = p, .dialect = "native", .template = "default"
		};
		const struct cells_row *row = &none;
		for (unsigned i = 0; i < s->n_cells; i++)
			if (is_usual(&s->cells[i]) && s->cells[i].profile == p)
				row = &s->cells[i];
		write_cells_row(b, s, row);
	}
	for (unsigned i = 0; i < s->n_cells; i++)
		if (!is_usual(&s->cells[i]))
			write_cells_row(b, s, &s->cells[i]);
}

static void write_violations(struct buffer *b, const struct sessions_stats *s)
{
	metric_head(b, "policy_violations_total", "counter", "Code refused by profiles, by rule.");
	for (unsigned p = 0; p < count_slots(s); p++)
		for (int i = 0; i < POLICY_RULES; i++)
			write_row(b, s, "policy_violations_total", p, "rule",
				policy_rule_codes[i] + strlen("policy_"),
				s->profiles[p].violations[i]);
	metric_one(b, "policy_denials_not_logged_total", "counter",
		"Refusals that were not logged, because there were too many in one second.",
		(double)s->denials_not_logged);
}

static void write_pictures(struct buffer *b, const struct sessions_stats *s)
{
	char profile[LABEL_MAX];
	metric_head(b, "screenshots_total", "counter",
		"Screenshots requested by cells; empty: no window was on the screen.");
	for (unsigned p = 0; p < count_slots(s); p++)
		for (int i = 0; i < PICTURE_OUTCOMES; i++)
			write_row(b, s, "screenshots_total", p, "outcome", picture_outcome_names[i],
				s->profiles[p].pictures[i]);
	metric_head(b, "screenshots_settled_total", "counter",
		"Screenshots of cells that were taken after the screen had stopped changing.");
	for (unsigned p = 0; p < count_slots(s); p++)
		buffer_printf(b, "glovebox_screenshots_settled_total{profile=\"%s\"} %llu\n",
			profile_label(s, p, profile),
			(unsigned long long)s->profiles[p].pictures_settled);
	metric_histogram(b, "screenshot_seconds",
		"Time from the first window of a cell (or the request) to its screenshot.",
		&s->picture_seconds);
}

static void write_cells(struct buffer *b, const struct sessions_stats *s)
{
	write_cell_counts(b, s);
	write_violations(b, s);
	write_pictures(b, s);
	metric_one(b, "cells_running", "gauge", "Cells running.", (double)s->running_cells);
	metric_one(b, "cells_queued", "gauge", "Cells waiting in their session.",
		(double)s->queued_cells);
	metric_head(b, "cell_seconds", "histogram", "Wall time of cells, by profile.");
	for (unsigned p = 0; p < count_slots(s); p++) {
		char profile[LABEL_MAX], label[LABEL_MAX + 16];
		snprintf(label, sizeof(label), "profile=\"%s\"", profile_label(s, p, profile));
		metric_histogram_rows(b, "cell_seconds", label, &s->profiles[p].cell_seconds);
	}

	metric_head(b, "output_bytes_total", "counter", "Bytes printed by cells.");
	buffer_printf(b, "glovebox_output_bytes_total{stream=\"stdout\"} %llu\n",
		(unsigned long long)s->stdout_bytes);
	buffer_printf(b, "glovebox_output_bytes_total{stream=\"stderr\"} %llu\n",
		(unsigned long long)s->stderr_bytes);
}

static void write_packages(struct buffer *b, const struct packages_stats *p)
{
	metric_one(
		b, "packages_asked_total", "counter", "Requests for packages.", (double)p->asked);
	metric_one(b, "packages_hits_total", "counter",
		"Requests for packages that the store could satisfy without an installation.",
		(double)p->hits);
	metric_one(b, "packages_installed_total", "counter", "Completed installations.",
		(double)p->installed);
	metric_one(b, "packages_failed_total", "counter", "Installations that failed.",
		(double)p->failed);
	metric_one(b, "packages_repaired_total", "counter", "Damaged sets that were removed.",
		(double)p->repaired);
	metric_one(b, "packages_installing", "gauge", "Running installations.", p->running);
}

static void write_network(struct buffer *b, const struct sessions_stats *s)
{
	metric_head(b, "network_attempts_total", "counter",
		"Connections that sessions requested from the proxy, by verdict.");
	for (int i = 0; i < NETWORK_VERDICT_COUNT; i++)
		buffer_printf(b, "glovebox_network_attempts_total{verdict=\"%s\"} %llu\n",
			network_verdict_name((enum network_verdict)i),
			(unsigned long long)s->network_attempts[i]);
	metric_head(b, "network_bytes_total", "counter",
		"Bytes of ended connections, from the session's point of view.");
	buffer_printf(b,
		"glovebox_network_bytes_total{direction=\"sent\"} %llu\nglovebox_network_bytes_total{direction=\"received\"} %llu\n",
		(unsigned long long)s->network_sent_bytes,
		(unsigned long long)s->network_received_bytes);
}

static void write_steps(struct buffer *b, const struct step_times *t)
{
	metric_head(b, "step_seconds", "summary",
		"Duration of each step of guest starts and of cells.");
	for (int i = 0; i < STEP_COUNT; i++)
		buffer_printf(b,
			"glovebox_step_seconds_sum{step=\"%s\"} %.9g\nglovebox_step_seconds_count{step=\"%s\"} %llu\n",
			step_name((enum lap)i), (double)t->ns[i] / 1e9, step_name((enum lap)i),
			(unsigned long long)t->count[i]);
}

/* A resource that is not known has no row. */
static void write_left(struct buffer *b, const char *name, const char *help, uint64_t value)
{
	if (value != UINT64_MAX)
		metric_one(b, name, "gauge", help, (double)value);
}

static void write_room(struct buffer *b, struct sessions *t)
{
	struct machine_room room;
	sessions_room(t, &room);
	metric_one(b, "process_open_fds", "gauge", "File descriptors of the daemon.",
		descriptors_open());
	write_left(b, "descriptors_left", "File descriptors that the daemon may still open.",
		room.descriptors_left);
	write_left(b, "descriptors_limit", "File descriptors that the daemon may have.",
		room.descriptors_limit);
	write_left(b, "processes_left",
		"Processes that the machine, or the server's control group, may still have.",
		room.processes_left);
	write_left(b, "processes_limit", "Processes that it may have.", room.processes_limit);
	write_left(b, "memory_left_bytes",
		"Memory that the machine, or the server's control group, has left.",
		room.memory_left);
	write_left(b, "memory_limit_bytes", "Memory that it has.", room.memory_limit);
	write_left(b, "state_dir_left_bytes", "Disk space left for the state directory.",
		room.disk_left);
}

void metrics_write_sessions(struct buffer *b, const struct api *a)
{
	const struct sessions_stats *stats = sessions_stats(a->sessions);
	write_sessions(b, stats);
	write_cells(b, stats);
	write_network(b, stats);
	if (a->packages)
		write_packages(b, packages_stats(a->packages));
	write_steps(b, &stats->steps);
	write_room(b, a->sessions);
}
