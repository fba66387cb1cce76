#include "api/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "api/call.h"
#include "api/metrics_internal.h"
#include "api/routes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/memory_account.h"
#include "base/text.h"
#include "session/session.h"

/* Statuses with a column of their own; the last one takes all others. 0 is a client that left. */
static const int statuses[] = { 0, 101, 200, 201, 204, 400, 401, 403, 404, 405, 408, 409, 410, 413,
	415, 421, 422, 426, 429, 431, 500, 503, 507, -1 };

struct metrics {
	struct stats_histogram seconds;
	char *token; /* of the operator; or NULL */
	struct {
		uv_prepare_t before_poll;
		struct stats_histogram seconds;
		uint64_t cpu_ns; /* of the daemon when the turn began */
		double longest_s;
		bool watched;
	} turns;
	size_t n_routes;
	uint64_t requests[][ARRAY_LEN(statuses)]; /* the last row: no route of ours */
};

struct metrics *metrics_create(size_t n_routes, const char *token)
{
	struct metrics *m = calloc(1, sizeof(*m) + (n_routes + 1) * sizeof(m->requests[0]));
	if (!m)
		return NULL;

	m->n_routes = n_routes;
	m->token = token ? strdup(token) : NULL;
	if (token && !m->token) {
		free(m);
		return NULL;
	}
	return m;
}

static void free_metrics(struct metrics *m)
{
	if (m->token)
		explicit_bzero(m->token, strlen(m->token));
	free(m->token);
	free(m);
}

static void on_closed(uv_handle_t *h)
{
	free_metrics(h->data);
}

void metrics_destroy(struct metrics *m)
{
	if (m && m->turns.watched)
		uv_close((uv_handle_t *)&m->turns.before_poll, on_closed);
	else if (m)
		free_metrics(m);
}

bool metrics_is_operator(const struct metrics *m, const char *authorization)
{
	static const char bearer[] = "Bearer ";
	if (!m->token || !authorization || strncasecmp(authorization, bearer, sizeof(bearer) - 1))
		return false;

	const char *token = authorization + sizeof(bearer) - 1;
	return text_eq_secret(token, strlen(token), m->token, strlen(m->token));
}

/* ---- counting ------------------------------------------------------------ */

static size_t route_index(const struct api *a, const char *method, const char *target)
{
	char path[LIMIT_TARGET_BYTES + 1], id[CALL_ID_BYTES], rest[LIMIT_PATH_BYTES + 2];
	struct route_match m = {
		.id = id, .id_size = sizeof(id), .path = rest, .path_size = sizeof(rest)
	};
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(target, "?"), target);
	for (int i = 0; i < HTTP_METHOD_COUNT; i++) {
		if (!text_eq(http_method_name((enum http_method)i), method))
			continue;
		routes_match(&a->routes, (enum http_method)i, path, &m);
		return m.route ? m.index : a->routes.n;
	}
	return a->routes.n;
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

static uint64_t cpu_now_ns(void)
{
	struct timespec t = { 0 };
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* A turn ends here. Waiting for events takes no CPU time, so it does not count. */
static void on_turn(uv_prepare_t *h)
{
	struct metrics *m = h->data;
	uint64_t now = cpu_now_ns();
	double seconds = (double)(now - m->turns.cpu_ns) / 1e9;
	m->turns.cpu_ns = now;
	observe(&m->turns.seconds, seconds);
	if (seconds > m->turns.longest_s)
		m->turns.longest_s = seconds;
}

void metrics_watch(struct metrics *m, uv_loop_t *loop)
{
	m->turns.watched = uv_prepare_init(loop, &m->turns.before_poll) == 0;
	m->turns.before_poll.data = m;
	m->turns.cpu_ns = cpu_now_ns();
	if (m->turns.watched && uv_prepare_start(&m->turns.before_poll, on_turn) == 0)
		uv_unref((uv_handle_t *)&m->turns.before_poll); /* keeps no loop running */
}

void metrics_count_request(struct api *a, const struct http_log_entry *entry)
{
	struct metrics *m = a->metrics;
	m->requests[route_index(a, entry->method, entry->target)][status_index(entry->status)]++;
	if (entry->status)
		observe(&m->seconds, (double)entry->duration_ns / 1e9);
}

/* ---- writing ------------------------------------------------------------- */

static void write_request_row(
	struct buffer *b, const uint64_t *row, const char *method, const char *pattern)
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

static void write_requests(struct buffer *b, const struct api *a)
{
	const struct metrics *m = a->metrics;
	metric_head(b, "http_requests_total", "counter",
		"Requests by route and status; left: the client disconnected before the answer.");
	for (size_t i = 0; i < m->n_routes; i++)
		write_request_row(b, m->requests[i], http_method_name(a->routes.rows[i]->method),
			a->routes.rows[i]->pattern);
	write_request_row(b, m->requests[m->n_routes], "any", "none");
	metric_histogram(b, "http_request_seconds",
		"Time from the head of a request to the end of its answer.", &m->seconds);
}

static void write_server(struct buffer *b, const struct http_server_stats *s)
{
	metric_one(b, "http_connections", "gauge", "Connections open.", s->open);
	metric_one(b, "http_websockets", "gauge", "WebSockets open.", s->websockets);
	metric_one(b, "http_connections_total", "counter", "Connections accepted.",
		(double)s->accepted);
	metric_one(b, "http_connections_refused_total", "counter", "Connections refused.",
		(double)s->refused);
	metric_one(
		b, "http_received_bytes_total", "counter", "Bytes received.", (double)s->bytes_in);
	metric_one(b, "http_sent_bytes_total", "counter", "Bytes sent.", (double)s->bytes_out);
}

static void write_turns(struct buffer *b, struct metrics *m)
{
	metric_histogram(b, "loop_turn_seconds",
		"CPU time of one turn of the daemon's loop, for which all other clients wait.",
		&m->turns.seconds);
	metric_one(b, "loop_turn_longest_seconds", "gauge",
		"The longest turn since these figures were last read.", m->turns.longest_s);
	m->turns.longest_s = 0;
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

static void write_head(const struct api *a, struct buffer *out)
{
	metric_head(out, "info", "gauge", "The server's version.");
	buffer_printf(out, "glovebox_info{version=\"%s\"} 1\n", GLOVEBOX_VERSION);
	metric_one(out, "ready", "gauge",
		"1 if the zygote is warm and the server is not shutting down.",
		sessions_ready(a->sessions) && !a->draining);
}

int metrics_write_own(const struct api *a, uint64_t owner, struct buffer *out)
{
	unsigned live = 0, running = 0, queued = 0, paused = 0;
	for (struct session *s = sessions_next(a->sessions, NULL); s;
		s = sessions_next(a->sessions, s)) {
		struct session_info info;
		session_info(s, &info);
		if (info.owner != owner)
			continue;
		live++;
		running += info.state == SESSION_BUSY;
		paused += info.state == SESSION_PAUSED;
		queued += info.queued;
	}

	write_head(a, out);
	metric_one(out, "sessions", "gauge", "Sessions of this token alive.", live);
	metric_one(out, "sessions_limit", "gauge", "Sessions that this token may have.",
		a->max_sessions_per_token ? a->max_sessions_per_token
					  : sessions_stats(a->sessions)->limit);
	metric_one(
		out, "sessions_paused", "gauge", "Sessions of this token that are paused.", paused);
	metric_one(
		out, "cells_running", "gauge", "Sessions of this token that run a cell.", running);
	metric_one(
		out, "cells_queued", "gauge", "Cells waiting in sessions of this token.", queued);
	return out->len ? 0 : -ENOMEM;
}

int metrics_write(const struct api *a, struct buffer *out)
{
	write_head(a, out);
	metrics_write_sessions(out, a);
	write_requests(out, a);
	write_turns(out, a->metrics);
	metric_one(out, "http_in_flight", "gauge", "Requests not yet answered.", a->in_flight);
	if (a->server)
		write_server(out, http_server_stats(a->server));
	metric_one(out, "held_bytes", "gauge",
		"Memory held for clients and guests: requests, output, unread answers.",
		(double)hold_total());
	metric_one(out, "process_resident_bytes", "gauge", "Memory of the daemon itself.",
		resident_bytes());
	return out->len ? 0 : -ENOMEM;
}
