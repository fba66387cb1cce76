/*
 * The history of a session: the snapshot that its state came from, the cells since then, and the
 * operation that is under way.
 *
 * Invariants:
 * - `head` names the snapshot that the present state came from, `since` counts the cells since
 *   then. The snapshots form a tree by their parents.
 * - `latest` and the cells in `replay`, run again, lead to the state before the running cell while
 *   `replay.good` holds. Otherwise there is no way back to that state.
 * - At most one of `recovery` and `request` is active (operation.h).
 * - Snapshots belong to the sandbox. history_evict() is the only function here that drops one that
 *   others may point to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "sandbox/snapshot.h"
#include "session/history/operation.h"
#include "session/session.h"

/* Cells that may be run again to get from a snapshot to the state before a cell. */
enum {
	REPLAY_CELLS = 64,         /* at most this many, … */
	REPLAY_WALL_MS = 100,      /* … which took no longer than this all together … */
	REPLAY_BYTES = 256 * 1024, /* … and are no longer than this */
	REPLAY_DEATHS = 2,         /* deaths after which those that may differ are run again */
};

struct replay {
	/* the cells start from an interpreter that has run nothing and an empty directory, not from
	 * `latest` */
	bool fresh;
	bool good;            /* see the invariants above */
	struct buffer frames; /* the cells, as EXECUTE frames */
	unsigned n;
	/* how many of them, from the first on, leave the same state behind when run again */
	unsigned same;
	/* deaths after which cells that may differ were run again, since `latest` */
	unsigned deaths;
	double wall_ms; /* of all together */
};

struct session_history {
	struct snapshot *latest; /* NULL when there is none */
	struct replay replay;
	struct {
		unsigned n, n_differ;
		unsigned differ[REPLAY_CELLS]; /* the numbers of those that may differ */
	} replayed;     /* cells that were run again, until an answer tells it */
	uint64_t head;  /* 0 for none */
	unsigned since; /* SNAPSHOT_CELLS_UNKNOWN when it is not known */
	/* a checkpoint, rollback or fork that a client waits for; NULL for none */
	struct operation *request;
	/*
	 * the interpreter died, and another one is being made from a snapshot or the zygote; NULL
	 * for none
	 */
	struct operation *recovery;
	char *evicted; /* ids of evicted checkpoints, until an answer tells them; owned */
	struct {
		bool due; /* checkpoints may use too much memory */
		/* memory of the checkpoints and of the whole sandbox, when last measured */
		uint64_t bytes, family_bytes;
		uint64_t rest_until_ns, look_at_ns;
	} measured;
	char no_snapshot[256]; /* why there is no snapshot to go back to */
};

/* ---- history.c ---- */

bool history_possible(const struct session *s); /* the sandbox can take snapshots */
/*
 * Adds the requests for snapshots that the guest must handle before the running cell, so that the
 * session can go back.
 */
void history_before_cell(struct session *s, struct buffer *frames);
/* The running cell ended, and its guest continues. */
void history_cell_done(struct session *s, bool repeatable);
/* Handles a frame about snapshots; false when it is not one, or was forged. */
bool history_frame(struct session *s, const struct wire_frame *f);
/* Asks the idle guest for a snapshot. */
int history_ask_snapshot(struct session *s, uint64_t *ret_snapshot_id);
/* A snapshot that has become the guest is about to leave another one in its place. */
bool history_awaits(struct session *s);
/* Drops snapshots that were asked for and will not come. */
void history_drop_asked(struct session *s);
void history_evict(struct session *s, struct snapshot *c);
void history_forget(struct session *s); /* its snapshots are gone, or about to be */
void history_forget_cells(struct session *s, bool good);
/*
 * A fragile snapshot may have been killed by the kernel in place of the guest; it is evicted then.
 */
void history_check_fragile(struct session *s);

/* ---- restore.c ---- */

/*
 * Begins to restore the state before the running cell, for the recovery. Returns false if this
 * state cannot be restored.
 */
bool history_recover(struct session *s);
/* Begins to restore the last snapshot that the state came from, without the cells since then. */
bool history_fall_back(struct session *s);
/* Restores the same state once more; false: its snapshot is gone. */
bool history_retry(struct session *s);
/* Makes a guest from the snapshot, in place of the idle one. */
int history_go_back(struct session *s, struct snapshot *c, bool replay);
/* Makes a fresh interpreter, which runs the kept cells again. */
void history_start_again(struct session *s);
/* The restored guest is there; operation_restored() follows, now or when cells were run again. */
void history_ready(struct session *s);
/* The restored guest has run the cells again. */
void history_replayed(struct session *s);

/* ---- replay.c ---- */

/* There are not too many cells, and they would find the files as they did. */
bool replay_fits(const struct session *s);
/* `latest` and the kept cells lead to the present state. */
bool replay_possible(const struct session *s);
bool replay_is_exact(const struct session *s); /* … to exactly that state */
void replay_add(struct session *s);            /* the running cell, which has ended */
void replay_drop_last(struct session *s);
/* Drops the cells that may differ; returns the number of the last cell then. */
unsigned replay_cut(struct session *s);
/* The kept cells were run again: noted for the next answer. */
void replay_done(struct session *s);
struct replayed replay_tell(struct session *s); /* for this answer; valid until the next replay */
enum { REPLAY_WORDS_MAX = 192 };
/* The same as a clause, without counting as told; "" for none. */
const char *replay_words(const struct session *s, char text[REPLAY_WORDS_MAX]);

/* ---- evict.c ---- */

/* The snapshot's share of memory (PSS); 0 when it cannot be read. */
uint64_t evict_snapshot_size(struct snapshot *c);
/* Evicts a snapshot; the next answer tells it when the snapshot has a name. */
void evict_note(struct session *s, struct snapshot *c);
/* Evicts all checkpoints that have a name: the jail is gone. */
void evict_named(struct session *s);
/* Evicts all other snapshots; false: there are none with a name. */
bool evict_unnamed(struct session *s);
/* Makes room for one more checkpoint. */
void evict_for_new(struct session *s);
/*
 * Evicts checkpoints while they use too much memory. Without `at_once` they are measured only when
 * that is due. Also called periodically.
 */
void evict_over_memory(struct session *s, bool at_once);

/* ---- recovery.c ---- */

/* The interpreter died: restores its state, or starts afresh. */
void recovery_begin(struct session *s);
/* Starts afresh: the variables are lost. `why` may be NULL: no_snapshot says it. */
void recovery_lose(struct session *s, const char *why);
/* Restores the same state once more, while it makes sense. */
bool recovery_retry(struct session *s, unsigned *tries);

/* ---- checkpoint.c ---- */

enum { CHECKPOINT_MS = 10000 };

/* By id, or the newest of that name; NULL for none. */
struct snapshot *checkpoint_find(struct session *s, const char *which);
int checkpoint_not_found(const char *which, struct error *e);
/* Tells the asker of a checkpoint or rollback how it ended. */
void checkpoint_tell(struct session *s, checkpoint_done done, void *userdata, const struct error *e,
	struct snapshot *c, bool back);
/*
 * Can the history be changed now? -EBUSY (slug "session_busy"), -ENOTSUP (slug
 * "cannot_checkpoint").
 */
int checkpoint_check_idle(struct session *s, struct error *e);
/* `latest` is the present state. */
bool checkpoint_is_current(struct session *s);
/* Asks for a snapshot for the request, which ends when that fails. */
int checkpoint_ask(struct session *s, uint64_t *ret_snapshot_id);

/* ---- session_fork.c ---- */

/* The child has an interpreter; the fork that waits for it continues. */
void fork_child_ready(struct session *child);
/* The fork that waits for the child fails; the child ends by itself. */
void fork_child_failed(struct session *child, const char *why);
