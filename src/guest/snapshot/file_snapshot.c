#include "guest/snapshot/file_snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum {
	/* larger files get pages of their own, which go back when they are dropped */
	MAP_FROM = 64 * 1024,
	DEPTH_MAX = 32,
	ENTRIES_MAX = 20000,
	/* a file may change twice within one tick of the file system's clock */
	YOUNG_NS = 20 * 1000000,
};

struct entry {
	char *path; /* below its directory; owned */
	mode_t mode;
	uint64_t size, mtime_ns, ctime_ns, inode;
	char *data; /* of a file, or the target of a link; owned */
	bool young; /* it changed just before we looked: its times prove nothing */
};

struct tree {
	struct entry *at;
	size_t n, cap;
	bool cut;
};

static const char not_kept[] = "files are not kept in this session",
		  not_written[] = "some of them could not be written";

/* A directory that the session can write to. */
struct place {
	const char *path;
	const char *not_ours; /* a directory in it that is left alone; NULL for none */
	struct tree kept;
	const char *problem;
};
static struct place places[] = {
	{ .path = "/workspace", .problem = not_kept },
	{ .path = "/tmp", .not_ours = ".X11-unix", .problem = not_kept },
	{ .path = "/dev/shm", .problem = not_kept },
};
enum { PLACES = sizeof(places) / sizeof(places[0]) };
static uint64_t allowed;

static uint64_t time_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000ULL + (uint64_t)t->tv_nsec;
}

/* ---- content ------------------------------------------------------------------- */

static void data_free(struct entry *e)
{
	if (e->data && S_ISREG(e->mode) && e->size >= MAP_FROM)
		munmap(e->data, e->size);
	else
		free(e->data);
	e->data = NULL;
}

/*
 * Pages that are shared with copies and never written again are neither copied by a fork nor
 * counted as data of the process.
 */
static char *data_alloc(uint64_t size)
{
	if (size < MAP_FROM)
		return malloc(size ? size : 1);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static int read_file(int root, struct entry *e)
{
	_cleanup_fd_ int fd = openat(root, e->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!(e->data = data_alloc(e->size)))
		return -ENOMEM;
	int r = fd_read_full(fd, e->data, e->size);
	if (r == 0 && e->size >= MAP_FROM && mprotect(e->data, e->size, PROT_READ) < 0)
		r = -errno;
	if (r < 0)
		data_free(e);
	return r;
}

static int read_link(int root, struct entry *e)
{
	char target[LIMIT_PATH_BYTES * 4];
	ssize_t n = readlinkat(root, e->path, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	return (e->data = strdup(target)) ? 0 : -ENOMEM;
}

static int read_entry(int root, struct entry *e)
{
	if (S_ISREG(e->mode))
		return read_file(root, e);
	return S_ISLNK(e->mode) ? read_link(root, e) : 0;
}

/* ---- looking ------------------------------------------------------------------- */

static void tree_finish(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		data_free(&t->at[i]);
		free(t->at[i].path);
	}
	free(t->at);
	*t = (struct tree){ 0 };
}

static int tree_add(struct tree *t, const char *path, const struct stat *st, uint64_t now)
{
	if (t->n == ENTRIES_MAX) {
		t->cut = true;
		return -ENOSPC;
	}

	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 16;
		struct entry *grown = realloc(t->at, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		t->at = grown;
		t->cap = cap;
	}

	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	struct entry *e = &t->at[t->n++];
	*e = (struct entry){ .path = copy,
		.mode = st->st_mode,
		.size = (uint64_t)st->st_size,
		.inode = (uint64_t)st->st_ino,
		.mtime_ns = time_ns(&st->st_mtim),
		.ctime_ns = time_ns(&st->st_ctim) };
	e->young = e->ctime_ns + YOUNG_NS > now;
	return 0;
}

/* Walks a directory (whose fd it takes over), parents before what is in them. */
static int walk(struct tree *t, const char *not_ours, int fd, char *path, size_t len,
	unsigned depth, uint64_t now)
{
	DIR *d = fdopendir(fd);
	int r = 0;
	if (!d) {
		fd_close(fd);
		return -ENOMEM;
	}

	for (struct dirent *e; r == 0 && (e = readdir(d));) {
		struct stat st;
		size_t name = strlen(e->d_name);
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
			(not_ours && !strcmp(e->d_name, not_ours)))
			continue;
		if (len + name + 2 > LIMIT_PATH_BYTES || depth > DEPTH_MAX) {
			t->cut = true;
			continue;
		}
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		memcpy(path + len, e->d_name, name + 1);
		r = tree_add(t, path, &st, now);
		if (r == 0 && S_ISDIR(st.st_mode)) {
			int sub = openat(dirfd(d), e->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			path[len + name] = '/';
			t->cut |= sub < 0;
			if (sub >= 0)
				r = walk(t, NULL, sub, path, len + name + 1, depth + 1, now);
		}
	}

	closedir(d);
	return r;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

static int look(int root, const char *not_ours, struct tree *t)
{
	char path[LIMIT_PATH_BYTES];
	struct timespec now;
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	clock_gettime(CLOCK_REALTIME, &now);
	int r = walk(t, not_ours, fd, path, 0, 0, time_ns(&now));
	if (t->n > 1)
		qsort(t->at, t->n, sizeof(*t->at), by_path);
	return r;
}

static struct entry *find(const struct tree *t, const char *path)
{
	struct entry key = { .path = (char *)path };
	return t->n ? bsearch(&key, t->at, t->n, sizeof(*t->at), by_path) : NULL;
}

static bool unchanged(const struct entry *a, const struct entry *b)
{
	return a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns && a->mode == b->mode && !a->young;
}

static int open_root(const struct place *p)
{
	return open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* ---- taking up ------------------------------------------------------------------- */

/* Copies the content of unchanged files from the previous snapshot, and reads the other files. */
static int fill(int root, struct tree *now, const struct tree *before)
{
	for (size_t i = 0; i < now->n; i++) {
		struct entry *e = &now->at[i], *old = find(before, e->path);
		if (old && unchanged(old, e)) {
			e->data = TAKE_PTR(old->data);
			continue;
		}
		int r = read_entry(root, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static uint64_t bytes_of(const struct tree *t)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < t->n; i++)
		sum += S_ISREG(t->at[i].mode) ? t->at[i].size : 0;
	return sum;
}

void file_snapshot_allow(uint64_t bytes)
{
	allowed = bytes;
	for (size_t i = 0; i < PLACES; i++)
		places[i].problem = bytes ? NULL : not_kept;
}

/* Returns how many of the bytes that are left to it are used. */
static uint64_t update(struct place *p, uint64_t left)
{
	struct tree now = { 0 };
	uint64_t bytes = 0;
	_cleanup_fd_ int root = open_root(p);
	int r = root < 0 ? -errno : look(root, p->not_ours, &now);
	p->problem = NULL;
	if (now.cut)
		p->problem = "there are more files, or deeper directories, than are kept";
	else if (r == 0 && (bytes = bytes_of(&now)) > left)
		p->problem = "the files are larger than the limit for kept files";
	else if (r < 0 || fill(root, &now, &p->kept) < 0)
		p->problem = "a file could not be read";

	tree_finish(&p->kept);
	if (p->problem)
		tree_finish(&now);
	p->kept = now;
	return p->problem ? 0 : bytes;
}

void file_snapshot_update(void)
{
	uint64_t left = allowed;
	for (size_t i = 0; allowed && i < PLACES; i++)
		left -= update(&places[i], left);
}

const char *store_problem(void)
{
	return places[0].problem;
}

const char *store_left(void)
{
	static char text[512];
	size_t len = 0;
	if (!allowed)
		return not_kept;
	for (size_t i = 0; i < PLACES; i++)
		if (places[i].problem)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%sin %s, %s",
				len ? "; " : "", places[i].path, places[i].problem);
	return len ? text : NULL;
}

/* ---- putting back ------------------------------------------------------------------- */

/* Ours are all of them, so it does not fail; and if it did, what follows would say so. */
static void set_mode(int root, const char *path, mode_t mode)
{
	int r = fchmodat(root, path, mode & 07777, 0);
	(void)r;
}

static int remove_entry(int root, const struct entry *e)
{
	return unlinkat(root, e->path, S_ISDIR(e->mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT
		       ? -errno
		       : 0;
}

/*
 * Removes what is not in `wanted` or is there as another kind of thing; deepest first. Directories
 * are made writable for that.
 */
static int remove_others(int root, const struct tree *there, const struct tree *wanted)
{
	int r = 0;
	for (size_t i = 0; i < there->n; i++)
		if (S_ISDIR(there->at[i].mode) && (there->at[i].mode & 0700) != 0700)
			set_mode(root, there->at[i].path, 0700);
	for (size_t i = there->n; i-- > 0;) {
		const struct entry *e = &there->at[i], *w = find(wanted, e->path);
		int one = w && (w->mode & S_IFMT) == (e->mode & S_IFMT) ? 0 : remove_entry(root, e);
		r = r < 0 ? r : one;
	}
	return r;
}

static int write_file(int root, const struct entry *e, bool exists)
{
	if (exists)
		set_mode(root, e->path, 0600);
	_cleanup_fd_ int fd = openat(
		root, e->path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int r = fd_write_full(fd, e->data, e->size);
	return r == 0 && fchmod(fd, e->mode & 07777) < 0 ? -errno : r;
}

static void set_times(int root, const struct entry *e)
{
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = (time_t)(e->mtime_ns / 1000000000ULL),
			.tv_nsec = (long)(e->mtime_ns % 1000000000ULL) } };
	utimensat(root, e->path, t, AT_SYMLINK_NOFOLLOW);
}

static int put_back(int root, const struct entry *e, const struct entry *there)
{
	int r = 0;
	if (there && (there->mode & S_IFMT) != (e->mode & S_IFMT))
		there = NULL; /* it was removed */
	if (there && unchanged(e, there) && !S_ISDIR(e->mode))
		return 0;
	if (S_ISREG(e->mode)) {
		r = write_file(root, e, there != NULL);
	} else if (S_ISDIR(e->mode)) {
		r = !there && mkdirat(root, e->path, 0700) < 0 ? -errno : 0;
	} else if (S_ISLNK(e->mode)) {
		unlinkat(root, e->path, 0);
		r = symlinkat(e->data, root, e->path) < 0 ? -errno : 0;
	} else if (S_ISFIFO(e->mode) && !there) {
		r = mknodat(root, e->path, e->mode, 0) < 0 ? -errno : 0;
	}

	if (r == 0)
		set_times(root, e);
	return r;
}

/*
 * Last, and children first: a directory that is not writable, or whose time counts, must not change
 * any more.
 */
static void settle_directories(int root, const struct tree *kept)
{
	for (size_t i = kept->n; i-- > 0;) {
		if (!S_ISDIR(kept->at[i].mode))
			continue;
		set_mode(root, kept->at[i].path, kept->at[i].mode);
		set_times(root, &kept->at[i]);
	}
}

static int restore(const struct place *p)
{
	struct tree there = { 0 };
	_cleanup_fd_ int root = open_root(p);
	int r = root < 0 ? -errno : look(root, p->not_ours, &there);
	if (r == 0)
		r = remove_others(root, &there, &p->kept);
	for (size_t i = 0; i < p->kept.n; i++) {
		int one = put_back(root, &p->kept.at[i], find(&there, p->kept.at[i].path));
		r = r < 0 ? r : one;
	}
	settle_directories(root, &p->kept);
	tree_finish(&there);
	return r;
}

const char *file_snapshot_restore(void)
{
	for (size_t i = 0; i < PLACES; i++)
		if (!places[i].problem && restore(&places[i]) < 0)
			places[i].problem = not_written;
	const char *left = store_left();
	for (size_t i = 0; i < PLACES; i++)
		if (places[i].problem == not_written)
			places[i].problem = NULL; /* the content is here, for the next time */
	return left;
}

void file_snapshot_wipe(void)
{
	for (size_t i = 0; i < PLACES; i++) {
		struct tree there = { 0 }, none = { 0 };
		_cleanup_fd_ int root = open_root(&places[i]);
		if (root >= 0 && look(root, places[i].not_ours, &there) == 0)
			remove_others(root, &there, &none);
		tree_finish(&there);
	}
}
