/*
 * Children of this process that are known by their number: the inits, guests and snapshots of all
 * sandboxes. A number is as safe as a pidfd while the child is not reaped, and only this file reaps
 * these children; a pidfd for each would take three descriptors per session.
 *
 * SIGCHLD says that a child has ended. The kernel is asked for any child that has ended: usually
 * this child is watched, and one call finds it. A child with another owner (a helper, an orphan)
 * hides later children until its owner has reaped it; all watched children are then asked one by
 * one, at most once in CHILDREN_WALK_MS.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <uv.h>

#include "base/process.h"

enum { CHILDREN_WALK_MS = 5 };

struct children;

struct child {
	LIST_ENTRY(child) link;
	struct children *of; /* NULL: it is not watched */
	pid_t pid;
	/* It was reaped, and is watched no more. May watch and forget any child. */
	void (*on_exit)(struct child *c, const struct process_exit *end);
};

int children_create(uv_loop_t *loop, struct children **ret);

/* Asynchronous; frees it, then calls back. Nothing may be watched any more. */
void children_destroy(struct children *all, void (*done)(void *), void *userdata);

/*
 * Watches a child of this process that nobody has reaped: -ECHILD when it is none, -EEXIST when it
 * is watched already. on_exit is set by the caller; it comes in a later turn of the loop, also for
 * a child that has ended by now.
 */
int child_watch(struct children *all, struct child *c, pid_t pid);

/* It is watched no more, and somebody else reaps it. Fine when it is not watched. */
void child_forget(struct child *c);

/* Sends a signal, unless it was reaped. */
void child_signal(const struct child *c, int sig);

/*
 * The same to the process group that it leads, if it leads one: no other group can have its number
 * while it is not reaped.
 */
void child_signal_group(const struct child *c, int sig);

/* Whether it runs: neither reaped nor waiting to be. */
bool child_runs(const struct child *c);

/* A descriptor of it, the caller's; or a negative errno. */
int child_pidfd(const struct child *c);
