/*
 * The phase of a session: whether it has an interpreter, and what the interpreter does. One value replaces a set of flags, so that a
 * combination that makes no sense cannot be written down.
 *
 * Invariants:
 * - session_set_phase() is the only function that changes the phase, and it asserts that the transition is in the table below.
 * - PHASE_RUNNING implies that a cell is running. A cell whose interpreter died stays the running cell in PHASE_DEAD,
 *   PHASE_RESTORING and PHASE_REPLAYING, until its end is reported.
 * - PHASE_SNAPSHOT and PHASE_FORKING imply a request (history/operation.h). PHASE_RESTORING and PHASE_REPLAYING imply a recovery or a
 *   rollback request. A request is waiting in every other phase.
 *
 *   phase      the interpreter                              next phase
 *   STARTING   a new one is being made: the first of the    IDLE, DEAD, STARTING (another attempt, a reset), ENDING
 *              session, or one that starts afresh
 *   IDLE       waits for a cell or a request                RUNNING, SNAPSHOT, FORKING, RESTORING, DEAD, STARTING, ENDING
 *   RUNNING    runs a cell, or the end of the cell is       IDLE, DEAD, STARTING, ENDING
 *              being reported
 *   SNAPSHOT   was asked for a snapshot by the request      IDLE, FORKING, DEAD, STARTING, ENDING
 *   FORKING    is idle; the sessions that the request       IDLE, DEAD, STARTING, ENDING
 *              asked for are being made
 *   DEAD       there is none; what comes next is decided    RESTORING, STARTING, DEAD, ENDING
 *              before the next event is handled
 *   RESTORING  one is being made that takes up an earlier   IDLE, RUNNING (the end of the cell that died is reported next),
 *              state                                        REPLAYING, RESTORING (another attempt), DEAD, STARTING, ENDING
 *   REPLAYING  the restored one runs cells again            IDLE, RUNNING, RESTORING, DEAD, STARTING, ENDING
 *   ENDING     is being ended                               none
 */
#pragma once

#include <stdbool.h>

struct session;

enum session_phase {
	PHASE_STARTING,
	PHASE_IDLE,
	PHASE_RUNNING,
	PHASE_SNAPSHOT,
	PHASE_FORKING,
	PHASE_DEAD,
	PHASE_RESTORING,
	PHASE_REPLAYING,
	PHASE_ENDING,
	PHASE_COUNT
};

const char *session_phase_name(enum session_phase phase);

/* Whether the table above allows the transition. */
bool session_phase_may_follow(enum session_phase from, enum session_phase to);

/* Asserts that the transition is legal. */
void session_set_phase(struct session *s, enum session_phase to);

/* The interpreter accepts frames: IDLE, RUNNING, SNAPSHOT or FORKING. */
bool session_has_guest(const struct session *s);

/* RESTORING or REPLAYING. */
bool session_is_restoring(const struct session *s);
