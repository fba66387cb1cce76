#include "guest/run/file_changes.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/limits.h"
#include "wire/wire.h"

struct seen {
	char *path; /* owned */
	uint64_t size, mtime_ns, inode;
};

struct look {
	struct seen *at;
	size_t n, cap, entries;
	bool cut;
};

enum { CREATED, MODIFIED, DELETED }; /* enum file_change of session.h, on the wire */

static struct look last;
static bool looked;
static const char top[] = "/workspace";
/* of the directory, when it was seen with nothing in it; st_ino 0: never */
static struct stat when_empty;

static void look_finish(struct look *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->at[i].path);
	free(l->at);
	*l = (struct look){ 0 };
}

static int look_add(struct look *l, const char *path, const struct stat *st)
{
	if (l->n == FILES_SEEN_MAX) {
		l->cut = true;
		return -ENOSPC;
	}

	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		struct seen *grown = realloc(l->at, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		l->at = grown;
		l->cap = cap;
	}

	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	l->at[l->n++] = (struct seen){ .path = copy,
		.size = (uint64_t)st->st_size,
		.inode = (uint64_t)st->st_ino,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000ULL +
			    (uint64_t)st->st_mtim.tv_nsec };
	return 0;
}

/*
 * Walks a directory (whose fd it takes over); `path` is its path below /workspace with room behind
 * it.
 */
static int walk(struct look *l, int fd, char *path, size_t len, unsigned depth)
{
	DIR *d = fdopendir(fd);
	int r = 0;
	if (!d) {
		fd_close(fd);
		return 0;
	}

	for (struct dirent *e; r == 0 && (e = readdir(d));) {
		struct stat st;
		size_t name = strlen(e->d_name);
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
			len + name + 2 > LIMIT_PATH_BYTES)
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		l->entries++;
		memcpy(path + len, e->d_name, name + 1);
		if (S_ISDIR(st.st_mode) && depth < FILES_DEPTH_MAX) {
			int sub = openat(dirfd(d), e->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			path[len + name] = '/';
			if (sub >= 0)
				r = walk(l, sub, path, len + name + 1, depth + 1);
		} else if (!S_ISDIR(st.st_mode)) {
			r = look_add(l, path, &st);
		}
	}

	closedir(d);
	return r;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct seen *)a)->path, ((const struct seen *)b)->path);
}

static void look(struct look *l)
{
	char path[LIMIT_PATH_BYTES];
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		walk(l, fd, path, 0, 0);
	if (l->n > 1)
		qsort(l->at, l->n, sizeof(*l->at), by_path);
}

/*
 * Most cells write no files, so the common case is worth one call: in tmpfs a directory's size
 * counts its entries, so one that has the size it had without any has none. Looked at before the
 * walk: what is made during it changes the size from the one that is noted.
 */
static bool is_empty(const struct stat *st)
{
	return when_empty.st_ino && st->st_ino == when_empty.st_ino &&
	       st->st_dev == when_empty.st_dev && st->st_size == when_empty.st_size &&
	       st->st_nlink == when_empty.st_nlink;
}

static void note_empty(const struct stat *before, const struct look *l)
{
	struct statfs fs;
	if (!l->entries && statfs(top, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
		when_empty = *before;
}

struct report {
	struct buffer *out;
	size_t start;
	uint32_t serial;
	unsigned n;
	bool open, cut;
};

static int report_change(struct report *p, unsigned char change, const struct seen *s)
{
	char field[9 + LIMIT_PATH_BYTES];
	uint64_t size = htole64(s->size);
	size_t len = strlen(s->path);
	int r = 0;

	if (p->n == LIMIT_FILES) {
		p->cut = true;
		return 0;
	}

	if (!p->open && (r = wire_begin(p->out, WIRE_FILES, p->serial, &p->start)) < 0)
		return r;
	p->open = true;
	p->n++;
	field[0] = (char)change;
	memcpy(field + 1, &size, sizeof(size));
	memcpy(field + 9, s->path, len);
	return wire_put(p->out, WIRE_FILE, field, 9 + len);
}

static int compare(const struct look *old, const struct look *new, struct report *p)
{
	size_t i = 0, k = 0;
	int r = 0;

	while (r == 0 && (i < old->n || k < new->n)) {
		int order = i == old->n   ? 1
			    : k == new->n ? -1
					  : strcmp(old->at[i].path, new->at[k].path);
		const struct seen *a = i < old->n ? &old->at[i] : NULL,
				  *b = k < new->n ? &new->at[k] : NULL;
		if (order < 0) {
			r = report_change(p, DELETED, a);
			i++;
		} else if (order > 0) {
			r = report_change(p, CREATED, b);
			k++;
		} else {
			if (a->size != b->size || a->mtime_ns != b->mtime_ns ||
				a->inode != b->inode)
				r = report_change(p, MODIFIED, b);
			i++;
			k++;
		}
	}

	return r;
}

int files_report(struct buffer *out, uint32_t serial)
{
	struct look now = { 0 };
	struct report p = { .out = out, .serial = serial };
	struct stat before = { 0 };
	int r = 0;

	if (!looked) /* the zygote's cells: what is there is not ours */
		return 0;
	if (stat(top, &before) == 0 && !last.n && is_empty(&before))
		return 0;
	look(&now);
	note_empty(&before, &now);
	r = compare(&last, &now, &p);
	p.cut |= now.cut;
	if (p.open) {
		if (r == 0 && p.cut)
			r = wire_put_u64(out, WIRE_CUT, 1);
		wire_end(out, p.start);
	}

	look_finish(&last);
	last = now;
	return r;
}

void files_forget_changes(void)
{
	look_finish(&last);
	look(&last);
	looked = true;
}
