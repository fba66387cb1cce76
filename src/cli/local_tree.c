#include "cli/local_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/tar.h"
#include "api/workspace.h"
#include "base/cleanup.h"
#include "base/fds.h"
#include "base/text.h"

/* the server takes no more of either */
enum { ENTRIES_MAX = WORKSPACE_SCAN, DEPTH_MAX = WORKSPACE_DEPTH, PIECE_BYTES = 1 << 16 };

/* ---- packing ------------------------------------------------------------------------- */

struct packing {
	int out;
	struct tree_counts counts;
	struct error *e;
	char path[LIMIT_PATH_BYTES + 2]; /* of the entry, below the folder */
};

static int write_out(struct packing *p, struct buffer *b)
{
	int r = fd_write_full(p->out, b->data, b->len);
	return r < 0 ? error_set_errno(p->e, r, "the temporary archive") : 0;
}

static int put_header(struct packing *p, uint64_t size, const struct stat *st, bool directory)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	int r = tar_put_header(&b, p->path, size, (uint64_t)st->st_mtim.tv_sec, directory);
	return r < 0 ? error_set_errno(p->e, r, "%s", p->path) : write_out(p, &b);
}

/* Exactly `size` bytes: a file that becomes shorter meanwhile is filled up with zeros. */
static int put_content(struct packing *p, int in, uint64_t size)
{
	char piece[PIECE_BYTES];
	for (uint64_t left = size + tar_padding(size); left;) {
		size_t want = left < sizeof(piece) ? (size_t)left : sizeof(piece);
		uint64_t content = left > tar_padding(size) ? left - tar_padding(size) : 0;
		ssize_t n = content ? read(in, piece, content < want ? (size_t)content : want) : 0;
		if (n < 0)
			return error_set_errno(p->e, -errno, "%s", p->path);
		if (n == 0) {
			memset(piece, 0, want);
			n = (ssize_t)want;
		}
		int r = fd_write_full(p->out, piece, (size_t)n);
		if (r < 0)
			return error_set_errno(p->e, r, "the temporary archive");
		left -= (uint64_t)n;
	}
	return 0;
}

static int pack_folder(struct packing *p, int fd, size_t len, unsigned depth);

static int pack_entry(struct packing *p, int dir, const char *name, size_t len, unsigned depth)
{
	struct stat st;
	_cleanup_fd_ int fd = openat(
		dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && errno != ELOOP && errno != ENXIO)
		return error_set_errno(p->e, -errno, "%s", p->path);
	if (fd < 0 || fstat(fd, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
		p->counts.skipped++;
		return 0;
	}

	if (p->counts.files + p->counts.folders >= ENTRIES_MAX) {
		error_set(p->e, -E2BIG, "the folder has more than %d files", ENTRIES_MAX);
		return error_remedy(p->e, "copy its parts one by one, or as an archive");
	}

	if (S_ISDIR(st.st_mode)) {
		p->counts.folders++;
		int r = put_header(p, 0, &st, true);
		return r < 0 ? r : pack_folder(p, fd, len, depth + 1);
	}

	p->counts.files++;
	p->counts.bytes += (uint64_t)st.st_size;
	int r = put_header(p, (uint64_t)st.st_size, &st, false);
	return r < 0 ? r : put_content(p, fd, (uint64_t)st.st_size);
}

/* What is in the folder, whose path below the first one has `len` bytes. */
static int pack_folder(struct packing *p, int fd, size_t len, unsigned depth)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *d = own < 0 || depth > DEPTH_MAX ? NULL : fdopendir(own);
	if (!d) {
		fd_close(own);
		return error_set_errno(p->e, depth > DEPTH_MAX ? -ELOOP : -errno, "%s", p->path);
	}

	for (struct dirent *f = readdir(d); r == 0 && f; f = readdir(d)) {
		if (text_eq(f->d_name, ".") || text_eq(f->d_name, ".."))
			continue;
		int n = snprintf(
			p->path + len, sizeof(p->path) - len, "%s%s", len ? "/" : "", f->d_name);
		if (len + (size_t)n > LIMIT_PATH_BYTES)
			r = error_set(p->e, -ENAMETOOLONG, "%s: the path is too long", p->path);
		else
			r = pack_entry(p, fd, f->d_name, len + (size_t)n, depth);
	}

	p->path[len] = '\0';
	closedir(d);
	return r;
}

static int open_unnamed(struct error *e)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd < 0 ? error_set_errno(e, -errno, "a temporary file") : fd;
}

int local_tree_pack(const char *dir, struct error *e, struct tree_counts *ret, int *ret_fd)
{
	_cleanup_buffer_ struct buffer end = BUFFER_INIT(0);
	_cleanup_fd_ int from = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0)
		return error_set_errno(e, -errno, "%s", dir);
	_cleanup_fd_ int out = open_unnamed(e);
	if (out < 0)
		return out;

	struct packing p = { .out = out, .e = e };
	int r = pack_folder(&p, from, 0, 0);
	if (r == 0 && tar_put_end(&end) < 0)
		r = error_set_errno(e, -ENOMEM, "the archive");
	if (r == 0)
		r = write_out(&p, &end);
	if (r < 0)
		return r;
	*ret = p.counts;
	*ret_fd = TAKE_FD(out);
	return 0;
}

/* ---- unpacking ----------------------------------------------------------------------- */

struct local_tree {
	int dir, file;
	struct tar_reader reader;
	struct tree_counts counts;
	struct error e;
};

/* The last part of a path, and a descriptor of the folder that it is in; never through a link. */
static int open_parent(struct local_tree *t, const char *path, char name[NAME_MAX + 1])
{
	char parent[LIMIT_PATH_BYTES + 2];
	size_t len = strlen(path);
	while (len && path[len - 1] == '/')
		len--;
	const char *slash = memrchr(path, '/', len);
	size_t before = slash ? (size_t)(slash - path) : 0;
	const char *base = slash ? slash + 1 : path;
	size_t n = len - (size_t)(base - path);

	if (!n || n > NAME_MAX || before >= sizeof(parent))
		return -EINVAL;
	if (t->counts.files + t->counts.folders >= ENTRIES_MAX)
		return -E2BIG;
	snprintf(name, NAME_MAX + 1, "%.*s", (int)n, base);
	snprintf(parent, sizeof(parent), "%.*s", (int)before, path);
	if (text_eq(name, ".") || text_eq(name, ".."))
		return -EINVAL;
	return fd_open_beneath(t->dir, before ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int fail(struct local_tree *t, int err, const char *path)
{
	return t->e.err ? t->e.err : error_set_errno(&t->e, err, "%.200s", path);
}

static int on_directory(void *userdata, const char *path)
{
	struct local_tree *t = userdata;
	char name[NAME_MAX + 1];
	_cleanup_fd_ int parent = open_parent(t, path, name);
	if (parent < 0)
		return fail(t, parent, path);
	t->counts.folders++;
	return mkdirat(parent, name, 0777) < 0 && errno != EEXIST ? fail(t, -errno, path) : 0;
}

static int on_file(void *userdata, const char *path, uint64_t size)
{
	struct local_tree *t = userdata;
	struct stat st;
	char name[NAME_MAX + 1];
	_cleanup_fd_ int parent = open_parent(t, path, name);
	if (parent < 0)
		return fail(t, parent, path);
	_cleanup_fd_ int fd = openat(parent, name,
		O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(t, -errno, path);
	if (!S_ISREG(st.st_mode) || ftruncate(fd, 0) < 0)
		return fail(t, -EEXIST, path);
	t->counts.files++;
	t->counts.bytes += size;
	t->file = TAKE_FD(fd);
	return 0;
}

static int on_data(void *userdata, const char *data, size_t len)
{
	struct local_tree *t = userdata;
	int r = fd_write_full(t->file, data, len);
	return r < 0 ? fail(t, r, "writing") : 0;
}

static int on_file_end(void *userdata)
{
	struct local_tree *t = userdata;
	fd_close_clear(&t->file);
	return 0;
}

static const struct tar_handler handler = { on_directory, on_file, on_data, on_file_end };

int local_tree_create(const char *dir, struct error *e, struct local_tree **ret)
{
	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return error_set_errno(e, -errno, "%s", dir);
	_cleanup_fd_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(e, -errno, "%s", dir);
	struct local_tree *t = calloc(1, sizeof(*t));
	if (!t)
		return error_set_errno(e, -ENOMEM, "%s", dir);
	t->dir = TAKE_FD(fd);
	t->file = -1;
	tar_reader_init(&t->reader, &handler, t);
	*ret = t;
	return 0;
}

int local_tree_feed(struct local_tree *t, const char *data, size_t len)
{
	int r = tar_feed(&t->reader, data, len);
	return r < 0 ? fail(t, r, "the archive") : 0;
}

int local_tree_end(struct local_tree *t, struct error *e, struct tree_counts *ret)
{
	if (!t->e.err && !tar_is_complete(&t->reader))
		error_set(&t->e, -ECONNRESET, "the archive is incomplete");
	if (t->e.err) {
		*e = t->e;
		return t->e.err;
	}
	t->counts.skipped = t->reader.skipped;
	*ret = t->counts;
	return 0;
}

void local_tree_destroy(struct local_tree *t)
{
	if (!t)
		return;
	fd_close(t->file);
	fd_close(t->dir);
	tar_reader_finish(&t->reader);
	free(t);
}
