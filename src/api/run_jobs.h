/*
 * Jobs: sessions that are made for one piece of work each (an item of a batch, a program of a
 * trainer). A bounded number of jobs has a session at the same time; the others wait in the order
 * in which they were submitted. A server that has no room for a session (too many sessions, no
 * memory) makes the jobs wait, too. A job whose token has used up its quota waits in the queue and
 * lets jobs of other tokens pass.
 *
 * 	job_submit ─► queued ─► packages ─► opening ─► on_open ─► cells of the caller ─► job_end
 * 	                 └──────────┴──────────┴─► on_fail
 */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "api/schema/requests.h"
#include "base/error.h"

struct api;
struct job;
struct jobs;
struct observation;

/* Called from the loop, never inside job_submit(). */
struct job_ops {
	/*
	 * The session is there and has its files. The caller runs cells in it, and ends with
	 * job_end().
	 */
	void (*on_open)(void *userdata, struct session *s);
	/*
	 * There will be no session; the job is gone. Slug "queue_timeout": it waited longer than
	 * its patience.
	 */
	void (*on_fail)(void *userdata, const struct error *e);
};

/* `max`: sessions at once; 0: two for each processor, at least four. -ENOMEM. */
int jobs_create(struct api *a, uv_loop_t *loop, unsigned max, struct jobs **ret);
void jobs_destroy(struct jobs *j); /* frees it in a later turn; NULL is fine */
unsigned jobs_max(const struct jobs *j);

/*
 * Takes session and files of the request over; the cell stays the caller's. `patience_s`: on_fail
 * is called when the job has waited so long for its session; 0: without end. -ENOMEM.
 */
int job_submit(struct jobs *j, struct run_request *run, uint64_t owner, double patience_s,
	const struct job_ops *ops, void *userdata, struct error *e, struct job **ret);

/*
 * Ends the session, or takes the job from the queue; no more is called. Also from a callback of a
 * cell.
 */
void job_end(struct job *job);

/* Its session; NULL when that has ended, or is not there yet. */
struct session *job_session(const struct job *job);

/* How long it waited until its session was open. */
double job_waited_s(const struct job *job);

/* ---- one program ---------------------------------------------------------- */

struct job_run;

struct job_outcome {
	const struct observation *o; /* or NULL: it did not run, and the error says why */
	const struct error *error;
	struct session *session; /* with its files; only with an observation */
	double waited_s;
};

/*
 * Called once, unless it is cancelled before; the run is gone then, and its session ends after it.
 */
typedef void (*job_run_done)(void *userdata, const struct job_outcome *outcome);

/*
 * A job of one cell: a whole program. Takes the request over, also when it fails. As job_submit().
 */
int job_run_start(struct jobs *j, struct run_request *run, uint64_t owner, double patience_s,
	job_run_done done, void *userdata, struct error *e, struct job_run **ret);
void job_run_cancel(struct job_run *r);
