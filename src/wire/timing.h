/*
 * The duration of each step of a session's start and of a cell. A guest tells with READY and DONE
 * how long each of its steps took; the daemon adds what lies between (waking up, waiting for a CPU)
 * and what it does itself. Shown as sums and counts in /metrics.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum lap {
	/* a guest's start, in it */
	STEP_CLONE,  /* from the zygote's clone to the child's first instruction */
	STEP_JOIN,   /* its control groups */
	STEP_ENTER,  /* namespaces, limits, user, capabilities, Landlock */
	STEP_FILTER, /* the system call filter */
	STEP_PYTHON, /* what Python does after a fork; then it says READY */
	STEP_SPAWN,  /* the daemon: all else between asking for it and READY */
	STEP_SETUP,  /* environment, limits, seed of the session */
	/* a cell, in the guest */
	STEP_COMPILE,
	STEP_RUN,
	STEP_VALUE,  /* the value or the error as people see it, figures */
	STEP_REPORT, /* what was printed flushed, changed files found */
	STEP_CELL,   /* the daemon: all else between sending it and DONE */
	STEP_ENCODE, /* the daemon: the observation as JSON, sent */
	STEP_COUNT
};

struct step_times {
	uint64_t count[STEP_COUNT], ns[STEP_COUNT];
};

const char *step_name(enum lap s);

/* A step and its time in one number, for a wire field; the time is cut at two years. */
uint64_t step_pack(enum lap s, uint64_t ns);

/* Adds a packed one; returns its time, 0 for a number that cannot be. */
uint64_t step_add_packed(struct step_times *t, uint64_t packed);
void step_add(struct step_times *t, enum lap s, uint64_t ns);
void step_add_all(struct step_times *t, const struct step_times *from);

/* Of `total` what the steps from first to last do not explain. */
uint64_t step_rest(const struct step_times *t, enum lap first, enum lap last, uint64_t total);
