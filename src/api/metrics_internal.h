/* Writing figures; private to the files metrics*.c. */
#pragma once

#include "session/session.h"

struct api;
struct buffer;

/* The lines HELP and TYPE of a metric, whose name is given without `glovebox_`. */
void metric_head(struct buffer *b, const char *name, const char *type, const char *help);
/* A metric with one value. */
void metric_one(
	struct buffer *b, const char *name, const char *type, const char *help, double value);
/* One histogram of a metric; `label` is "" or `name="value"`. */
void metric_histogram_rows(
	struct buffer *b, const char *name, const char *label, const struct stats_histogram *h);
/* A metric that is one histogram. */
void metric_histogram(
	struct buffer *b, const char *name, const char *help, const struct stats_histogram *h);

/* metrics_sessions.c: sessions, cells, network, packages, steps, what the machine has left. */
void metrics_write_sessions(struct buffer *b, const struct api *a);
