#include "session/files/file_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/memory_account.h"
#include "base/text.h"
#include "session/files/watch_hub.h"
#include "session/files/watch_open.h"
#include "session/internal.h"

enum {
	SCAN_FIRST = 10000, /* entries that are looked at for directories when a watch begins, … */
	SCAN_NEW = 256,     /* … and when a directory appears later, which code can repeat */
	DEPTH = 32,
};

/*
 * Uploads appear under a name of ours and are moved to their place: the first name is told to
 * nobody.
 */
#define UPLOAD_NEW ".glovebox-upload-"
#define UPLOAD_AGAIN ".glovebox-update-"

struct queued {
	TAILQ_ENTRY(queued) link;
	enum file_event_type type;
	char name[];
};

struct file_watch {
	TAILQ_ENTRY(file_watch) link; /* of the session */
	struct session *session;
	struct watch_hub *hub;
	char *root;       /* the path, as it was given */
	struct hold held; /* the events that wait and the directories */
	const struct file_watch_events *events;
	void *owner;
	unsigned number, n_dirs, n_queued;
	bool recursive, missed, news;
	struct watched_dirs dirs;
	TAILQ_HEAD(queued_list, queued) queue;
	struct queued *taken; /* the last event that was given away */
	uint32_t cookie;      /* of the move of an upload to its place; 0: none */
	bool replaces;        /* a file was there */
};

const char *file_event_name(enum file_event_type t)
{
	static const char *const names[] = { "create", "write", "remove", "rename", "chmod",
		"missed" };
	return names[t];
}

/* ---- events ------------------------------------------------------------------------- */

void file_watch_lost(struct file_watch *w)
{
	w->missed = w->news = true;
}

/* What the watch makes the daemon hold; -ENOBUFS when that would be too much. */
static int grow(struct file_watch *w, size_t bytes)
{
	return hold_set(&w->held, w->held.bytes + bytes);
}

static void shrink(struct file_watch *w, size_t bytes)
{
	hold_set(&w->held, w->held.bytes - bytes);
}

static size_t event_bytes(const struct queued *q)
{
	return sizeof(*q) + strlen(q->name) + 1;
}

static size_t dir_bytes(const char *path)
{
	return sizeof(struct watched_dir) + strlen(path) + 1;
}

/* A program that writes in small pieces is told of once for as long as nobody takes the event. */
static bool is_last(const struct file_watch *w, enum file_event_type type, const char *name)
{
	const struct queued *last = TAILQ_LAST(&w->queue, queued_list);
	return last && last->type == type && text_eq(last->name, name);
}

static void add_event(
	struct file_watch *w, enum file_event_type type, const char *dir, const char *name)
{
	size_t len = strlen(dir) + strlen(name) + 2;
	struct queued *q = w->n_queued < LIMIT_FILE_EVENTS ? calloc(1, sizeof(*q) + len) : NULL;

	if (!q) {
		file_watch_lost(w);
		return;
	}

	q->type = type;
	snprintf(q->name, len, "%s%s%s", dir, *dir ? "/" : "", name);
	if (is_last(w, type, q->name)) {
		free(q);
		return;
	}

	if (grow(w, event_bytes(q)) < 0) {
		free(q);
		file_watch_lost(w);
		return;
	}

	TAILQ_INSERT_TAIL(&w->queue, q, link);
	w->n_queued++;
	w->news = true;
}

bool file_watch_next(struct file_watch *w, struct file_event *ret)
{
	if (w->taken)
		shrink(w, event_bytes(w->taken));
	free(w->taken);
	w->taken = TAILQ_FIRST(&w->queue);
	if (w->taken) {
		TAILQ_REMOVE(&w->queue, w->taken, link);
		w->n_queued--;
		*ret = (struct file_event){ w->taken->type, w->taken->name };
		return true;
	}
	bool missed = w->missed;
	w->missed = false;
	*ret = (struct file_event){ FILE_MISSED, "" };
	return missed;
}

/* ---- directories -------------------------------------------------------------------- */

static void drop_dir(struct file_watch *w, struct watched_dir *d)
{
	file_watch_dir_gone(d);
	watch_hub_remove(w->hub, d);
}

/*
 * A directory was moved away: what is below it has other names now, or is not below the watch any
 * more.
 */
static void drop_below(struct file_watch *w, const char *path)
{
	for (struct watched_dir *d = TAILQ_FIRST(&w->dirs), *next; d; d = next) {
		next = TAILQ_NEXT(d, of_watch);
		if (*d->path && watch_path_is_below(d->path, path))
			drop_dir(w, d);
	}
}

static int add_dir(struct file_watch *w, int fd, const char *path)
{
	unsigned *of_session = &w->session->file_watches.n_dirs;
	if (w->n_dirs >= LIMIT_WATCHED_DIRECTORIES ||
		*of_session >= LIMIT_SESSION_WATCHED_DIRECTORIES)
		return -ENOSPC;
	if (grow(w, dir_bytes(path)) < 0)
		return -ENOMEM;
	struct watched_dir *d = watch_hub_add(w->hub, fd, w, path);
	if (!d) {
		int r = errno ? -errno : -ENOMEM;
		shrink(w, dir_bytes(path));
		return r;
	}
	TAILQ_INSERT_TAIL(&w->dirs, d, of_watch);
	w->n_dirs++;
	++*of_session;
	return 0;
}

static bool is_directory(DIR *dir, const struct dirent *entry)
{
	struct stat st;
	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode);
}

/*
 * The tree below an open directory; what is already in a new one is told of as created. `left`
 * entries are looked at. Takes the descriptor.
 */
static void add_tree(
	struct file_watch *w, int fd, const char *path, unsigned depth, bool tell, unsigned *left)
{
	char below[LIMIT_PATH_BYTES];
	const struct dirent *entry;

	DIR *dir = fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return;
	}

	while ((entry = readdir(dir))) {
		if (text_eq(entry->d_name, ".") || text_eq(entry->d_name, ".."))
			continue;
		if (!*left || !--*left) {
			file_watch_lost(w);
			break;
		}
		if (tell)
			add_event(w, FILE_APPEARED, path, entry->d_name);
		if (!is_directory(dir, entry)) {
			if (tell) /* what was written before it could be watched */
				add_event(w, FILE_WRITTEN, path, entry->d_name);
			continue;
		}
		int n = snprintf(
			below, sizeof(below), "%s%s%s", path, *path ? "/" : "", entry->d_name);
		int next = depth < DEPTH && n < (int)sizeof(below)
				   ? watch_open_directory_at(w->session, fd, entry->d_name)
				   : -1;
		if (next < 0 || add_dir(w, next, below) < 0) {
			file_watch_lost(w);
			fd_close(next);
		} else {
			add_tree(w, next, below, depth + 1, tell, left);
		}
	}

	closedir(dir);
}

/* ---- what the kernel tells ---------------------------------------------------------- */

/*
 * A directory has appeared below one that is watched. The event is old: another directory may have
 * this name by now, even one that is watched already, and then it is not added again.
 */
static void directory_appeared(struct watched_dir *d, const char *name)
{
	struct file_watch *w = d->watch;
	char path[LIMIT_PATH_BYTES];
	unsigned left = SCAN_NEW;
	int n = snprintf(path, sizeof(path), "%s%s%s", d->path, *d->path ? "/" : "", name);
	int fd = n < (int)sizeof(path)
			 ? watch_open(w->session, w->root, path, O_RDONLY | O_DIRECTORY)
			 : -ENAMETOOLONG;
	if (fd < 0)
		return; /* it is gone again, or too deep */
	if (add_dir(w, fd, path) < 0) {
		file_watch_lost(w);
		fd_close(fd);
		return;
	}

	add_tree(w, fd, path, 1, true, &left);
}

/* True when the event is about the first name of an upload. */
static bool is_upload(struct file_watch *w, uint32_t mask, uint32_t cookie, const char *name)
{
	bool again = !strncmp(name, UPLOAD_AGAIN, sizeof(UPLOAD_AGAIN) - 1);
	if (!again && strncmp(name, UPLOAD_NEW, sizeof(UPLOAD_NEW) - 1))
		return false;
	if (mask & IN_MOVED_FROM) {
		w->cookie = cookie;
		w->replaces = again;
	}
	return true;
}

void file_watch_happened(struct watched_dir *d, uint32_t mask, uint32_t cookie, const char *name)
{
	struct file_watch *w = d->watch;
	char path[LIMIT_PATH_BYTES + NAME_MAX + 2];

	if (!*name || is_upload(w, mask, cookie, name))
		return;
	bool upload = mask & IN_MOVED_TO && cookie && cookie == w->cookie;
	if (mask & (IN_CREATE | IN_MOVED_TO) && !(upload && w->replaces))
		add_event(w, FILE_APPEARED, d->path, name);
	if (mask & IN_MODIFY || upload)
		add_event(w, FILE_WRITTEN, d->path, name);
	if (mask & IN_ATTRIB)
		add_event(w, FILE_CHMOD, d->path, name);
	if (mask & IN_DELETE)
		add_event(w, FILE_REMOVED, d->path, name);
	if (mask & IN_MOVED_FROM)
		add_event(w, FILE_RENAMED, d->path, name);
	if (!w->recursive || !(mask & IN_ISDIR))
		return;
	if (mask & (IN_CREATE | IN_MOVED_TO))
		directory_appeared(d, name);
	if (mask & IN_MOVED_FROM) {
		snprintf(path, sizeof(path), "%s%s%s", d->path, *d->path ? "/" : "", name);
		drop_below(w, path);
	}
}

void file_watch_dir_gone(struct watched_dir *d)
{
	struct file_watch *w = d->watch;
	TAILQ_REMOVE(&w->dirs, d, of_watch);
	w->n_dirs--;
	w->session->file_watches.n_dirs--;
	shrink(w, dir_bytes(d->path));
}

void file_watches_lost(struct sessions *t)
{
	struct session *s;
	struct file_watch *w;
	TAILQ_FOREACH (s, &t->list, link)
		TAILQ_FOREACH (w, &s->file_watches.list, link)
			file_watch_lost(w);
}

/*
 * The owner may close its watch, and the session, when it is told: one is looked for after another.
 */
void file_watches_told(struct sessions *t)
{
	struct session *s;
	struct file_watch *w, *found;

	do {
		found = NULL;
		TAILQ_FOREACH (s, &t->list, link)
			TAILQ_FOREACH (w, &s->file_watches.list, link)
				if (w->news && !found)
					found = w;
		if (found) {
			found->news = false;
			if (found->events)
				found->events->on_news(found->owner);
		}
	} while (found);
}

int file_watch_stat(const struct file_watch *w, const char *name, struct stat *ret)
{
	_cleanup_fd_ int fd = watch_open(w->session, w->root, name, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	return fstat(fd, ret) < 0 ? -errno : 0;
}

/* ---- life --------------------------------------------------------------------------- */

void file_watch_close(struct file_watch *w)
{
	struct watched_dir *d;
	struct queued *q;

	if (!w)
		return;
	while ((d = TAILQ_FIRST(&w->dirs)))
		drop_dir(w, d);
	while ((q = TAILQ_FIRST(&w->queue))) {
		TAILQ_REMOVE(&w->queue, q, link);
		free(q);
	}

	TAILQ_REMOVE(&w->session->file_watches.list, w, link);
	w->session->file_watches.n--;
	hold_set(&w->held, 0);
	free(w->taken);
	free(w->root);
	free(w);
}

static int fail(struct error *e, int err, const char *path)
{
	const char *slug = err == -ENOENT                                     ? "file_not_found"
			   : err == -ENOTDIR                                  ? "not_a_directory"
			   : err == -EAGAIN                                   ? "starting"
			   : err == -EACCES || err == -ELOOP || err == -EXDEV ? "path_refused"
			   : err == -ENOSPC || err == -EMFILE                 ? "too_many_watches"
									      : "file_error";
	error_set_errno(e, err, "watching %.200s", path);
	if (text_eq(slug, "path_refused"))
		error_remedy(e,
			"Give the path of a directory that code of the session can read, without links.");
	return error_slug(e, slug);
}

static int begin(struct file_watch *w, const char *path)
{
	unsigned left = SCAN_FIRST;
	int fd = watch_open(w->session, path, "", O_RDONLY | O_DIRECTORY);
	int r = fd < 0 ? fd : add_dir(w, fd, "");
	if (r < 0 || !w->recursive)
		fd_close(fd);
	else
		add_tree(w, fd, "", 1, false, &left);
	return r;
}

int session_watch_files(struct session *s, const char *path, bool recursive,
	const struct file_watch_events *events, void *owner, struct error *e,
	struct file_watch **ret)
{
	struct watch_hub *hub = watch_hub_of(s->table);
	if (s->phase == PHASE_ENDING || !hub)
		return fail(e, hub ? -EAGAIN : -EMFILE, path);
	if (s->file_watches.n >= LIMIT_FILE_WATCHES) {
		error_set(e, -EBUSY, "%d directories of this session are watched already",
			LIMIT_FILE_WATCHES);
		error_remedy(e, "Stop watching some of them.");
		return error_slug(e, "too_many_watches");
	}

	struct file_watch *w = calloc(1, sizeof(*w));
	if (!w || !(w->root = strdup(path))) {
		free(w);
		return fail(e, -ENOMEM, path);
	}

	w->session = s;
	w->hub = hub;
	w->events = events;
	w->owner = owner;
	w->recursive = recursive;
	w->number = ++s->file_watches.last;
	TAILQ_INIT(&w->dirs);
	TAILQ_INIT(&w->queue);
	TAILQ_INSERT_TAIL(&s->file_watches.list, w, link);
	s->file_watches.n++;
	int r = begin(w, path);
	if (r < 0) {
		file_watch_close(w);
		return fail(e, r, path);
	}

	*ret = w;
	return 0;
}

unsigned file_watch_number(const struct file_watch *w)
{
	return w->number;
}

struct file_watch *session_file_watch(struct session *s, unsigned number)
{
	struct file_watch *w;
	TAILQ_FOREACH (w, &s->file_watches.list, link)
		if (w->number == number)
			return w;
	return NULL;
}

void file_watches_end(struct session *s)
{
	struct file_watch *w;
	while ((w = TAILQ_FIRST(&s->file_watches.list))) {
		const struct file_watch_events *events = w->events;
		void *owner = w->owner;
		file_watch_close(w);
		if (events)
			events->on_gone(owner);
	}
}

void file_watches_close(struct sessions *t)
{
	watch_hub_destroy(t->watch_hub);
	t->watch_hub = NULL;
}
