/*
 * Watching a directory of a session: a watcher is told about files that are created, written,
 * removed or renamed below it, or get another mode. The kernel tells the daemon (inotify),
 * whichever process made the change; nothing runs inside the session for it.
 *
 * Events wait in the watch until they are taken, the newest LIMIT_FILE_EVENTS at most; when some
 * were lost, when there are more directories than LIMIT_WATCHED_DIRECTORIES (or, in all watches of
 * the session, LIMIT_SESSION_WATCHED_DIRECTORIES), or when the daemon holds too much memory
 * (base/memory_account.h), FILE_MISSED comes instead. Names are bytes of the session's choosing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "session/session.h"

enum file_event_type {
	FILE_APPEARED,
	FILE_WRITTEN,
	FILE_REMOVED,
	FILE_RENAMED, /* away from this name; the new one is created */
	FILE_CHMOD,
	FILE_MISSED, /* without a name: look at the directory again */
};
const char *file_event_name(enum file_event_type t); /* "create", "write", … */

struct file_event {
	enum file_event_type type;
	const char *name; /* relative to the directory; valid until the next call */
};

struct file_watch_events {
	void (*on_news)(void *owner); /* something waits */
	/* the session has ended; the watch is gone */
	void (*on_gone)(void *owner);
};

struct file_watch;

/*
 * `path` is absolute, as code of the session sees it, or relative to the workspace; then no part of
 * it may be a link ("path_refused"), nor may it lead out. The directories are opened with the file
 * rights of the session's user ("path_refused"). -ENOENT (slug "file_not_found"), -ENOTDIR
 * ("not_a_directory"), -EBUSY ("too_many_watches"), -EAGAIN ("starting"), -ENOMEM. With `events`
 * NULL the owner asks with file_watch_next() from time to time.
 */
int session_watch_files(struct session *s, const char *path, bool recursive,
	const struct file_watch_events *events, void *owner, struct error *e,
	struct file_watch **ret);
bool file_watch_next(struct file_watch *w, struct file_event *ret);
/* What an event's name stands for now; links are not followed. -ENOENT. */
struct stat;
int file_watch_stat(const struct file_watch *w, const char *name, struct stat *ret);
void file_watch_close(struct file_watch *w); /* NULL is fine */

/*
 * The number of a watch, which is never reused; and the watch of a session with a given number, or
 * NULL.
 */
unsigned file_watch_number(const struct file_watch *w);
struct file_watch *session_file_watch(struct session *s, unsigned number);

/* ---- of the session layer ---- */
void file_watches_end(struct session *s); /* the session ends */
struct sessions;
void file_watches_close(struct sessions *t); /* the table ends */
