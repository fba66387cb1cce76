/* Opening, records, checking. */
#include "packages/set_store.h"

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
#include "base/text.h"
#include "packages/set_store_internal.h"
#include "json/json_read.h"

enum { REQUEST_BYTES_MAX = 4 << 20, NAME_BYTES = 128 };

/* ---- small things ------------------------------------------------------------- */

int store_lock(struct store *s, int how)
{
	_cleanup_fd_ int fd = openat(s->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	while (flock(fd, how) < 0)
		if (errno != EINTR)
			return -errno;
	return TAKE_FD(fd);
}

int store_write(int dir, const char *name, const char *data, size_t len)
{
	char temporary[NAME_BYTES + 32], random[13];
	text_random_id(random, sizeof(random) - 1);
	snprintf(temporary, sizeof(temporary), ".%.100s.%s", name, random);
	_cleanup_fd_ int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : fd_write_full(fd, data, len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dir, temporary, dir, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir, temporary, 0);
	return r;
}

static int read_open(int fd, size_t max, char **ret, size_t *ret_len)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max)
		return -EFBIG;
	_cleanup_free_ char *data = malloc((size_t)st.st_size + 1);
	if (!data)
		return -ENOMEM;
	int r = fd_read_full(fd, data, (size_t)st.st_size);
	if (r < 0)
		return r;
	data[st.st_size] = '\0';
	*ret = TAKE_PTR(data);
	*ret_len = (size_t)st.st_size;
	return 0;
}

int store_read(int dir, const char *name, size_t max, char **ret, size_t *ret_len)
{
	_cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : read_open(fd, max, ret, ret_len);
}

bool store_is_id(const char *id)
{
	return strlen(id) == STORE_ID_LEN &&
	       strspn(id, "abcdefghijklmnopqrstuvwxyz234567") == STORE_ID_LEN;
}

const char *store_object_name(const char *hex, char *buf)
{
	snprintf(buf, SHA256_HEX + 2, "%.2s/%s", hex, hex + 2);
	return buf;
}

int store_each(
	int dir, int (*each)(void *userdata, int dir, const struct dirent *entry), void *userdata)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		r = -errno;
		fd_close(fd);
		return r;
	}
	for (struct dirent *entry; r >= 0 && (entry = readdir(d));)
		if (!text_eq(entry->d_name, ".") && !text_eq(entry->d_name, ".."))
			r = each(userdata, fd, entry);
	closedir(d);
	return r < 0 ? r : 0;
}

static int remove_entry(void *userdata, int dir, const struct dirent *entry)
{
	(void)userdata;
	if (unlinkat(dir, entry->d_name, 0) < 0)
		store_remove_tree(dir, entry->d_name);
	return 0;
}

void store_remove_tree(int dir, const char *name)
{
	_cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		store_each(fd, remove_entry, NULL);
	unlinkat(dir, name, AT_REMOVEDIR);
}

/* ---- life ------------------------------------------------------------------------ */

static int make_dir(int at, const char *name, mode_t mode)
{
	if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
		return -errno;
	/* Not by mkdir alone: the umask must not decide what sessions can enter or list. */
	_cleanup_fd_ int fd = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fchmodat(at, name, mode, 0) < 0 ? -errno : TAKE_FD(fd);
}

static int make_parents(const char *path)
{
	_cleanup_free_ char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	for (char *slash = copy; (slash = strchr(slash + 1, '/')); *slash = '/') {
		*slash = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_dirs(struct store *s, const char *path)
{
	int r = make_parents(path);
	if (r < 0)
		return r;
	s->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return -errno;
	/*
	 * tree: entered, never listed; the x bit is for the sessions' users, the owner's missing r
	 * for sessions with our own uid.
	 */
	const struct {
		const char *name;
		mode_t mode;
		int *fd;
	} dirs[] = { { "sets", 0700, &s->sets }, { "requests", 0700, &s->requests },
		{ "objects", 0700, &s->objects }, { "staging", 0700, &s->staging },
		{ "tree", 0311, &s->tree } };
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if ((*dirs[i].fd = make_dir(s->dir, dirs[i].name, dirs[i].mode)) < 0)
			return *dirs[i].fd;
	return 0;
}

int store_open(const char *state_dir, struct error *e, struct store **ret)
{
	_cleanup_free_ char *path = NULL;
	struct store *s = calloc(1, sizeof(*s));

	if (!s || asprintf(&path, "%s/packages", state_dir) < 0 ||
		asprintf(&s->tree_path, "%s/packages/tree", state_dir) < 0) {
		free(s);
		return error_set(e, -ENOMEM, "out of memory");
	}

	s->dir = s->sets = s->requests = s->objects = s->staging = s->tree = -1;
	int r = open_dirs(s, path);
	if (r < 0) {
		store_close(s);
		error_set_errno(e, r, "opening the package store %s", path);
		return error_remedy(
			e, "Name another place with {setting:state-dir}, or make it writable.");
	}

	*ret = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	const int fds[] = { s->dir, s->sets, s->requests, s->objects, s->staging, s->tree };
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fd_close(fds[i]);
	free(s->tree_path);
	free(s);
}

const char *store_tree(const struct store *s)
{
	return s->tree_path;
}

/* ---- records ------------------------------------------------------------------------ */

int store_request_read(struct store *s, const char *key, char **ret_json, size_t *ret_len)
{
	char name[NAME_BYTES];
	snprintf(name, sizeof(name), "%s.json", key);
	return store_read(s->requests, name, REQUEST_BYTES_MAX, ret_json, ret_len);
}

int store_request_write(
	struct store *s, const char *key, const char *json, size_t len, struct error *e)
{
	char name[NAME_BYTES];
	snprintf(name, sizeof(name), "%s.json", key);
	int r = store_write(s->requests, name, json, len);
	return r < 0 ? error_set_errno(e, r, "writing to the package store") : 0;
}

int store_set_hold(struct store *s, const char *id, int *ret_fd, char **ret_json, size_t *ret_len)
{
	char name[NAME_BYTES];
	struct stat held, there;

	if (!store_is_id(id))
		return -ENOENT;
	snprintf(name, sizeof(name), "%s.json", id);
	_cleanup_fd_ int fd = openat(s->sets, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	/*
	 * Exclusively locked it is being removed. Locked by us, it may have been removed just
	 * before.
	 */
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -ENOENT : -errno;
	if (fstat(fd, &held) < 0 || fstatat(s->sets, name, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
		held.st_ino != there.st_ino)
		return -ENOENT;
	int r = read_open(fd, STORE_RECORD_BYTES, ret_json, ret_len);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

void store_set_used(struct store *s, const char *id)
{
	char name[NAME_BYTES];
	snprintf(name, sizeof(name), "%s.json", id);
	utimensat(s->sets, name, NULL, 0);
}

/* ---- checking ------------------------------------------------------------------------- */

static int differs(struct error *e, const char *path, const char *how)
{
	error_set(e, -EUCLEAN, "%.200s %s", path, how);
	error_slug(e, "store_damaged");
	return -EUCLEAN;
}

static int check_content(int tree, const char *path, const char *hex, struct error *e)
{
	char found[SHA256_HEX + 1];
	_cleanup_fd_ int fd = openat(tree, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int64_t n = fd < 0 ? -errno : sha256_fd(fd, found);
	return n < 0 || !text_eq(found, hex) ? differs(e, path, "has another content") : 0;
}

/* A line "hash size time path". */
static int check_line(int tree, char *line, bool deep, struct error *e)
{
	struct stat st;
	char *rest = line, *hex = strsep(&rest, " "), *size = strsep(&rest, " "),
	     *time = strsep(&rest, " ");
	uint64_t bytes, when;
	if (!rest || text_parse_u64(size, 0, UINT64_MAX, &bytes) < 0 ||
		text_parse_u64(time, 0, UINT64_MAX, &when) < 0)
		return differs(e, "its list of files", "cannot be read");
	if (fstatat(tree, rest, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return differs(e, rest, "is missing");
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != bytes ||
		(uint64_t)st.st_mtim.tv_sec * 1000000000ULL + (uint64_t)st.st_mtim.tv_nsec != when)
		return differs(e, rest, "was changed");
	return deep ? check_content(tree, rest, hex, e) : 0;
}

/* By a reader, not by looking for the text: what packages are called is part of a record too. */
bool store_record_says(const char *record, const char *member, const char *text)
{
	_cleanup_json_ json_t *tree = NULL;
	return json_read(record, strlen(record), NULL, &tree) == 0 &&
	       text_eq(json_string_value(json_object_get(tree, member)), text);
}

int store_check(struct store *s, const char *id, bool deep, struct error *e)
{
	_cleanup_free_ char *text = NULL, *record = NULL;
	char name[NAME_BYTES], hex[SHA256_HEX + 1];
	struct sha256 sum;
	size_t len, record_len;
	_cleanup_fd_ int hold = -1,
			 tree = openat(s->tree, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = store_set_hold(s, id, &hold, &record, &record_len);

	if (r < 0)
		return error_set_errno(e, r, "the set %s", id);
	snprintf(name, sizeof(name), "%s.files", id);
	if (tree < 0 || store_read(s->sets, name, STORE_MANIFEST_BYTES, &text, &len) < 0)
		return differs(e, tree < 0 ? "its directory" : "its list of files", "is missing");
	sha256_init(&sum);
	sha256_add(&sum, text, len);
	sha256_end(&sum, hex);
	if (!store_record_says(record, "manifest", hex))
		return differs(e, "its list of files", "was changed");
	for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line;)
		if ((r = check_line(tree, line, deep, e)) < 0)
			return r;
	return 0;
}
