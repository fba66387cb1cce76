/* Declarations shared by the files of packages.h; private to them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/error.h"
#include "packages/packages.h"
#include "packages/set_store.h"
#include "json/json_read.h"

struct packages_wait {
	TAILQ_ENTRY(packages_wait) link;
	struct job *job;
	const struct packages_listener *listener;
	void *userdata;
};
TAILQ_HEAD(wait_list, packages_wait);

/* One installation under way, or waiting for its turn. */
struct job {
	TAILQ_ENTRY(job) link;
	struct packages *packages;
	struct request_keys keys;
	bool alone; /* for one client: packages may be built for it */
	char *request;
	size_t request_len;
	struct wait_list waits;
	bool running, finished, abandoned; /* abandoned: it runs, and nobody waits for it */
	uint64_t deadline_ns;
	int pidfd, out;
	uv_poll_t out_poll;
	uv_timer_t deadline;
	unsigned open_handles;
	struct buffer line;
	struct error error;
	char *log, *report; /* of a failure */
};
TAILQ_HEAD(job_list, job);

struct packages_hold {
	TAILQ_ENTRY(packages_hold) link;
	struct packages *packages;
	char id[STORE_ID_LEN + 1];
	int fd; /* the lock, while somebody has it */
	unsigned refs, uses;
	bool template;
	uint64_t checked_ns;
};
TAILQ_HEAD(hold_list, packages_hold);

struct packages {
	uv_loop_t *loop;
	const struct packages_settings *settings;
	char *state_dir, *shown;
	struct store *store;
	struct job_list jobs;
	struct hold_list holds;
	unsigned n_waits, n_holds;
	struct packages_wait *asking; /* of the packages_ask() under way, until it is answered */
	bool destroying;
	struct packages_stats stats;
};

/*
 * packages.c: looks the request up (-ENOENT when it is not answered, or its set is gone or
 * damaged), and tells a listener.
 */
int packages_look_up(struct packages *p, const struct request_keys *keys, json_t **ret_record,
	struct packages_hold **ret_hold);
void packages_tell(const struct packages_listener *listener, void *userdata, const json_t *record,
	struct packages_hold *hold, bool cached);

/* set_refs.c */
void hold_drop(struct packages_hold *h);

/* jobs.c */
/* Under way, for everybody or (alone) for the client of the keys; NULL when there is none. */
struct job *job_find(struct packages *p, const struct request_keys *keys, bool alone);
/* Takes the request over; starts with jobs_start(). */
struct job *job_new(
	struct packages *p, const struct request_keys *keys, bool alone, struct buffer *request);
/* frees it, now or in a later turn of the loop */
void job_close(struct job *j);
/* somebody waits for it (again) */
void job_joined(struct job *j);
/* somebody waits no more; may free it */
void job_left(struct job *j);
/* the server ends: tells its waiters; frees it */
void job_stop(struct job *j);
/* as many as may run at once */
void jobs_start(struct packages *p);
