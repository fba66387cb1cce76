#include "api/metrics.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/call.h"
#include "api/routes.h"
#include "base/cleanup.h"
#include "base/fds.h"
#include "base/memory_account.h"
#include "base/text.h"
#include "packages/packages.h"
#include "session/session.h"

/* Statuses with a column of their own; the last one takes all others. 0 is a client that left. */
static const int statuses[] = { 0, 101, 200, 201, 204, 400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 421, 422,
	426, 429, 431, 500, 503, 507, -1 };

enum { ROUTES_MAX = 128, OTHER = ROUTES_MAX - 1 };

struct metrics {
	uint64_t requests[ROUTES_MAX][ARRAY_LEN(statuses)]; /* OTHER: no route of ours */
	struct stats_histogram seconds;
};

struct metrics *metrics_create(void)
{
	return calloc(1, sizeof(struct metrics));
}

void metrics_destroy(struct metrics *m)
{
	free(m);
}

/* ---- counting ------------------------------------------------------------ */

static size_t route_index(const char *method, const char *target)
{
	char path[LIMIT_TARGET_BYTES + 1], id[CALL_ID_BYTES], rest[LIMIT_PATH_BYTES + 2];
	struct route_match m = { .id = id, .id_size = sizeof(id), .path = rest, .path_size = sizeof(rest) };
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(target, "?"), target);
	for (int i = 0; i < HTTP_METHOD_COUNT; i++) {
		if (!text_eq(http_method_name((enum http_method)i), method))
			continue;
		routes_match((enum http_method)i, path, &m);
		return m.route ? (size_t)(m.route - routes) : OTHER;
	}
	return OTHER;
}

static size_t status_index(int status)
{
	size_t i = 0;
	while (i < ARRAY_LEN(statuses) - 1 && statuses[i] != status)
		i++;
	return i;
}

static void observe(struct stats_histogram *h, double seconds)
{
	for (size_t i = 0; i < STATS_BUCKETS - 1; i++)
		h->bucket[i] += seconds <= stats_bounds_s[i];
	h->bucket[STATS_BUCKETS - 1]++;
	h->sum += seconds;
	h->count++;
}

void metrics_count_request(struct metrics *m, const struct http_log_entry *entry)
{
	m->requests[route_index(entry->method, entry->target)][status_index(entry->status)]++;
	if (entry->status)
		observe(&m->seconds, (double)entry->duration_ns / 1e9);
}

/* ---- writing ------------------------------------------------------------- */

static void head(struct buffer *b, const char *name, const char *type, const char *help)
{
	buffer_printf(b, "# HELP glovebox_%s %s\n# TYPE glovebox_%s %s\n", name, help, name, type);
}

static void one(struct buffer *b, const char *name, const char *type, const char *help, double value)
{
	head(b, name, type, help);
	buffer_printf(b, "glovebox_%s %.15g\n", name, value);
}

static void histogram(struct buffer *b, const char *name, const char *help, const struct stats_histogram *h)
{
	head(b, name, "histogram", help);
	for (size_t i = 0; i < STATS_BUCKETS - 1; i++)
		buffer_printf(b, "glovebox_%s_bucket{le=\"%g\"} %llu\n", name, stats_bounds_s[i],
			(unsigned long long)h->bucket[i]);
	buffer_printf(b,
		"glovebox_%s_bucket{le=\"+Inf\"} %llu\nglovebox_%s_sum %.9g\nglovebox_%s_count %llu\n", name,
		(unsigned long long)h->count, name, h->sum, name, (unsigned long long)h->count);
}

static void write_sessions(struct buffer *b, const struct sessions_stats *s)
{
	one(b, "sessions", "gauge", "Sessions alive.", (double)s->live);
	one(b, "sessions_limit", "gauge", "Sessions that there may be.", s->limit);
	one(b, "sessions_created_total", "counter", "Sessions made.", (double)s->created);
	one(b, "sessions_ended_total", "counter", "Sessions ended.", (double)s->ended);
	one(b, "sessions_from_ready_total", "counter", "Sessions made from a guest that was ready.",
		(double)s->taken_ready);
	one(b, "guests_ready", "gauge", "Guests kept ready.", s->ready_guests);
	one(b, "guests_forked_total", "counter", "Guests forked from a zygote.", (double)s->forked);
	one(b, "guests_replaced_total", "counter", "Interpreters that had to be replaced.",
		(double)s->guests_replaced);
	one(b, "tool_calls_total", "counter", "Calls of tools that sessions made.", (double)s->tool_calls);
	one(b, "tool_errors_total", "counter", "Calls of tools that ended in an error.", (double)s->tool_errors);
	one(b, "copies_parked_total", "counter", "Copies of guests that were parked.", (double)s->snapshots_parked);
	one(b, "copies_refused_total", "counter", "Copies that could not be: threads, children, open sockets.", (double)s->snapshots_refused);
	one(b, "cells_rolled_back_total", "counter", "Cells that ended their interpreter and cost nothing.",
		(double)s->cells_rolled_back);
	one(b, "checkpoints_total", "counter", "Checkpoints that were asked for.", (double)s->checkpoints);
	one(b, "checkpoints_evicted_total", "counter", "Checkpoints that had to go for their number or memory.", (double)s->checkpoints_evicted);
	one(b, "sessions_forked_total", "counter", "Sessions made from another one's state.", (double)s->forks);
	one(b, "rollbacks_total", "counter", "Times a session went back to a checkpoint.", (double)s->rollbacks);
	one(b, "zygote_restarts_total", "counter", "Times a zygote was started again.",
		(double)s->zygote_restarts);
	histogram(b, "session_create_seconds", "From asking for a session to its guest being there.",
		&s->create_seconds);
}

/* A counter for each built-in profile: own ones count as that which they come down to, so that names of requests are no labels. */
static void write_row(struct buffer *b, const char *name, unsigned profile, const char *label, const char *value, uint64_t count)
{
	buffer_printf(b, "glovebox_%s{profile=\"%s\",%s=\"%s\"} %llu\n", name, profile_tables[profile].name, label, value, (unsigned long long)count);
}

static void write_by_profile(struct buffer *b, const struct sessions_stats *s)
{
	head(b, "cells_total", "counter", "Cells by profile and outcome.");
	for (unsigned p = 0; p < PROFILE_COUNT; p++)
		for (int i = 0; i < CELL_STATUS_COUNT; i++)
			write_row(b, "cells_total", p, "status", cell_status_name((enum cell_status)i), s->cells[p][i]);

	head(b, "policy_violations_total", "counter", "What profiles refused, by rule.");
	for (unsigned p = 0; p < PROFILE_COUNT; p++)
		for (int i = 0; i < POLICY_RULES; i++)
			write_row(b, "policy_violations_total", p, "rule", policy_rule_codes[i] + strlen("policy_"), s->violations[p][i]);
	one(b, "policy_denials_not_logged_total", "counter", "Refusals that have no line in the log, because there were too many in a second.",
		(double)s->denials_not_logged);

	head(b, "screenshots_total", "counter", "Pictures that cells were asked for; empty: no window was on the screen.");
	for (unsigned p = 0; p < PROFILE_COUNT; p++)
		for (int i = 0; i < PICTURE_OUTCOMES; i++)
			write_row(b, "screenshots_total", p, "outcome", picture_outcome_names[i], s->pictures[p][i]);
}

static void write_cells(struct buffer *b, const struct sessions_stats *s)
{
	write_by_profile(b, s);
	one(b, "cells_running", "gauge", "Cells running.", (double)s->running_cells);
	one(b, "cells_queued", "gauge", "Cells waiting in their session.", (double)s->queued_cells);
	histogram(b, "cell_seconds", "Wall time of cells.", &s->cell_seconds);
	head(b, "output_bytes_total", "counter", "Bytes that cells printed.");
	buffer_printf(b, "glovebox_output_bytes_total{stream=\"stdout\"} %llu\n",
		(unsigned long long)s->stdout_bytes);
	buffer_printf(b, "glovebox_output_bytes_total{stream=\"stderr\"} %llu\n",
		(unsigned long long)s->stderr_bytes);
}

static void write_packages(struct buffer *b, const struct packages_stats *p)
{
	one(b, "packages_asked_total", "counter", "Requests for packages.", (double)p->asked);
	one(b, "packages_hits_total", "counter", "Those that the store could answer.", (double)p->hits);
	one(b, "packages_installed_total", "counter", "Installations that were made.", (double)p->installed);
	one(b, "packages_failed_total", "counter", "Installations that failed.", (double)p->failed);
	one(b, "packages_repaired_total", "counter", "Damaged sets that were removed.", (double)p->repaired);
	one(b, "packages_installing", "gauge", "Installations under way.", p->running);
}

static void write_network(struct buffer *b, const struct sessions_stats *s)
{
	head(b, "network_attempts_total", "counter", "Connections that sessions asked the proxy for, by verdict.");
	for (int i = 0; i < NETWORK_VERDICT_COUNT; i++)
		buffer_printf(b, "glovebox_network_attempts_total{verdict=\"%s\"} %llu\n", network_verdict_name((enum network_verdict)i),
			(unsigned long long)s->network_attempts[i]);
	head(b, "network_bytes_total", "counter", "Bytes of connections that ended, as sessions see them.");
	buffer_printf(b, "glovebox_network_bytes_total{direction=\"sent\"} %llu\nglovebox_network_bytes_total{direction=\"received\"} %llu\n",
		(unsigned long long)s->network_sent_bytes, (unsigned long long)s->network_received_bytes);
}

static void write_steps(struct buffer *b, const struct step_times *t)
{
	head(b, "step_seconds", "summary", "Where the time of guests' starts and of cells goes.");
	for (int i = 0; i < STEP_COUNT; i++)
		buffer_printf(b,
			"glovebox_step_seconds_sum{step=\"%s\"} %.9g\nglovebox_step_seconds_count{step=\"%s\"} %llu\n",
			step_name((enum lap)i), (double)t->ns[i] / 1e9, step_name((enum lap)i),
			(unsigned long long)t->count[i]);
}

static void write_request_row(struct buffer *b, const uint64_t *row, const char *method, const char *pattern)
{
	char status[16];
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		if (!row[i])
			continue;
		snprintf(status, sizeof(status), "%d", statuses[i]);
		buffer_printf(b,
			"glovebox_http_requests_total{method=\"%s\",route=\"%s\",status=\"%s\"} %llu\n",
			method, pattern,
			statuses[i] > 0 ? status
			: statuses[i]   ? "other"
					: "left",
			(unsigned long long)row[i]);
	}
}

static void write_requests(struct buffer *b, const struct metrics *m)
{
	_Static_assert(ROUTES_MAX <= 128, "the counts stay small");
	head(b, "http_requests_total", "counter",
		"Requests by route and status; left: the client did not wait.");
	for (size_t i = 0; i < routes_count && i < OTHER; i++)
		write_request_row(b, m->requests[i], http_method_name(routes[i].method), routes[i].pattern);
	write_request_row(b, m->requests[OTHER], "any", "none");
	histogram(b, "http_request_seconds", "From a request's head to its whole answer.", &m->seconds);
}

static void write_server(struct buffer *b, const struct http_server_stats *s)
{
	one(b, "http_connections", "gauge", "Connections open.", s->open);
	one(b, "http_websockets", "gauge", "WebSockets open.", s->websockets);
	one(b, "http_connections_total", "counter", "Connections accepted.", (double)s->accepted);
	one(b, "http_connections_refused_total", "counter", "Connections refused.", (double)s->refused);
	one(b, "http_received_bytes_total", "counter", "Bytes received.", (double)s->bytes_in);
	one(b, "http_sent_bytes_total", "counter", "Bytes sent.", (double)s->bytes_out);
}

static double resident_bytes(void)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	unsigned long size, resident;
	if (fd_read_file("/proc/self/statm", 256, &text, &len) < 0 ||
		sscanf(text, "%lu %lu", &size, &resident) != 2)
		return 0;
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static double open_descriptors(void)
{
	struct stat st;
	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
		return (double)st.st_size; /* since Linux 6.2; counting tens of thousands takes milliseconds */
	DIR *d = opendir("/proc/self/fd");
	double n = -3; /* ".", ".." and the directory itself */
	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

int metrics_write(const struct api *a, struct buffer *out)
{
	const struct sessions_stats *stats = sessions_stats(a->sessions);
	head(out, "info", "gauge", "The server's version.");
	buffer_printf(out, "glovebox_info{version=\"%s\"} 1\n", GLOVEBOX_VERSION);
	one(out, "ready", "gauge", "1 when the zygote is warm and the server is not about to end.",
		sessions_ready(a->sessions) && !a->draining);
	write_sessions(out, stats);
	write_cells(out, stats);
	write_network(out, stats);
	if (a->packages)
		write_packages(out, packages_stats(a->packages));
	write_steps(out, &stats->steps);
	write_requests(out, a->metrics);
	one(out, "http_in_flight", "gauge", "Requests not yet answered.", a->in_flight);
	if (a->server)
		write_server(out, http_server_stats(a->server));
	one(out, "held_bytes", "gauge", "Memory held for clients and guests: requests, output, answers that were not read.", (double)hold_total());
	one(out, "process_resident_bytes", "gauge", "Memory of the daemon itself.", resident_bytes());
	one(out, "process_open_fds", "gauge", "File descriptors of the daemon.", open_descriptors());
	return out->len ? 0 : -ENOMEM;
}
