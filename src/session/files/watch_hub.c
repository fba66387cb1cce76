#include "session/files/watch_hub.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>
#include <uv.h>

#include "base/fds.h"
#include "session/internal.h"

enum {
	READ_BYTES = 16 * 1024,
	READS_PER_TURN = 4, /* then others get their turn */
	MASK = IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
	       IN_ONLYDIR,
};

struct number {
	int wd;
	struct watched_dirs dirs;
};

struct watch_hub {
	struct sessions *table;
	int fd;
	uv_poll_t poll;
	void *numbers; /* tsearch tree */
	/* the entry that take() visits next; watch_hub_remove() moves it on */
	struct watched_dir *next;
};

static int compare(const void *a, const void *b)
{
	const struct number *x = a, *y = b;
	return (x->wd > y->wd) - (x->wd < y->wd);
}

static struct number *find(struct watch_hub *h, int wd)
{
	struct number key = { .wd = wd };
	struct number **found = tfind(&key, &h->numbers, compare);
	return found ? *found : NULL;
}

/* ---- directories -------------------------------------------------------------------- */

static struct number *find_or_add(struct watch_hub *h, int wd)
{
	struct number *n = find(h, wd);
	if (n || !(n = calloc(1, sizeof(*n))))
		return n;
	n->wd = wd;
	TAILQ_INIT(&n->dirs);
	if (tsearch(n, &h->numbers, compare))
		return n;
	free(n);
	return NULL;
}

static bool has(const struct number *n, const struct file_watch *w)
{
	const struct watched_dir *d;
	TAILQ_FOREACH (d, &n->dirs, of_number)
		if (d->watch == w)
			return true;
	return false;
}

struct watched_dir *watch_hub_add(
	struct watch_hub *h, int dir, struct file_watch *w, const char *path)
{
	char link[32];
	size_t len = strlen(path);
	struct watched_dir *d = calloc(1, sizeof(*d) + len + 1);

	if (!d)
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	d->number = inotify_add_watch(h->fd, link, MASK);
	if (d->number < 0) {
		free(d);
		return NULL;
	}

	struct number *n = find_or_add(h, d->number);
	if (!n || has(n, w)) {
		errno = n ? EEXIST : ENOMEM;
		if (!n)
			inotify_rm_watch(h->fd, d->number);
		free(d);
		return NULL;
	}

	memcpy(d->path, path, len + 1);
	d->watch = w;
	TAILQ_INSERT_TAIL(&n->dirs, d, of_number);
	return d;
}

static void drop_number(struct watch_hub *h, struct number *n)
{
	tdelete(n, &h->numbers, compare);
	free(n);
}

void watch_hub_remove(struct watch_hub *h, struct watched_dir *d)
{
	struct number *n = find(h, d->number);
	if (h->next == d)
		h->next = TAILQ_NEXT(d, of_number);
	if (n) {
		TAILQ_REMOVE(&n->dirs, d, of_number);
		if (TAILQ_EMPTY(&n->dirs)) {
			inotify_rm_watch(h->fd, n->wd);
			drop_number(h, n);
		}
	}
	free(d);
}

/* ---- events ------------------------------------------------------------------------- */

/* The kernel has let go of the directory: it is deleted, or its file system is gone. */
static void forget(struct watch_hub *h, struct number *n)
{
	struct watched_dirs dirs = TAILQ_HEAD_INITIALIZER(dirs);
	struct watched_dir *d;
	TAILQ_CONCAT(&dirs, &n->dirs, of_number);
	drop_number(h, n);
	while ((d = TAILQ_FIRST(&dirs))) {
		TAILQ_REMOVE(&dirs, d, of_number);
		file_watch_dir_gone(d);
		free(d);
	}
}

static void take(struct watch_hub *h, const struct inotify_event *e)
{
	struct number *n = find(h, e->wd);
	if (e->mask & IN_Q_OVERFLOW)
		file_watches_lost(h->table);
	if (!n)
		return;
	if (e->mask & IN_IGNORED) {
		forget(h, n);
		return;
	}

	/*
	 * The event may remove any entry, and with the last one the number: neither is used after
	 * the call, and the cursor is never left on a removed entry.
	 */
	for (struct watched_dir *d = TAILQ_FIRST(&n->dirs); d; d = h->next) {
		h->next = TAILQ_NEXT(d, of_number);
		file_watch_happened(d, e->mask, e->cookie, e->len ? e->name : "");
	}
}

static void on_readable(uv_poll_t *p, int status, int events)
{
	struct watch_hub *h = p->data;
	char data[READ_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));

	(void)status, (void)events;
	for (int i = 0; i < READS_PER_TURN; i++) {
		ssize_t n = read(h->fd, data, sizeof(data));
		if (n <= 0)
			break;
		for (char *at = data; at < data + n;) {
			const struct inotify_event *e = (const struct inotify_event *)at;
			take(h, e);
			at += sizeof(*e) + e->len;
		}
	}

	file_watches_told(h->table);
}

/* ---- life --------------------------------------------------------------------------- */

struct watch_hub *watch_hub_of(struct sessions *t)
{
	if (t->watch_hub)
		return t->watch_hub;
	struct watch_hub *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->table = t;
	h->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (h->fd < 0 || uv_poll_init(t->config.loop, &h->poll, h->fd) < 0) {
		fd_close(h->fd);
		free(h);
		return NULL;
	}

	h->poll.data = h;
	uv_poll_start(&h->poll, UV_READABLE, on_readable);
	uv_unref((uv_handle_t *)&h->poll);
	return t->watch_hub = h;
}

static void on_closed(uv_handle_t *handle)
{
	struct watch_hub *h = handle->data;
	fd_close(h->fd);
	free(h);
}

void watch_hub_destroy(struct watch_hub *h)
{
	if (h)
		uv_close((uv_handle_t *)&h->poll, on_closed);
}
