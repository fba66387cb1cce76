/*
 * Decides when a screenshot can be taken: not after a fixed sleep, but when the programs that paint have nothing more to do.
 *
 * `struct activity` is what a screen knows of its clients: when something was painted or mapped last, and, while somebody waits, a
 * sample of every client's threads each 2 ms: do they wait, for how long at most, how much CPU did they use. `struct settle` is
 * one question; settle_decide() answers it from the activity alone, so that the rules are tested without an X server.
 *
 *   QUIET   every thread of every client waits, for 30 ms or more, and nobody ran for 6 ms, also after the server has answered what it was asked; not while the window is one
 *           colour, unless it is events that the clients wait for
 *   IDLE    nothing painted for settle_ms, and the clients were seen to wait most of it; 8 times as long while the window is one colour
 *   BUSY    nothing painted, and since then 600 ms of CPU (not of time: a loaded machine is no reason) were used
 *   STILL   painted again and again for 300 ms, always the same: a game that waits for its player; 8 times as long while it is one colour
 *   CAP     still changing max_ms after the first window was there
 *
 * A question with `in_loop` waits for a main loop instead: QUIET while the clients wait for events, or CAP when they were seen to do so between
 * one thing and the next (an animation's timer) several times. Code that draws and computes never gives a reason.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "display/protocol.h"

enum {
	SETTLE_TICK_MS = 2,
	SETTLE_QUIET_MS = 6,        /* nobody ran */
	SETTLE_BLIND_QUIET_MS = 30, /* the same where the clients' timeouts cannot be seen */
	SETTLE_NEAR_MS = 30,        /* a timeout nearer than this is an animation's */
	SETTLE_IDLE_MS = 80,
	SETTLE_FLAT_FACTOR = 8,
	SETTLE_BUSY_CPU_MS = 600,
	SETTLE_BUSY_WALL_MS = 3000,
	SETTLE_MAX_MS = 3000,
	/* beyond max_ms, but no more than as much again, while the window is one colour … */
	SETTLE_FLAT_MAX_MS = 2500,
	/* … and as many times as long, while its program gets no time to paint it */
	SETTLE_STARVED_FACTOR = 3,
	SETTLE_STILL_MS = 300,
	SETTLE_STILL_LOOK_MS = 40, /* between looks at the pixels */
	SETTLE_STILL_PAINTS = 5,   /* at least so many times the same */
	SETTLE_UNCHANGED_MS = 250, /* a main loop that waits beside windows nobody touched */
	/* looks at clients while nothing but a main loop, or a first change, is awaited */
	SETTLE_LOOP_TICK_MS = 10,
	/* so many looks must find them waiting for events and for their next timer */
	SETTLE_LOOP_SAMPLES = 6,
};

/* What one sample says of all clients together. */
struct sample {
	bool waiting; /* every thread waits */
	/* … and the clients' main threads for events, not just for time to pass */
	bool in_loop;
	/* the clients' main threads wait for events or for a time, whichever comes first */
	bool ticking;
	/* no client is the session's own interpreter: what they do is nobody's drawing */
	bool foreign;
	bool blind;      /* could not see for how long */
	double near_ms;  /* the nearest timeout; large when there is none */
	uint64_t run_ns; /* CPU used by all of them so far */
};

struct activity {
	uint64_t paint_ns, map_ns; /* last of each, 0: never */
	uint64_t changes;          /* paints and maps so far */
	/* between samples */
	uint64_t quiet_ns; /* since when nobody ran; 0: somebody did */
	/* start of the last sample: the last moment of which it is known that nobody ran */
	uint64_t began_ns;
	uint64_t quiet_run_ns;
	uint64_t since_paint_run_ns, since_paint_ns, seen_changes;
	unsigned samples, busy_samples;
	/* of the time since the last paint, what they were seen to wait */
	uint64_t idle_ns;
	uint64_t waited_ns; /* the same since ever */
	uint64_t sample_ns;
	struct sample last;
	/* between looks at the pixels, made only while somebody waits and something paints */
	uint64_t look_ns, look_changes, pixels;
	/* since when, and since which change, they are the same; 0: not looked at */
	uint64_t still_ns, still_changes;
};

struct settle {
	uint64_t asked_ns, start_ns; /* start: the first window was there; 0: not yet */
	uint64_t changes;            /* when asked */
	bool first_window, in_loop, or_settled;
	unsigned ticking; /* looks that found an animation's main loop */
	bool counted;     /* from these on: */
	uint64_t run_ns, waited_ns;
	uint32_t settle_ms, max_ms, render_ms;
};

void settle_begin(
	struct settle *q, const struct shot_options *o, const struct activity *a, uint64_t now_ns);

void activity_painted(struct activity *a, uint64_t now_ns);
void activity_mapped(struct activity *a, uint64_t now_ns);
/*
 * A client waited for the server or for the window manager, and got its answer: it did not wait for
 * events.
 */
void activity_answered(struct activity *a);
/*
 * A sample takes time, more than it should where the sampler is preempted: it began at began_ns and
 * ended at now_ns.
 */
void activity_sample(
	struct activity *a, const struct sample *s, uint64_t began_ns, uint64_t now_ns);

/*
 * How long nobody ran, as far as the samples after since_ns show. 0: somebody did, or there was
 * only one.
 */
uint64_t activity_quiet_ns(const struct activity *a, uint64_t since_ns);

/*
 * Whether the pixels should be examined. The caller then reports their checksum with
 * activity_looked().
 */
bool activity_wants_look(const struct activity *a, uint64_t now_ns);
void activity_looked(struct activity *a, uint64_t pixels, uint64_t now_ns);

/*
 * When the clients should be looked at again for this question, after a look at looked_ns.
 * UINT64_MAX: when something happens on the screen.
 */
uint64_t settle_next_ns(
	const struct settle *q, const struct activity *a, bool windows, uint64_t looked_ns);

/*
 * True and the reason when the picture should be taken now. `windows`: there are any; flat() is
 * asked only when it matters.
 */
bool settle_decide(struct settle *q, const struct activity *a, bool windows, bool (*flat)(void *),
	void *userdata, uint64_t now_ns, enum shot_reason *ret);

/* client_activity.c: the process of this name among those of the user, 0 when there is none. */
int32_t proc_find(const char *name);

/* Is none of these processes, of which one is the X server, the session's interpreter? */
bool proc_foreign(const int32_t *pids, unsigned n, int32_t server);

/*
 * Samples these processes, of which one is the X server. Leaves `foreign` out, which does not
 * change between looks.
 */
void proc_sample(const int32_t *pids, unsigned n, int32_t server, struct sample *ret);
