/*
 * A change of a session's history that is under way: a checkpoint, a rollback or a fork, which somebody waits for (a request), or the
 * recovery of a session whose interpreter died.
 *
 * A session has at most one request and at most one recovery. A request that comes during a recovery waits for its end; so at most one
 * of the two is active, and events go to that one only. The phase of the session (phase.h) tells how far the active operation is. An
 * event that is not legal for the operation's kind and the phase is ignored: it is a late answer to an operation that has ended.
 *
 *   kind        phases                                      when the interpreter dies
 *   checkpoint  (waiting) → SNAPSHOT → end                  ends with an error
 *   rollback    (waiting) → RESTORING → (REPLAYING →) end   waiting: begins at once; later: once more from the same snapshot while
 *                                                           that is there, else it ends with an error and the state is lost
 *   fork        (waiting) → (SNAPSHOT →) FORKING → end      ends with an error, and so do the sessions that were made
 *   recovery    RESTORING → (REPLAYING →) end               once more from the same snapshot while that is there, else the state is lost
 *
 * Every request ends exactly once, in one of: operation_succeed(), operation_fail(). Each phase of an operation has a deadline.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/session.h"

struct snapshot;

enum operation_kind {
	OPERATION_CHECKPOINT,
	OPERATION_ROLLBACK,
	OPERATION_FORK,
	OPERATION_RECOVERY,
	OPERATION_KINDS
};

struct operation {
	enum operation_kind kind;
	void *userdata; /* of `done` */
	union {
		struct {
			uint64_t snapshot_id; /* of the snapshot that is awaited */
			char *name;           /* owned */
			checkpoint_done done; /* NULL when its asker left */
		} checkpoint;
		struct {
			uint64_t snapshot_id; /* of the snapshot to go back to */
			/* to the state before the last cell, wherever that is when it begins */
			bool undo;
			bool replay;     /* run the session's kept cells again after it */
			bool from_start; /* not to a snapshot, but to a fresh interpreter */
			unsigned tries;
			checkpoint_done done; /* NULL when its asker left */
		} rollback;
		struct {
			/* of the snapshot that is awaited, or forked from; 0: the state of now */
			uint64_t snapshot_id;
			bool same_numbers;
			bool spreading; /* the new sessions are being made, the snapshot is held */
			/* name, metadata and ages of the new sessions, where they are not the
			 * parent's */
			struct session_params own;
			/* wanted, made, and of those with an interpreter */
			unsigned count, made, ready;
			/* owned array; those that are there or on their way */
			struct session **children;
			fork_done done; /* NULL when its asker left */
		} fork;
		struct {
			unsigned tries;
		} recovery;
	};
};

/* Creates an operation without an owner; NULL when memory is short. */
struct operation *operation_new(enum operation_kind kind, void *userdata);
void operation_free(struct operation *o); /* NULL is fine */

/* The one that events go to: the recovery, else the request; NULL for none. */
struct operation *operation_active(const struct session *s);

/* Makes it the session's request and begins it, now or when the interpreter is idle. */
void operation_request(struct session *s, struct operation *o);

/* ---- the end of a request ------------------------------------------------------------- */

/* Tells its asker and frees it; cells that wait may start. */

/* With the checkpoint that was made or gone back to, or NULL. */
void operation_succeed(struct session *s, struct snapshot *c);

/* The text goes into the answer. Slug and remedy may be NULL: those of the kind. */
void operation_fail(struct session *s, int err, const char *slug, const char *remedy,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* ---- events ---- */

void operation_begin(struct session *s); /* the interpreter may be idle now */
/* A snapshot is there (`why` is NULL), or why not. */
void operation_parked(struct session *s, uint64_t snapshot_id, const char *why);
void operation_restored(struct session *s);   /* it has the state that was asked for */
void operation_guest_died(struct session *s); /* after s->death was noted */
/* its snapshots are gone with it: a request that has begun ends */
void operation_jail_died(struct session *s);
void operation_restore_failed(struct session *s);
void operation_timed_out(struct session *s);
/* the session starts afresh: a request waits again, with a new deadline */
void operation_waits(struct session *s);
/* the session ends, or starts afresh: a request ends, a recovery is forgotten */
void operation_cancel(struct session *s, const char *why);

/* ---- what the kinds do, and the table calls ---- */

struct operation_ops {
	const char *slug; /* of its errors */
	/* in IDLE */
	void (*begin)(struct session *s);
	/* in SNAPSHOT; NULL for an operation that is never in that phase */
	void (*parked)(struct session *s, uint64_t snapshot_id);
	/* after RESTORING or REPLAYING; NULL for an operation that is never in these phases */
	void (*restored)(struct session *s);
	void (*guest_died)(struct session *s); /* in DEAD, RESTORING or REPLAYING */
	/* in RESTORING or REPLAYING; NULL for an operation that is never in these phases */
	void (*restore_failed)(struct session *s);
	/* tells the asker; NULL: there is none */
	void (*finish)(
		struct session *s, struct operation *o, const struct error *e, struct snapshot *c);
	/* frees what it owns; may be NULL */
	void (*release)(struct operation *o);
};

extern const struct operation_ops checkpoint_operation, rollback_operation, fork_operation,
	recovery_operation;
