/*
 * A parked copy of a guest, as the daemon sees it: a frozen process in the jail, held by its pidfd, and the socket on which it can be told to
 * make a live guest of itself (src/guest/snapshot/guest_snapshot.h). Belongs to its sandbox, whose end is its own.
 *
 * A copy is asked of a guest, and there once the guest said so. Dropping is asynchronous and has one path: snapshot_drop(). It is not watched:
 * one that died by itself is found out when it is needed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "wire/wire.h"

struct sandbox;

enum { COPY_STEPS_UNKNOWN = 1 << 20 };
enum { COPY_ID_LEN = 22 }; /* "k_" and 20 random characters */

struct snapshot {
	TAILQ_ENTRY(snapshot) link;
	struct sandbox *sandbox;
	uint64_t ticket;
	int control, pidfd; /* -1 until it is there */
	pid_t pid;
	bool dropped, control_polled, exit_polled;
	uv_poll_t control_poll, exit_poll;
	unsigned open_polls;
	struct wire_reader in;
	/* The session's: what it is a copy of. */
	char id[COPY_ID_LEN + 1];
	char *name;         /* owned; NULL for one that was made by itself */
	unsigned cell;      /* the last one it has seen */
	unsigned steps;     /* cells between its parent and it; COPY_STEPS_UNKNOWN */
	struct buffer path; /* those cells as EXECUTE frames, when they can be run again; else empty */
	unsigned same;      /* of those, the ones from the first on that leave the same state behind when they are run again */
	bool from_start;    /* without a parent: they start from a fresh interpreter and an empty directory */
	uint64_t parent;    /* ticket of the copy its state came from; 0 for none */
	uint64_t wall_ns, used_ns;
	uint64_t size_bytes; /* when it was last weighed */
	bool files_left;    /* it does not hold the files */
	bool fragile;       /* the kernel ends it first when the session's memory runs short: no checkpoint can be made of it */
	bool exact;         /* asked for at a moment that counts: none that was taken before it will do */
	bool held;          /* forks of it are being made: it must stay */
	bool again;         /* it has become the guest itself, which is about to leave another one in its place */
};

TAILQ_HEAD(snapshot_list, snapshot);

/* Asks nobody yet: its ticket is for the guest. */
int snapshot_create(struct sandbox *b, struct snapshot **ret);

/* The guest made it: takes its pidfd and its socket over. -EPROTO when they are none. */
int snapshot_parked(struct snapshot *c, int pidfd, int control);

/*
 * Tells it to become the live guest of its sandbox, whose far ends go along, and to leave another copy in its place: *ret, which is all that it
 * was and takes over its place in the list, but is not there until the guest said so (`again`). The copy itself is gone, its process is *ret_pidfd, the caller's.
 */
int snapshot_take(struct snapshot *c, bool restore_files, struct snapshot **ret, int *ret_pidfd);

/* Whether its process has ended by itself. */
bool copy_has_ended(const struct snapshot *c);

/* Is it there, or about to be without anybody asking? */
static inline bool snapshot_is_kept(const struct snapshot *c)
{
	return c->pidfd >= 0 || c->again;
}

/* Tells it to make a live guest in the jail of the sandbox `to`, which is nested in the copy's: far ends and namespaces go along. Its
 * answer reaches sandbox_take_live(). */
int snapshot_move(struct snapshot *c, struct sandbox *to);

void snapshot_drop(struct snapshot *c); /* NULL is fine */
