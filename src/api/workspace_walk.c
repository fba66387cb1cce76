/*
 * Listing a workspace in steps: a guest can make its directories as large as it likes, and the loop
 * is everybody's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/workspace_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/limits.h"
#include "base/text.h"

enum { RUN = 512, RUNS = (WORKSPACE_SCAN + RUN - 1) / RUN };

struct workspace_walk {
	int root; /* its own */
	bool recursive, truncated;
	DIR *dir;     /* being read, or NULL */
	char *prefix; /* its path */
	/* in the order they were found: those not looked into yet are the queue */
	struct workspace_entry *entries;
	size_t n, cap, next;
	/*
	 * Numbers of entries, sorted by path within each run; the runs are merged when they are
	 * told.
	 */
	uint32_t order[WORKSPACE_SCAN];
	size_t sorted, told[RUNS];
};

/* ---- entries --------------------------------------------------------------------- */

const char *workspace_kind_name(enum workspace_kind k)
{
	static const char *const names[] = { "file", "directory", "symlink", "other" };
	return names[k];
}

static enum workspace_kind kind_of(mode_t mode)
{
	if (S_ISREG(mode))
		return WORKSPACE_FILE;
	if (S_ISDIR(mode))
		return WORKSPACE_DIRECTORY;
	return S_ISLNK(mode) ? WORKSPACE_LINK : WORKSPACE_OTHER;
}

static int add(struct workspace_walk *w, const char *name, const struct stat *st)
{
	if (w->n == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 64;
		struct workspace_entry *more = reallocarray(w->entries, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		w->entries = more;
		w->cap = cap;
	}

	struct workspace_entry *entry = &w->entries[w->n];
	if (asprintf(&entry->path, "%s%s%s", w->prefix, *w->prefix ? "/" : "", name) < 0)
		return -ENOMEM;
	entry->kind = kind_of(st->st_mode);
	entry->size = entry->kind == WORKSPACE_FILE ? (uint64_t)st->st_size : 0;
	entry->modified_ns = (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC +
			     (uint64_t)st->st_mtim.tv_nsec;
	w->order[w->n] = (uint32_t)w->n;
	w->n++;
	return 0;
}

static int by_path(const void *a, const void *b, void *entries)
{
	const struct workspace_entry *e = entries;
	return strcmp(e[*(const uint32_t *)a].path, e[*(const uint32_t *)b].path);
}

/* Sorts a run that is complete, or with `all` the rest. */
static void sort_runs(struct workspace_walk *w, bool all)
{
	while (w->n - w->sorted >= RUN || (all && w->sorted < w->n)) {
		size_t len = w->n - w->sorted < RUN ? w->n - w->sorted : RUN;
		qsort_r(w->order + w->sorted, len, sizeof(*w->order), by_path, w->entries);
		w->sorted += len;
	}
}

/* ---- directories ------------------------------------------------------------------- */

static void leave_directory(struct workspace_walk *w)
{
	if (w->dir)
		closedir(w->dir);
	free(w->prefix);
	w->dir = NULL;
	w->prefix = NULL;
}

/* Takes the descriptor. */
static int enter_directory(struct workspace_walk *w, int fd, const char *path)
{
	w->prefix = strdup(path);
	w->dir = w->prefix ? fdopendir(fd) : NULL;
	if (w->dir)
		return 0;
	int r = w->prefix ? -errno : -ENOMEM;
	fd_close(fd);
	leave_directory(w);
	return r;
}

static size_t depth_of(const char *path)
{
	size_t depth = 1;
	while ((path = strchr(path, '/'))) {
		depth++;
		path++;
	}
	return depth;
}

/* Opens the next directory of the queue. False when there is none. */
static bool next_directory(struct workspace_walk *w)
{
	for (; w->recursive && w->next < w->n && !w->truncated; w->next++) {
		const struct workspace_entry *entry = &w->entries[w->next];
		if (entry->kind != WORKSPACE_DIRECTORY)
			continue;
		if (depth_of(entry->path) >= WORKSPACE_DEPTH ||
			strlen(entry->path) > LIMIT_PATH_BYTES) {
			w->truncated = true;
			continue;
		}
		int fd = workspace_open_beneath(
			w->root, entry->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
		/* Removed, swapped or unreadable: it is listed, its content is not ours to see. */
		if (fd >= 0 && enter_directory(w, fd, entry->path) == 0) {
			w->next++;
			return true;
		}
	}

	return false;
}

/* 1: an entry was looked at; 0: that was the last one. */
static int read_entry(struct workspace_walk *w)
{
	struct stat st;
	struct dirent *entry = readdir(w->dir);

	if (!entry)
		return 0;
	if (text_eq(entry->d_name, ".") || text_eq(entry->d_name, ".."))
		return 1;
	if (w->n >= WORKSPACE_SCAN) {
		w->truncated = true;
		return 0;
	}

	if (fstatat(dirfd(w->dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 1; /* gone between the two calls */
	int r = add(w, entry->d_name, &st);
	return r < 0 ? r : 1;
}

/* ---- walking ------------------------------------------------------------------------ */

int workspace_walk_create(
	int root, const char *path, bool recursive, struct error *e, struct workspace_walk **ret)
{
	int fd = workspace_open_beneath(
		root, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);

	if (fd < 0)
		return workspace_fail(e, fd, path);
	struct workspace_walk *w = calloc(1, sizeof(*w));
	if (!w) {
		fd_close(fd);
		return workspace_fail(e, -ENOMEM, path);
	}

	w->recursive = recursive;
	w->root = fcntl(root, F_DUPFD_CLOEXEC, 0); /* the session may end between two steps */
	int r = w->root < 0 ? -errno : enter_directory(w, TAKE_FD(fd), path);
	fd_close(fd);
	if (r < 0) {
		workspace_walk_destroy(w);
		return workspace_fail(e, r, path);
	}

	*ret = w;
	return 0;
}

int workspace_walk_step(struct workspace_walk *w, unsigned entries)
{
	while (entries--) {
		if (!w->dir && !next_directory(w)) {
			sort_runs(w, true);
			return 0;
		}
		int r = read_entry(w);
		if (r < 0)
			return r;
		if (r == 0)
			leave_directory(w);
	}
	sort_runs(w, false);
	return 1;
}

void workspace_walk_stop(struct workspace_walk *w)
{
	w->truncated = true;
	sort_runs(w, true);
}

const struct workspace_entry *workspace_walk_next(struct workspace_walk *w)
{
	size_t best = RUNS;
	for (size_t run = 0; run * RUN < w->n; run++) {
		size_t len = w->n - run * RUN < RUN ? w->n - run * RUN : RUN;
		if (w->told[run] == len)
			continue;
		if (best == RUNS || by_path(&w->order[run * RUN + w->told[run]],
					    &w->order[best * RUN + w->told[best]], w->entries) < 0)
			best = run;
	}
	return best == RUNS ? NULL : &w->entries[w->order[best * RUN + w->told[best]++]];
}

size_t workspace_walk_count(const struct workspace_walk *w)
{
	return w->n;
}

bool workspace_walk_truncated(const struct workspace_walk *w)
{
	return w->truncated;
}

void workspace_walk_destroy(struct workspace_walk *w)
{
	if (!w)
		return;
	leave_directory(w);
	fd_close(w->root);
	for (size_t i = 0; i < w->n; i++)
		free(w->entries[i].path);
	free(w->entries);
	free(w);
}
