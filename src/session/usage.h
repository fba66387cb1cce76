/*
 * The limits of a session: which limits apply, how much the session has used of the limits that the
 * daemon watches, and the error texts for limits that the code has reached. The kernel enforces the
 * other limits (control groups, resource limits).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jail/cgroup/cgroup.h"
#include "session/session.h"

struct session_usage {
	/* of its control group, when last read */
	uint64_t oom_kills, process_refusals;
	uint64_t cell_cpu_ns;  /* CPU time used before the running cell … */
	uint64_t first_cpu_ns; /* … and before the first cell, once has_first_cpu */
	bool has_first_cpu;
	uint64_t output_bytes; /* printed by the running cell, or since the last cell */
	struct {
		uint64_t bytes;  /* of files that the API wrote and that may still exist */
		uint64_t looked; /* bytes since the session's memory was last read; 0: never */
		bool touched;    /* the API changed files since the last cell started */
		/* there are, or were, processes or contexts, which write to the same files */
		bool shared;
	} uploads;
	struct {
		uint64_t since_s;
		unsigned lines, dropped;
	} network_log; /* lines about the network in the daemon's log, in this window of time */
	struct network_record *network_record; /* or NULL (network_record.h) */
};

/*
 * The limits of the session's control group: the memory limit and a little more, so that Python's
 * MemoryError comes first.
 */
struct cgroup_limits session_cgroup_limits(const struct session_limits *l);

/* ---- limits_check.c: which limits hold ---- */

/* Fills in the defaults. -ERANGE (slug "limit_too_large") beyond the maxima. */
int session_resolve_limits(
	const struct sessions_config *c, struct session_limits *l, struct error *e);
int session_resolve_exec(
	const struct sessions_config *c, struct session_params *p, struct error *e);
/*
 * -ENOTSUP (slug "limit_not_enforced") for a limit that was asked for and that nothing can enforce
 * here.
 */
int session_check_enforced(
	const struct sessions *t, const struct session_limits *asked, struct error *e);

/* ---- limits_watch.c: limits that the daemon watches ---- */

void session_reset_usage(struct session *s);              /* a cell starts */
void session_watch_cpu(struct session *s);                /* periodic; may end the session */
void session_count_output(struct session *s, size_t len); /* the guest printed `len` bytes */
/* True when the kernel killed a process of the session for want of memory since the last call. */
bool session_ran_out_of_memory(struct session *s);

/* ---- limits_explain.c: errors about limits ---- */

/*
 * The error of a cell that s->queue.running->stop stopped: the message into text, the rest into
 * *ret.
 */
void session_say_stop(
	struct session *s, bool killed, char *text, size_t size, struct cell_error *ret);
void session_explain_memory(struct session *s); /* of a MemoryError */
/* Adds code and remedy to the outcome's error where the code reached a limit. */
void session_explain_error(struct session *s);

/* ---- uploads.c ---- */

uint64_t session_disk_used(const struct session *s); /* in /workspace; 0 while it cannot be seen */
/* Gives back the memory of files that were deleted. */
void session_recount_uploads(struct session *s);
/* A process or a context is about to be there, and may change files at any time. */
void session_files_share(struct session *s);
/* Whether there is one, or something that one has left running. */
bool session_files_shared(struct session *s);
