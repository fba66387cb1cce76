/*
 * Nothing outlives the daemon: it is the subreaper of all it started, so processes whose own parent died
 * become its children. They are collected here. Children that belong to somebody (the session layer holds
 * their pidfds) are reaped by their owner within a turn of the loop; what is still a zombie a second later is
 * an orphan.
 */
#pragma once

#include <uv.h>

struct reaper {
	/* private */
	uv_signal_t signal;
	uv_timer_t timer;
};

int reaper_start(struct reaper *r, uv_loop_t *loop);
void reaper_stop(
	struct reaper *r); /* closes its handles; the memory is needed until the loop has run once more */

/* Kills and reaps every child that is left. Blocks, at most about a second. Returns how many there were. */
unsigned reaper_sweep_all(void);
