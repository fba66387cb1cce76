/*
 * A parked copy of a guest, as the daemon sees it: a frozen process in the jail, a watched child,
 * that can be told to become a live guest (src/guest/snapshot/guest_snapshot.h). The jail's init
 * keeps the socket on which the copy waits for this order (jail/kept_sockets.h). A snapshot belongs
 * to its sandbox and ends with it.
 *
 * A copy is requested from a guest, and exists once the guest has reported it. Dropping is
 * asynchronous and has one path: snapshot_drop().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "sandbox/children.h"
#include "wire/wire.h"

struct sandbox;

enum { SNAPSHOT_CELLS_UNKNOWN = 1 << 20 };
enum { SNAPSHOT_ID_LEN = 22 }; /* "k_" and 20 random characters */

struct snapshot {
	TAILQ_ENTRY(snapshot) link;
	struct sandbox *sandbox;
	uint64_t snapshot_id;
	struct child process;
	pid_t pid; /* 0 until it is there */
	bool dropped;
	/* The session's: what it is a copy of. */
	char id[SNAPSHOT_ID_LEN + 1];
	char *name;                  /* owned; NULL for one that was made by itself */
	unsigned cell;               /* the last one it has seen */
	unsigned cells_since_parent; /* cells between its parent and it; SNAPSHOT_CELLS_UNKNOWN */
	/* those cells as EXECUTE frames, when they can be run again; else empty */
	struct buffer path;
	/* of those, the ones from the first on that leave the same state behind when they are run
	 * again */
	unsigned same;
	/* without a parent: they start from a fresh interpreter and an empty directory */
	bool from_start;
	uint64_t parent; /* snapshot_id of the copy its state came from; 0 for none */
	uint64_t wall_ns, used_ns;
	uint64_t size_bytes; /* when it was last weighed */
	bool without_files;  /* it does not hold the files */
	/* the kernel ends it first when the session's memory runs short: no checkpoint can be made
	 * of it */
	bool fragile;
	/* asked for at a moment that counts: none that was taken before it will do */
	bool must_be_new;
	bool held; /* forks of it are being made: it must stay */
	/* it has become the guest itself, which is about to leave another one in its place */
	bool respawning;
};

TAILQ_HEAD(snapshot_list, snapshot);

/* Asks nobody yet: its snapshot_id is for the guest. */
int snapshot_create(struct sandbox *b, struct snapshot **ret);

/*
 * The guest made it: takes its pidfd and its socket over, and has the jail's init keep the socket.
 * -EPROTO when they are none.
 */
int snapshot_parked(struct snapshot *c, int pidfd, int control);

/*
 * Tells it to become the live guest of its sandbox, whose far ends go along, and to leave another
 * copy in its place: *ret, which is all that it was and takes over its place in the list, but is
 * not there until the guest said so (`again`). The copy itself is gone, its process is the caller's
 * to watch.
 */
int snapshot_become_guest(struct snapshot *c, bool restore_files, struct snapshot **ret);

/* Whether its process has ended by itself. */
bool snapshot_has_ended(const struct snapshot *c);

/* Whether the guest has made the snapshot. The process of the snapshot may have ended since. */
static inline bool snapshot_is_there(const struct snapshot *c)
{
	return c->pid > 0;
}

/* Is it there, or about to be without anybody asking? */
static inline bool snapshot_is_kept(const struct snapshot *c)
{
	return snapshot_is_there(c) || c->respawning;
}

/*
 * Tells it to make a live guest in the jail of the sandbox `to`, which is nested in the copy's: far
 * ends and namespaces go along. The answer comes on the new guest's control socket (WIRE_LIVED).
 */
int snapshot_move(struct snapshot *c, struct sandbox *to);

void snapshot_drop(struct snapshot *c); /* NULL is fine */
