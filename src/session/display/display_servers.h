/*
 * Where X servers and screens come from: the X zygotes, one for each size of screen that is in use,
 * and the process that forks screens. Nothing runs before a first session wants a display (or
 * displays_warm() is called).
 *
 * Where a zygote does not work, plain X servers are started for that size; displays_kind() says so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "display/protocol.h"
#include "jail/cgroup/cgroup.h"

struct displays;
struct display;
struct film_list;
struct sandbox_pool;

struct display_size {
	unsigned width, height, depth, dpi;
};

enum { DISPLAY_WIDTH = 1024, DISPLAY_HEIGHT = 768, DISPLAY_DEPTH = 24, DISPLAY_DPI = 96 };

struct displays_config {
	uv_loop_t *loop;
	const char *guest_module; /* our library for Xvfb lies beside it */
	struct sandbox_pool *pool;
	bool plain; /* no zygotes: for tests, and machines where they misbehave */
};

int displays_create(const struct displays_config *config, struct displays **ret);
/* all displays must be closed */
void displays_destroy(struct displays *d, void (*done)(void *), void *userdata);

/*
 * Are there X servers on this machine? -ENOENT, slug "display_unavailable", with what to install.
 */
int displays_check(struct error *e);

/* Starts what a display of this size needs, ahead of it. */
void displays_warm(struct displays *d, const struct display_size *size);

/* How a server of this size comes to be: "warm" (forked), "plain", or "starting". */
const char *displays_kind(struct displays *d, const struct display_size *size);

/* ---- for session_display.c ---------------------------------------------------------- */

void displays_add(struct displays *d, struct display *display);
void displays_ending(struct displays *d, struct display *display); /* it is closed */
void displays_ended(
	struct displays *d, struct display *display); /* and all its questions are answered */

/*
 * Nobody waits any more for answers to questions with this userdata, of displays that are closed.
 */
void displays_forget(struct displays *d, const void *userdata);
struct film_list *displays_films(struct displays *d); /* for film.c */
uv_loop_t *displays_loop(struct displays *d);
uint32_t displays_next_serial(struct displays *d);

/*
 * True when both can be asked for now; else display_helpers_changed() is called when that changes.
 */
bool displays_ready(struct displays *d, const struct display_size *size);

/*
 * Ends helpers that have not answered for too long; they are started again. To be called from time
 * to time while a display waits for one.
 */
void displays_watch(struct displays *d);

/* A forked server of this size did not work: plain ones from now on. */
void displays_give_up(struct displays *d, const struct display_size *size);

/*
 * Asks for the server or the screen. fds: [init pidfd, A, B] and those of the control group.
 * display_spawned() follows.
 */
int displays_spawn(struct displays *d, const struct display_size *size, struct display_spawn *q,
	const int *fds, size_t n_fds);
