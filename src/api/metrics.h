/* What /metrics counts beside the session table's own figures: requests by route and status, and how long
 * they took. */
#pragma once

struct api;
struct buffer;
struct http_log_entry;
struct metrics;

struct metrics *metrics_create(void); /* NULL: no memory */
void metrics_destroy(struct metrics *m);

void metrics_count_request(struct metrics *m, const struct http_log_entry *entry);

/* Appends everything in Prometheus' text format. */
int metrics_write(const struct api *a, struct buffer *out);
