/*
 * Pausing a session: it keeps its interpreters, files and processes, takes no new cells and starts
 * no processes, and its time to live stands still. Processes are stopped (SIGSTOP) and continue
 * when it is resumed. A paused session counts as a session, and ends when it has been paused for
 * longer than the server allows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct session;

/*
 * -EBUSY: slug "session_busy" while a cell runs or waits, slug "session_paused" when it is paused
 * already.
 */
int session_pause(struct session *s, struct error *e);

/*
 * Resumes the session, which then expires after `ttl_s` seconds; 0: after the time that was left
 * when it was paused, but at least five minutes. -EBUSY (slug "not_paused").
 */
int session_resume(struct session *s, double ttl_s, struct error *e);

/* Of a context: whether its session is. */
bool session_is_paused(const struct session *s);

/* ---- of the session layer ---- */

struct session_pause {
	uint64_t since_ns; /* 0: it is not paused */
	double left_s;     /* of its time to live, when it was paused */
};

/* New work is refused: -EBUSY (slug "session_paused"). */
int pause_refuse(const struct session *s, struct error *e);

/* Nothing of it runs or waits, in no context. */
bool pause_possible(struct session *s);

double pause_expires_in_s(const struct session *s);
