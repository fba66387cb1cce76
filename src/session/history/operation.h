/*
 * A change of a session's history that is under way: a checkpoint, a rollback or a fork, which somebody waits for (a request), or the
 * recovery of a session whose interpreter died.
 *
 * A session has at most one request and at most one recovery. A request that comes during a recovery waits for its end; so at most one
 * of the two is active, and events go to that one only. An event that is not legal in the operation's kind and stage is ignored: it
 * is a late answer to an operation that has ended.
 *
 *   kind        stages                                   when the interpreter dies
 *   checkpoint  WAITING → SNAPSHOT → end                 ends with an error
 *   rollback    WAITING → RESTORE → (REPLAY →) end       WAITING: begins at once; later: once more from the same snapshot while
 *                                                        that is there, else it ends with an error and the state is lost
 *   fork        WAITING → (SNAPSHOT →) SPREAD → end      ends with an error, and so do the sessions that were made
 *   recovery    RESTORE → (REPLAY →) end                 once more from the same snapshot while that is there, else the state is lost
 *
 * Every request ends exactly once, in one of: operation_succeed(), operation_fail(). Each stage has a deadline.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/session.h"

struct snapshot;

enum operation_kind { OPERATION_CHECKPOINT, OPERATION_ROLLBACK, OPERATION_FORK, OPERATION_RECOVERY, OPERATION_KINDS };

enum operation_stage {
	OPERATION_WAITING,  /* for an idle interpreter */
	OPERATION_SNAPSHOT, /* the interpreter was asked for a snapshot */
	OPERATION_RESTORE,  /* an interpreter is being made from a snapshot, or afresh */
	OPERATION_REPLAY,   /* it runs cells again */
	OPERATION_SPREAD,   /* the new sessions are being made */
};

struct operation {
	enum operation_kind kind;
	enum operation_stage stage;
	void *userdata; /* of `done` */
	union {
		struct {
			uint64_t ticket; /* of the snapshot that is awaited */
			char *name;      /* owned */
			checkpoint_done done; /* NULL when its asker left */
		} checkpoint;
		struct {
			uint64_t ticket; /* of the snapshot to go back to */
			bool undo;       /* to the state before the last cell, wherever that is when it begins */
			bool replay;     /* run the session's kept cells again after it */
			bool from_start; /* not to a snapshot, but to a fresh interpreter */
			unsigned tries;
			checkpoint_done done; /* NULL when its asker left */
		} rollback;
		struct {
			uint64_t ticket; /* of the snapshot that is awaited, or forked from; 0: the state of now */
			bool same_numbers;
			struct session_params own; /* name, metadata and ages of the new sessions, where they are not the parent's */
			unsigned count, born, ready; /* wanted, made, and of those with an interpreter */
			struct session **children; /* owned array; those that are there or on their way */
			fork_done done;            /* NULL when its asker left */
		} fork;
		struct {
			unsigned tries;
		} recovery;
	};
};

/* Makes one that belongs to nobody yet; NULL without memory. */
struct operation *operation_new(enum operation_kind kind, void *userdata);
void operation_free(struct operation *o); /* NULL is fine */

/* The one that events go to: the recovery, else the request; NULL for none. */
struct operation *operation_active(const struct session *s);

/* Is an interpreter on its way that takes up an earlier state? */
bool operation_restores(const struct session *s);

/* Makes it the session's request and begins it, now or when the interpreter is idle. */
void operation_request(struct session *s, struct operation *o);

/* ---- the end of a request, which tells its asker and frees it; cells that wait may start afterwards ---- */

/* With the checkpoint that was made or gone back to, or NULL. */
void operation_succeed(struct session *s, struct snapshot *c);

/* The text goes into the answer. Slug and remedy may be NULL: those of the kind. */
void operation_fail(struct session *s, int err, const char *slug, const char *remedy, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* ---- events ---- */

void operation_begin(struct session *s);      /* the interpreter may be idle now */
/* A snapshot is there (`why` is NULL), or why not. */
void operation_parked(struct session *s, uint64_t ticket, const char *why);
void operation_ready(struct session *s);      /* a restored interpreter takes orders */
void operation_restored(struct session *s);   /* it has the state that was asked for */
void operation_guest_died(struct session *s); /* after s->death was noted */
void operation_restore_failed(struct session *s);
void operation_timed_out(struct session *s);
void operation_waits(struct session *s);      /* the session starts afresh: a request waits again, with a new deadline */
void operation_cancel(struct session *s, const char *why); /* the session ends, or starts afresh: a request ends, a recovery is forgotten */

/* ---- what the kinds do, and the table calls ---- */

struct operation_ops {
	const char *slug;                                        /* of its errors */
	void (*begin)(struct session *s);                        /* WAITING, and the interpreter is idle */
	void (*parked)(struct session *s, uint64_t ticket);      /* SNAPSHOT; NULL: it never is */
	void (*restored)(struct session *s);                     /* RESTORE, REPLAY; NULL: it never is */
	void (*guest_died)(struct session *s);                   /* any stage */
	void (*restore_failed)(struct session *s);               /* RESTORE, REPLAY; NULL: it never is */
	void (*finish)(struct session *s, struct operation *o, const struct error *e, struct snapshot *c); /* tells the asker; NULL: there is none */
	void (*release)(struct operation *o);                    /* frees what it owns; may be NULL */
};

extern const struct operation_ops checkpoint_operation, rollback_operation, fork_operation, recovery_operation;
