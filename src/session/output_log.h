/*
 * The whole output of a session, readable page by page: entries one after another, in memory while
 * small, then in an unnamed file. Bounded: output beyond the maximum is counted and dropped.
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "session/session.h"

struct output_log {
	const char *dir; /* for the file; not owned */
	uint64_t max, size, dropped;
	int fd; /* -1 while in memory */
	struct buffer memory, page;
};

void output_log_init(struct output_log *s, const char *dir, uint64_t max);
void output_log_finish(struct output_log *s);
void output_log_add(struct output_log *s, unsigned cell, enum stream stream, uint64_t wall_ns,
	const char *data, size_t len);
int output_log_read(struct output_log *s, uint64_t position, struct log_entry *ret);
