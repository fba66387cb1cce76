/*
 * Counters of /metrics in addition to those of the session table: requests by route and status, and
 * how long they took.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct api;
struct buffer;
struct http_log_entry;
struct metrics;

/* `token`: see metrics_is_operator(); copied, or NULL. NULL: no memory. */
struct metrics *metrics_create(size_t n_routes, const char *token);
/* After metrics_watch() it is freed in the loop's next turn. */
void metrics_destroy(struct metrics *m);

/*
 * Counts the CPU time of each turn of the loop from now on: the time for which all other clients
 * wait.
 */
void metrics_watch(struct metrics *m, uv_loop_t *loop);

/*
 * Does the Authorization header (or NULL) carry the token that opens the figures of the whole
 * server?
 */
bool metrics_is_operator(const struct metrics *m, const char *authorization);

void metrics_count_request(struct api *a, const struct http_log_entry *entry);

/* Appends everything in Prometheus' text format. */
int metrics_write(const struct api *a, struct buffer *out);

/* The same about the sessions of one token: nothing there tells of the others. */
int metrics_write_own(const struct api *a, uint64_t owner, struct buffer *out);
