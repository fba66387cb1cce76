/*
 * A walk over all files of a volume, in small steps: the daemon has one thread, and code of sessions
 * chose the names, the number and the depth of the files. Symbolic links and other file systems are
 * never entered.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

enum volume_walk_kind {
	VOLUME_WALK_COUNT,    /* bytes and files */
	VOLUME_WALK_READABLE, /* the same, and other users may read the files */
	VOLUME_WALK_REMOVE    /* everything is removed, but for the directory itself */
};

struct volume_walk {
	enum volume_walk_kind kind;
	struct {
		DIR *dir;
		char name[NAME_MAX + 1]; /* in the directory above */
	} level[LIMIT_VOLUME_DEPTH];
	unsigned depth;        /* levels that are open; 0: the walk is over */
	uint64_t bytes, files; /* so far; files counts directories too */
	bool too_deep;
};

/* `dir` stays the caller's. -errno when it cannot be read. */
int volume_walk_start(struct volume_walk *w, int dir, enum volume_walk_kind kind);

/* Looks at so many entries at most. False when the walk is over. */
bool volume_walk_step(struct volume_walk *w, unsigned entries);

/* Ends a walk early. Also fine when it is over, or was never started (all zeros). */
void volume_walk_stop(struct volume_walk *w);
