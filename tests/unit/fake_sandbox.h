/*
 * The layer below sessions, for tests of their state machines: interpreters and snapshots that do
 * one thing at a time, when the test says so. It takes the place of pool.c, sandbox*.c, copy.c and
 * guest.c when the test is linked.
 *
 * An interpreter's state is a number: cells mix theirs into it, snapshots keep it. So a test can
 * compare what sessions say with what is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct session;

/* Ends all that is left. */
void fake_finish(void);

/* A fresh interpreter's is 0; `code` is the number that a cell's source is. */
uint64_t fake_mix(uint64_t state, unsigned code);

/* What the interpreter of a session has; *ret_settled: it waits, with nothing left to do. */
uint64_t fake_state(const struct session *s, bool *ret_settled);

/* What the snapshot with this id has. */
uint64_t fake_snapshot_state(const char *id);

/*
 * The interpreter does the next thing it was asked for: gets ready, runs a cell, takes a snapshot.
 * False when there is nothing.
 */
bool fake_step(struct session *s);

/* Its next snapshot is refused. */
void fake_refuse(struct session *s);

/* Code that it runs writes the end of the session's last cell to the control socket. */
void fake_forge(struct session *s);

void fake_die(struct session *s);       /* the interpreter is killed */
void fake_fail(struct session *s);      /* one that starts does not get there */
void fake_jail_dies(struct session *s); /* and all that is in it */
void fake_snapshots_die(struct session *s);
