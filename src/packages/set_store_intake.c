/* Taking a tree of files in: copy, hash, link, and at the very end the record. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "packages/set_store_internal.h"
#include "json/json_write.h"

enum { PATH_BYTES = 1024, FRESH = 13 };

struct entry {
	char *path;
	char hex[SHA256_HEX + 1];
	uint64_t size, time_ns;
};

struct store_intake {
	struct store *store;
	int lock; /* shared: no collecting meanwhile */
	int dir;  /* staging/NAME, locked: whoever finds it unlocked may remove it */
	int tree;
	char name[FRESH + 1];
	uint64_t bytes, max_bytes;
	struct entry *entries;
	size_t n, cap;
};

/* ---- leftovers ------------------------------------------------------------------------ */

static int remove_if_dead(void *userdata, int dir, const struct dirent *entry)
{
	unsigned *count = userdata;
	_cleanup_fd_ int fd = openat(
		dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	store_remove_tree(dir, entry->d_name);
	(*count)++;
	return 0;
}

struct sweeping {
	struct store *store;
	unsigned count;
};

/* A record that was not finished: "ID.new" says that tree/ID may be there. */
static int remove_unfinished(void *userdata, int dir, const struct dirent *entry)
{
	struct sweeping *w = userdata;
	char id[STORE_ID_LEN + 1];

	if (strlen(entry->d_name) != STORE_ID_LEN + strlen(".new") ||
		!text_eq(entry->d_name + STORE_ID_LEN, ".new"))
		return 0;
	_cleanup_fd_ int fd = openat(dir, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0; /* its maker lives */
	snprintf(id, sizeof(id), "%s", entry->d_name);
	char record[STORE_ID_LEN + 8], files[STORE_ID_LEN + 8];
	snprintf(record, sizeof(record), "%s.json", id);
	snprintf(files, sizeof(files), "%s.files", id);
	if (faccessat(dir, record, F_OK, 0) < 0) {
		store_remove_tree(w->store->tree, id);
		unlinkat(dir, files, 0);
		w->count++;
	}

	unlinkat(dir, entry->d_name, 0);
	return 0;
}

unsigned store_remove_leftovers(struct store *s)
{
	struct sweeping w = { .store = s };
	store_each(s->staging, remove_if_dead, &w.count);
	store_each(s->sets, remove_unfinished, &w);
	return w.count;
}

/* ---- life -------------------------------------------------------------------------------- */

int store_intake_begin(
	struct store *s, uint64_t max_bytes, struct error *e, struct store_intake **ret)
{
	struct store_intake *i = calloc(1, sizeof(*i));
	if (!i)
		return error_set(e, -ENOMEM, "out of memory");
	i->store = s;
	i->dir = i->tree = -1;
	i->max_bytes = max_bytes;
	i->lock = store_lock(s, LOCK_SH);
	int r = i->lock < 0 ? i->lock : 0;
	if (r == 0) {
		store_remove_leftovers(s);
		text_random_id(i->name, FRESH);
		r = mkdirat(s->staging, i->name, 0700) < 0 ? -errno : 0;
	}

	if (r == 0 &&
		(i->dir = openat(s->staging, i->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		r = -errno;
	if (r == 0 && flock(i->dir, LOCK_EX | LOCK_NB) < 0)
		r = -errno;
	if (r == 0 &&
		(mkdirat(i->dir, "tree", 0755) < 0 || fchmodat(i->dir, "tree", 0755, 0) < 0 ||
			(i->tree = openat(i->dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0))
		r = -errno;
	if (r < 0) {
		store_intake_finish(i);
		return error_set_errno(e, r, "writing to the package store");
	}

	*ret = i;
	return 0;
}

void store_intake_finish(struct store_intake *i)
{
	if (!i)
		return;
	if (i->dir >= 0)
		store_remove_tree(i->store->staging, i->name);
	fd_close(i->tree);
	fd_close(i->dir);
	fd_close(i->lock);
	for (size_t k = 0; k < i->n; k++)
		free(i->entries[k].path);
	free(i->entries);
	free(i);
}

/* ---- one file ------------------------------------------------------------------------------ */

static int too_large(const struct store_intake *i, struct error *e)
{
	error_set(e, -EFBIG, "the packages are larger than %llu MB or have more than %d files",
		(unsigned long long)(i->max_bytes >> 20), STORE_FILES_MAX);
	error_remedy(e, "Ask for fewer packages, or {start_larger:packages-max-size}.");
	return error_slug(e, "packages_too_large");
}

/* Copies into DIR/copy of this intake, hashing on the way. */
static int copy(struct store_intake *i, int from, struct entry *entry, struct error *e)
{
	static char piece[256 * 1024];
	struct sha256 sum;
	struct stat st;
	ssize_t n;

	/* of a file whose content was there already; it is read-only, also for us unless we are
	 * root */
	unlinkat(i->dir, "copy", 0);
	_cleanup_fd_ int to = openat(i->dir, "copy", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (to < 0)
		return error_set_errno(e, -errno, "writing to the package store");
	sha256_init(&sum);
	while ((n = read(from, piece, sizeof(piece))) != 0) {
		if (n < 0)
			return error_set_errno(e, -errno, "reading an installed file");
		i->bytes += (uint64_t)n;
		if (i->max_bytes && i->bytes > i->max_bytes)
			return too_large(i, e);
		sha256_add(&sum, piece, (size_t)n);
		int r = fd_write_full(to, piece, (size_t)n);
		if (r < 0)
			return error_set_errno(e, r, "writing to the package store");
	}

	if (fchmod(to, 0444) < 0 || fstat(to, &st) < 0)
		return error_set_errno(e, -errno, "writing to the package store");
	entry->size = (uint64_t)st.st_size;
	sha256_end(&sum, entry->hex);
	return 0;
}

/*
 * An object that is there already is believed only after a look: damage must not pass into new
 * sets.
 */
static bool object_is_good(struct store *s, const char *name, const struct entry *entry)
{
	char hex[SHA256_HEX + 1];
	_cleanup_fd_ int fd = openat(s->objects, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && sha256_fd(fd, hex) == (int64_t)entry->size && text_eq(hex, entry->hex);
}

/* Puts the copy among the objects, unless it is there, and links it into the tree. */
static int place(struct store_intake *i, struct entry *entry, const char *path)
{
	struct store *s = i->store;
	char object[SHA256_HEX + 2], folder[3];
	struct stat st;

	store_object_name(entry->hex, object);
	snprintf(folder, sizeof(folder), "%.2s", entry->hex);
	if (mkdirat(s->objects, folder, 0700) < 0 && errno != EEXIST)
		return -errno;
	bool linked = object_is_good(s, object, entry) &&
		      linkat(s->objects, object, i->tree, path, 0) == 0;
	/*
	 * A new object also where the old one is damaged or has as many links as the file system
	 * allows.
	 */
	if (!linked && (renameat(i->dir, "copy", s->objects, object) < 0 ||
			       linkat(s->objects, object, i->tree, path, 0) < 0))
		return -errno;
	if (fstatat(i->tree, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	entry->time_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000ULL + (uint64_t)st.st_mtim.tv_nsec;
	return 0;
}

static int add_entry(struct store_intake *i, struct entry *entry, const char *path)
{
	if (i->n == i->cap) {
		size_t cap = i->cap ? 2 * i->cap : 256;
		struct entry *more = realloc(i->entries, cap * sizeof(*more));
		if (!more)
			return -ENOMEM;
		i->entries = more;
		i->cap = cap;
	}
	if (!(entry->path = strdup(path)))
		return -ENOMEM;
	i->entries[i->n++] = *entry;
	return 0;
}

static int take_file(struct store_intake *i, int fd, const char *path, struct error *e)
{
	struct entry entry = { 0 };
	if (i->n >= STORE_FILES_MAX)
		return too_large(i, e);
	int r = copy(i, fd, &entry, e);
	if (r < 0)
		return r;
	r = place(i, &entry, path);
	if (r == 0)
		r = add_entry(i, &entry, path);
	return r < 0 ? error_set_errno(e, r, "writing to the package store") : 0;
}

/* ---- the walk ----------------------------------------------------------------------- */

struct walk {
	struct store_intake *intake;
	struct error *e;
	char path[PATH_BYTES]; /* of the directory, with a slash at its end unless it is the top */
	unsigned depth;
};

static int walk_into(struct walk *w, int dir);

/*
 * Names go into a list of lines, and to programs; what has control characters in it is no module.
 */
static bool odd_name(const char *name)
{
	if (!text_is_utf8(name, strlen(name)))
		return true;
	for (; *name; name++)
		if ((unsigned char)*name < 0x20 || *name == 0x7f)
			return true;
	return false;
}

static int walk_entry(void *userdata, int dir, const struct dirent *d)
{
	struct walk *w = userdata;
	size_t base = strlen(w->path);
	struct stat st;

	if (odd_name(d->d_name) || base + strlen(d->d_name) + 2 > sizeof(w->path))
		return error_set(
			w->e, -EINVAL, "a file of the packages has a name that cannot be stored");
	_cleanup_fd_ int fd = openat(
		dir, d->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return error_set(w->e, -EINVAL, "%s%s is neither a file nor a directory", w->path,
			d->d_name);
	snprintf(w->path + base, sizeof(w->path) - base, "%s", d->d_name);
	int r = 0;
	if (S_ISREG(st.st_mode)) {
		r = take_file(w->intake, fd, w->path, w->e);
	} else if (mkdirat(w->intake->tree, w->path, 0755) < 0 ||
		   fchmodat(w->intake->tree, w->path, 0755, 0) < 0) {
		r = error_set_errno(w->e, -errno, "writing to the package store");
	} else {
		snprintf(w->path + strlen(w->path), 2, "/");
		r = walk_into(w, fd);
	}

	w->path[base] = '\0';
	return r;
}

static int walk_into(struct walk *w, int dir)
{
	if (w->depth >= STORE_DEPTH_MAX)
		return error_set(w->e, -ELOOP, "the packages' directories are nested too deeply");
	w->depth++;
	int r = store_each(dir, walk_entry, w);
	w->depth--;
	return r;
}

int store_intake_tree(struct store_intake *i, int dir, struct error *e)
{
	struct walk w = { .intake = i, .e = e };
	return walk_into(&w, dir);
}

/* ---- the end ------------------------------------------------------------------------ */

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

/* In a directory of compiled files, and not beside one that is called alike. */
static bool is_compiled(const char *path)
{
	static const char folder[] = "__pycache__/";
	const char *at = strstr(path, folder);
	return at && (at == path || at[-1] == '/');
}

struct digests {
	char all[SHA256_HEX + 1]; /* of every file */
	/* of the identity and all files but compiled ones, which differ a little each time; ""
	 * without identity */
	char shared[SHA256_HEX + 1];
};

static void add_to_digest(struct sha256 *sum, const struct entry *x)
{
	sha256_add(sum, x->hex, SHA256_HEX);
	sha256_add(sum, x->path, strlen(x->path) + 1);
}

/* The manifest, and the digests. */
static int describe(
	struct store_intake *i, const char *identity, struct buffer *manifest, struct digests *ret)
{
	struct sha256 all, shared;
	int r = 0;

	if (i->n)
		qsort(i->entries, i->n, sizeof(*i->entries), by_path);
	*ret = (struct digests){ 0 };
	sha256_init(&all);
	sha256_init(&shared);
	if (identity)
		sha256_add(&shared, identity, strlen(identity) + 1);
	for (size_t k = 0; r == 0 && k < i->n; k++) {
		const struct entry *x = &i->entries[k];
		r = buffer_printf(manifest, "%s %llu %llu %s\n", x->hex,
			(unsigned long long)x->size, (unsigned long long)x->time_ns, x->path);
		add_to_digest(&all, x);
		if (!is_compiled(x->path))
			add_to_digest(&shared, x);
	}

	sha256_end(&all, ret->all);
	if (identity)
		sha256_end(&shared, ret->shared);
	return r;
}

static int make_record(const struct store_intake *i, const char *id, const struct digests *digests,
	const struct buffer *manifest, const char *fields, struct buffer *out)
{
	char hex[SHA256_HEX + 1], when[CLOCK_TEXT_MAX];
	struct sha256 sum;
	sha256_init(&sum);
	sha256_add(&sum, manifest->data, manifest->len);
	sha256_end(&sum, hex);
	return buffer_printf(out,
		"{\"version\":2,\"id\":\"%s\",\"digest\":\"%s\",\"shared\":\"%s\",\"manifest\":\"%s\",\"files\":%zu,\"bytes\":%llu,\"created\":\"%s\"%s%s}",
		id, digests->all, digests->shared, hex, i->n, (unsigned long long)i->bytes,
		clock_format(clock_wall_ns(), when), *fields ? "," : "", fields);
}

/* An equal set that is whole; true and its id. */
static bool find_same(struct store *s, const struct digests *digests, char *ret_id)
{
	struct store_list list = { 0 };
	bool found = false;
	if (!*digests->shared || store_list(s, &list) < 0)
		return false;
	for (size_t k = 0; !found && k < list.n; k++) {
		if (!store_record_says(list.sets[k].json, "shared", digests->shared) ||
			store_check(s, list.sets[k].id, true, NULL) < 0)
			continue;
		memcpy(ret_id, list.sets[k].id, STORE_ID_LEN + 1);
		found = true;
	}
	store_list_finish(&list);
	return found;
}

/*
 * In this order: the mark that leads to a tree without a record, the tree, its list, all on disk,
 * the record, the mark goes.
 */
static int publish(struct store_intake *i, const char *id, const struct buffer *manifest,
	const struct buffer *record)
{
	struct store *s = i->store;
	char mark[STORE_ID_LEN + 8], files[STORE_ID_LEN + 8], name[STORE_ID_LEN + 8];

	snprintf(mark, sizeof(mark), "%s.new", id);
	snprintf(files, sizeof(files), "%s.files", id);
	snprintf(name, sizeof(name), "%s.json", id);
	_cleanup_fd_ int fd = openat(s->sets, mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	int r = renameat(i->dir, "tree", s->tree, id) < 0 ? -errno : 0;
	if (r == 0)
		r = store_write(
			s->sets, files, manifest->data ? manifest->data : "", manifest->len);
	if (r == 0 && syncfs(i->dir) < 0)
		r = -errno;
	if (r == 0)
		r = store_write(s->sets, name, record->data, record->len);
	if (r < 0) {
		store_remove_tree(s->tree, id);
		unlinkat(s->sets, files, 0);
	}

	unlinkat(s->sets, mark, 0);
	return r;
}

int store_intake_commit(struct store_intake *i, const char *identity, const char *fields,
	struct error *e, char *ret_id, bool *ret_found)
{
	_cleanup_buffer_ struct buffer manifest = BUFFER_INIT(STORE_MANIFEST_BYTES),
				       record = BUFFER_INIT(STORE_RECORD_BYTES);
	char id[STORE_ID_LEN + 1];
	struct digests digests;
	int r = describe(i, identity, &manifest, &digests);

	if (r == 0 && find_same(i->store, &digests, ret_id)) {
		*ret_found = true;
		return 0;
	}

	text_random_id(id, STORE_ID_LEN);
	if (r == 0)
		r = make_record(i, id, &digests, &manifest, fields, &record);
	if (r == 0)
		r = publish(i, id, &manifest, &record);
	if (r < 0)
		return error_set_errno(e, r, "writing to the package store");
	memcpy(ret_id, id, sizeof(id));
	*ret_found = false;
	return 0;
}
