/*
 * The table of all sessions. Sessions are in `list` and `index` from their creation to
 * session_end(); `stats.live` counts them. Sessions whose handles are still being closed are
 * counted in `end.closing_sessions`: the table is freed after the last of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "session/cells/watch_internal.h"
#include "session/session.h"

struct displays;
struct idle_latency;
struct sandbox_pool;

TAILQ_HEAD(session_list, session);

/* A session that has ended, remembered for clients that ask for it. */
struct tombstone {
	char id[SESSION_ID_LEN + 1];
	char why[160];
	uint64_t wall_ns, owner;
};

struct sessions {
	struct sessions_config config;
	struct sandbox_pool *pool;
	struct displays *displays;
	struct idle_latency *idle_latency; /* NULL: CPUs may sleep */
	bool displays_warmed;
	struct session_list list;
	void *index;                  /* tsearch tree by id */
	struct tombstone *tombstones; /* a ring of LIMIT_TOMBSTONES */
	unsigned next_tombstone;
	uv_timer_t tick; /* expiry and limits; at the end: waits for the sessions */
	struct sessions_stats stats;
	struct sessions_watch watch;
	struct watch_hub *watch_hub;  /* NULL until a directory is watched (files/) */
	struct volumes *volumes;      /* NULL: there are none */
	struct cell_store cell_store; /* the cells that the sessions ran */
	struct denial_log {
		uint64_t second;           /* of the clock */
		unsigned logged, left_out; /* in it */
	} denials;
	char **owned_preload;
	char *owned_shown; /* what jails are shown besides the system */
	struct {
		void (*ask)(void *userdata, const char *id, uint64_t number, const char *json,
			size_t len);
		void *ask_userdata;
		char *common_path; /* a set that all sessions have, or NULL */
		bool common_awaited, common_replaces;
	} packages;
	struct {
		uint64_t looked_ns;
		char why[160]; /* empty: there is none */
	} shortage;            /* of the machine, when last looked at (shortage.c) */
	struct {
		bool on;           /* no new sessions */
		uint64_t until_ns; /* when the sessions that are there are ended; 0: never */
	} drain;
	struct {
		bool draining; /* no new sessions and cells */
		bool destroying;
		uint64_t until_ns; /* when running cells are given up */
		unsigned closing_sessions;
		void (*done)(void *);
		void *userdata;
	} end;
};

/* shortage.c: -EAGAIN (slug "no_resources") when a session could not be made now. */
int sessions_check_shortage(struct sessions *t, struct error *e);

/* drain.c: ends the sessions when the deadline of a drain has passed. */
void sessions_end_drained(struct sessions *t, uint64_t now_ns);

/* cell_end.c */
void stats_observe(struct stats_histogram *h, double seconds);

/* session.c: the order of the index. */
int session_compare_ids(const void *a, const void *b);
