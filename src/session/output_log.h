/*
 * The whole output of a session, readable page by page: entries one after another, in memory while small, then in an unnamed
 * file. Bounded: what comes after the maximum is counted and dropped.
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "session/session.h"

struct spool {
	const char *dir; /* for the file; not owned */
	uint64_t max, size, dropped;
	int fd; /* -1 while in memory */
	struct buffer memory, page;
};

void spool_init(struct spool *s, const char *dir, uint64_t max);
void spool_finish(struct spool *s);
void spool_add(struct spool *s, unsigned cell, enum stream stream, uint64_t wall_ns, const char *data, size_t len);
int spool_read(struct spool *s, uint64_t position, struct log_entry *ret);
