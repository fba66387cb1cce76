/*
 * When is a picture worth taking? Not after a fixed sleep: when the programs that paint have nothing more to do.
 *
 * `struct activity` is what a screen knows of its clients: when something was painted or mapped last, and, while somebody waits, a
 * sample of every client's threads each 2 ms: do they wait, for how long at most, how much CPU did they use. `struct settle` is
 * one question; settle_decide() answers it from the activity alone, so that the rules are tested without an X server.
 *
 *   QUIET   every thread of every client and the server wait, for 30 ms or more, and nobody ran for 6 ms
 *   IDLE    nothing painted for settle_ms, and the clients use little CPU; 8 times as long while the window is one colour
 *   BUSY    nothing painted, and since then 600 ms of CPU (not of time: a loaded machine is no reason) were used
 *   CAP     still changing max_ms after the first window was there
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "display/protocol.h"

enum {
	SETTLE_TICK_MS = 2,
	SETTLE_QUIET_MS = 6,         /* nobody ran */
	SETTLE_BLIND_QUIET_MS = 30,  /* the same where the clients' timeouts cannot be seen */
	SETTLE_NEAR_MS = 30,         /* a timeout nearer than this is an animation's */
	SETTLE_IDLE_MS = 80,
	SETTLE_FLAT_FACTOR = 8,
	SETTLE_BUSY_CPU_MS = 600,
	SETTLE_BUSY_WALL_MS = 3000,
	SETTLE_MAX_MS = 3000,
	SETTLE_FLAT_MAX_MS = 2500,   /* more, while the window is one colour */
	SETTLE_UNCHANGED_MS = 250,   /* a main loop that waits beside windows nobody touched */
};

/* What one sample says of all clients together. */
struct sample {
	bool waiting;      /* every thread waits */
	bool in_loop;      /* … and the clients' main threads for events, not just for time to pass */
	bool blind;        /* could not see for how long */
	double near_ms;    /* the nearest timeout; large when there is none */
	uint64_t run_ns;   /* CPU used by all of them so far */
};

struct activity {
	uint64_t paint_ns, map_ns; /* last of each, 0: never */
	uint64_t changes;          /* paints and maps so far */
	/* between samples */
	uint64_t quiet_ns;         /* since when nobody ran; 0: somebody did */
	uint64_t quiet_run_ns;
	uint64_t since_paint_run_ns, since_paint_ns, seen_changes;
	unsigned samples, busy_samples;
	struct sample last;
};

struct settle {
	uint64_t asked_ns, start_ns; /* start: the first window was there; 0: not yet */
	uint64_t changes;            /* when asked */
	bool first_window;
	uint32_t settle_ms, max_ms, render_ms;
};

void settle_begin(struct settle *q, const struct shot_options *o, const struct activity *a, uint64_t now_ns);

void activity_painted(struct activity *a, uint64_t now_ns);
void activity_mapped(struct activity *a, uint64_t now_ns);
void activity_sample(struct activity *a, const struct sample *s, uint64_t now_ns);

/* True and the reason when the picture should be taken now. `windows`: there are any; flat() is asked only when it matters. */
bool settle_decide(struct settle *q, const struct activity *a, bool windows, bool (*flat)(void *), void *userdata, uint64_t now_ns,
	enum shot_reason *ret);

/* proc.c: the process of this name among those of the user, 0 when there is none. */
int32_t proc_find(const char *name);

/* Samples these processes. */
void proc_sample(const int32_t *pids, unsigned n, struct sample *ret);
