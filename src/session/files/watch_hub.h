/*
 * The daemon's one inotify instance, shared by all watches (private to this folder). The kernel
 * gives a directory that is watched twice the same number, so a number leads to all the watches
 * that look at it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct file_watch;
struct sessions;
struct watch_hub;

/* A directory that a watch looks at. Owned by the hub. */
struct watched_dir {
	TAILQ_ENTRY(watched_dir) of_number, of_watch;
	struct file_watch *watch;
	int number;
	char path[]; /* relative to the directory of the watch; "" for itself */
};
TAILQ_HEAD(watched_dirs, watched_dir);

/* The hub of the table, made when it is first asked for; NULL without memory or descriptors. */
struct watch_hub *watch_hub_of(struct sessions *t);
void watch_hub_destroy(struct watch_hub *h); /* NULL is fine; no directory is watched any more */

/*
 * Watches an open directory. The new entry is not in the list of its watch. NULL: errno says why;
 * EEXIST when the watch already has this directory, perhaps under another name: code of the session
 * can rename a directory before the events of its old name are read.
 */
struct watched_dir *watch_hub_add(
	struct watch_hub *h, int dir, struct file_watch *w, const char *path);
void watch_hub_remove(struct watch_hub *h, struct watched_dir *d);

/* ---- file_watch.c ---- */
void file_watch_happened(struct watched_dir *d, uint32_t mask, uint32_t cookie, const char *name);
void file_watch_lost(struct file_watch *w);      /* events were lost */
void file_watch_dir_gone(struct watched_dir *d); /* the kernel looks at it no more */
void file_watches_lost(struct sessions *t);      /* of all watches */
void file_watches_told(struct sessions *t);      /* all that was read has been passed on */
