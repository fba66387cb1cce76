/*
 * Nothing outlives this program: it is the subreaper of all it started, so processes whose own
 * parent died become its children. They are collected here, which matters: a pid namespace does not
 * end before the last zombie in it is reaped. Children that belong to somebody (the session layer
 * holds their pidfds) are reaped by their owner within a turn of the loop; what is a zombie at two
 * looks in a row is an orphan.
 */
#pragma once

#include <sys/types.h>
#include <uv.h>

enum { REAPER_SEEN_MAX = 256 }; /* more orphans than that at once are collected a few looks later */

struct reaper {
	/* private */
	uv_signal_t signal;
	uv_timer_t timer;
	pid_t seen[REAPER_SEEN_MAX];
	unsigned n_seen;
};

/*
 * Its handles do not keep the loop alive. On failure they are open all the same: reaper_stop() is
 * needed.
 */
int reaper_start(struct reaper *r, uv_loop_t *loop);
void reaper_stop(
	/* closes its handles; the memory is needed until the loop has run once more */
	struct reaper *r);

/*
 * Kills and reaps every child that is left. Blocks, at most about a second. Returns how many there
 * were.
 */
unsigned reaper_sweep_all(void);
