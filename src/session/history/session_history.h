/* Checkpoints, rollbacks and forks of a session, for the layers above. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "session/observation.h"
#include "session/session_params.h"

struct session;
struct sessions;

/* ---- checkpoints ------------------------------------------------------ */

/* A parked copy of the session's interpreter, with its files, to go back to. */
struct checkpoint_info {
	const char *id, *name; /* name is NULL for one that was kept by itself */
	const char *parent;    /* id of the one its state came from, or NULL */
	unsigned cell;         /* the last cell it has seen */
	uint64_t created_wall_ns;
	uint64_t size_bytes; /* its share of memory (PSS); 0 when that cannot be told */
	bool current;        /* the session's state is this one's, or came from it */
	bool files;          /* it holds the files too: of /workspace, /tmp and /dev/shm */
};

/* Where a checkpoint or a rollback led to. */
struct checkpoint_result {
	const struct checkpoint_info *checkpoint; /* or NULL: to a state without one */
	/* ids, with blanks between, of those that had to go since the last answer; or NULL */
	const char *evicted;
	bool back;                /* it was a rollback … */
	struct replayed replayed; /* … with these cells */
};

/* How a checkpoint or a rollback ended: *e is NULL when it worked, else `a` is. */
typedef void (*checkpoint_done)(
	void *userdata, const struct error *e, const struct checkpoint_result *a);

/*
 * Takes one, between cells: -EBUSY (slug "session_busy") while one runs or waits. `done` is called
 * once, perhaps before this returns; errors there: slug "cannot_checkpoint" with what stands in the
 * way. `name` may be NULL: then it is called by the number of its cell.
 */
int session_checkpoint(
	struct session *s, const char *name, checkpoint_done done, void *userdata, struct error *e);

/*
 * Goes back to the checkpoint of this id or name (the newest of the name); NULL: to before the last
 * cell. Also -ENOENT (slug "checkpoint_not_found"), "nothing_to_undo".
 */
int session_rollback(struct session *s, const char *which, checkpoint_done done, void *userdata,
	struct error *e);

int session_checkpoint_delete(struct session *s, const char *which, struct error *e);

/* ---- forks ---- */

struct fork_request {
	const char *at; /* a checkpoint's id or name; NULL: as it is now */
	unsigned count;
	bool same_numbers; /* random numbers go on as in the parent */
	/* name, metadata, ttl_s, idle_timeout_s of the new ones, where given; taken over when it
	 * begins; or NULL */
	struct session_params *own;
};

/* How a fork ended: *e is NULL when it worked, and then there are n sessions, all of them ready. */
typedef void (*fork_done)(
	void *userdata, const struct error *e, struct session *const *sessions, unsigned n);

/*
 * Makes `count` new sessions that go on from the session's state (or a checkpoint's), each in a
 * jail of its own with its own copy of the files, with the same limits, environment and profile.
 * All or none. Errors as session_checkpoint(), slug "cannot_fork" with what stands in the way.
 */
int session_fork(struct session *s, const struct fork_request *q, fork_done done, void *userdata,
	struct error *e);

/* The session of this owner that has a checkpoint of this id; NULL if there is none. */
struct session *sessions_find_checkpoint(struct sessions *t, const char *id, uint64_t owner);

/*
 * Names the random number generators of a forked session that kept the seed of the parent, as text;
 * "" if there are none.
 */
const char *session_fork_note(const struct session *s);

/* The asker of a checkpoint, rollback or fork is gone: done is not called. */
void session_history_abandon(struct session *s, void *userdata);

/*
 * Number `i` from the oldest. False when there are no more. With `size`, memory is looked at, which
 * takes about a millisecond each.
 */
bool session_checkpoint_info(struct session *s, unsigned i, bool size, struct checkpoint_info *ret);
