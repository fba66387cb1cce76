#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/workspace.h"
#include "base/fds.h"
#include "base/limits.h"
#include "tap.h"

/* A whole walk at once. */
struct listing {
	struct workspace_entry *entries;
	size_t n;
	bool truncated;
	struct workspace_walk *walk;
};

static void listing_finish(struct listing *l)
{
	free(l->entries);
	workspace_walk_destroy(l->walk);
	*l = (struct listing){ 0 };
}

static int list(int root, const char *path, bool recursive, struct listing *l, struct error *e)
{
	const struct workspace_entry *entry;
	int r = workspace_walk_create(root, path, recursive, e, &l->walk);
	while (r >= 0 && (r = workspace_walk_step(l->walk, 7)) > 0)
		;
	if (r < 0)
		return r;
	l->entries = calloc(workspace_walk_count(l->walk) + 1, sizeof(*l->entries));
	while ((entry = workspace_walk_next(l->walk)))
		l->entries[l->n++] = *entry;
	l->truncated = workspace_walk_truncated(l->walk);
	return 0;
}

static int root = -1, outside = -1;

static void paths(void)
{
	static const char *const good[] = { "a", "a/b/c.txt", ".hidden", "...", "..a", "a..", "é/ü",
		"a b", "a\nb", "-x" };
	static const char *const bad[] = { "", "/a", "a/", "a//b", ".", "..", "a/..", "../a",
		"a/./b", "a/../b", "\xff", "/" };
	struct error e;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		OK(workspace_check_path(good[i], strlen(good[i]), &e) == 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		OK(workspace_check_path(bad[i], strlen(bad[i]), &e) == -EINVAL);
		OK_STR(e.slug, "invalid_path");
		OK(e.remedy[0]);
	}
	OK(workspace_check_path("a\0b", 3, &e) == -EINVAL);
	char longest[LIMIT_PATH_BYTES + 2];
	memset(longest, 'x', sizeof(longest));
	OK(workspace_check_path(longest, WORKSPACE_NAME_BYTES, &e) == 0);
	OK(workspace_check_path(longest, WORKSPACE_NAME_BYTES + 1, &e) == -EINVAL);
	for (size_t i = 1; i < sizeof(longest); i += 2)
		longest[i] = '/';
	OK(workspace_check_path(longest, 2 * WORKSPACE_DEPTH - 1, &e) == 0);
	OK(workspace_check_path(longest, 2 * WORKSPACE_DEPTH + 1, &e) == -EINVAL);
	OK(workspace_check_path(longest, LIMIT_PATH_BYTES + 1, &e) == -EINVAL);
}

static int write_file(const char *path, const char *text, bool *ret_replaced, struct error *e)
{
	struct workspace_upload u = WORKSPACE_UPLOAD_INIT;
	int r = workspace_upload_begin(&u, root, path, getuid(), getgid(), 100, e);
	if (!r)
		r = workspace_upload_write(&u, text, strlen(text), e);
	if (!r)
		r = workspace_upload_commit(&u, e, ret_replaced);
	workspace_upload_finish(&u);
	workspace_upload_finish(&u);
	return r;
}

static const char *read_file(const char *path, struct error *e)
{
	static char text[256];
	struct stat st;
	int fd = -1;
	if (workspace_open(root, path, e, &fd, &st) < 0)
		return NULL;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	OK(st.st_size == n);
	fd_close(fd);
	return text;
}

/* Nothing but what was asked for lies in the directory: no temporary is left. */
static size_t count(const char *path)
{
	struct listing l = { 0 };
	struct error e;
	size_t n = list(root, path, false, &l, &e) < 0 ? 999 : l.n;
	listing_finish(&l);
	return n;
}

static void files(void)
{
	struct error e = { 0 };
	bool replaced = true;
	OK(write_file("deep/er/f.txt", "one", &replaced, &e) == 0 && !replaced);
	OK_STR(read_file("deep/er/f.txt", &e), "one");
	OK(write_file("deep/er/f.txt", "two", &replaced, &e) == 0 && replaced);
	OK_STR(read_file("deep/er/f.txt", &e), "two");
	OK(count("deep/er") == 1);

	OK(!read_file("deep/none", &e));
	OK_STR(e.slug, "file_not_found");
	OK(!read_file("deep", &e));
	OK_STR(e.slug, "is_a_directory");
	OK(!read_file("deep/er/f.txt/x", &e));
	OK_STR(e.slug, "not_a_directory");
	OK(write_file("deep/er", "x", &replaced, &e) < 0);
	OK_STR(e.slug, "is_a_directory");
	OK(write_file("deep/er/f.txt/x", "x", &replaced, &e) < 0);
	OK_STR(e.slug, "not_a_directory");
	OK(count("deep/er") == 1 && count("deep") == 1);

	/* One byte more than allowed: refused, and the old content stays. */
	char big[102];
	memset(big, 'b', sizeof(big));
	big[101] = '\0';
	OK(write_file("deep/er/f.txt", big, &replaced, &e) == -EFBIG);
	OK_STR(e.slug, "file_too_large");
	OK_STR(read_file("deep/er/f.txt", &e), "two");
	OK(count("deep/er") == 1);

	OK(workspace_remove(root, "deep", &e) < 0);
	OK_STR(e.slug, "directory_not_empty");
	OK(workspace_remove(root, "deep/er/f.txt", &e) == 0);
	OK(workspace_remove(root, "deep/er/f.txt", &e) < 0);
	OK_STR(e.slug, "file_not_found");
	OK(workspace_remove(root, "deep/er", &e) == 0 && workspace_remove(root, "deep", &e) == 0);
}

/* What a guest plants to make us read or write elsewhere. */
static void planted(void)
{
	struct error e = { 0 };
	bool replaced;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	OK(symlinkat("/etc/passwd", root, "link") == 0);
	OK(symlinkat("/etc", root, "dir") == 0);
	OK(symlinkat("../outside/secret", root, "rel") == 0);
	OK(mkfifoat(root, "fifo", 0600) == 0);
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/sock", root);
	OK(bind(sock, (struct sockaddr *)&address, sizeof(address)) == 0);
	static const char *const refused[] = { "link", "dir/passwd", "rel", "fifo", "sock" };
	static const char *const slugs[] = { "path_refused", "path_refused", "path_refused",
		"not_a_file", "not_a_file" };
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		OK(!read_file(refused[i], &e));
		OK_STR(e.slug, slugs[i]);
	}
	/*
	 * Writing through a linked directory is refused; onto a link replaces the link, not what it
	 * points to.
	 */
	OK(write_file("dir/glovebox-test", "x", &replaced, &e) < 0);
	OK_STR(e.slug, "path_refused");
	OK(access("/etc/glovebox-test", F_OK) < 0);
	OK(write_file("rel", "mine", &replaced, &e) == 0 && replaced);
	OK_STR(read_file("rel", &e), "mine");
	char secret[8] = { 0 };
	int fd = openat(outside, "secret", O_RDONLY | O_CLOEXEC);
	OK(read(fd, secret, sizeof(secret) - 1) == 6 && !strcmp(secret, "secret"));
	fd_close(fd);
	/* Removing removes the link. */
	OK(workspace_remove(root, "dir", &e) == 0 && access("/etc", F_OK) == 0);
	OK(workspace_remove(root, "link", &e) == 0 && access("/etc/passwd", F_OK) == 0);
	OK(workspace_remove(root, "fifo", &e) == 0 && workspace_remove(root, "sock", &e) == 0);
	OK(workspace_remove(root, "rel", &e) == 0);
	fd_close(sock);
}

static void listings(void)
{
	struct error e = { 0 };
	struct listing l = { 0 };
	bool replaced;
	OK(write_file("b/2", "22", &replaced, &e) == 0 &&
		write_file("b/c/1", "1", &replaced, &e) == 0);
	OK(write_file("a", "aaa", &replaced, &e) == 0 && symlinkat("a", root, "z") == 0);
	OK(list(root, "", false, &l, &e) == 0 && l.n == 3 && !l.truncated);
	OK_STR(l.entries[0].path, "a");
	OK(l.entries[0].kind == WORKSPACE_FILE && l.entries[0].size == 3 &&
		l.entries[0].modified_ns);
	OK(l.entries[1].kind == WORKSPACE_DIRECTORY && l.entries[2].kind == WORKSPACE_LINK);
	listing_finish(&l);
	OK(list(root, "", true, &l, &e) == 0 && l.n == 6);
	OK_STR(l.entries[3].path, "b/c");
	OK_STR(l.entries[4].path, "b/c/1");
	listing_finish(&l);
	OK(list(root, "b", true, &l, &e) == 0 && l.n == 3);
	OK_STR(l.entries[0].path, "b/2");
	listing_finish(&l);
	OK(list(root, "a", true, &l, &e) < 0);
	OK_STR(e.slug, "not_a_directory");
	OK(list(root, "z", true, &l, &e) < 0);
	OK(list(root, "none", true, &l, &e) < 0);
	OK_STR(e.slug, "file_not_found");
	listing_finish(&l);
}

/* What is written belongs to the session's user (only root can try). */
static void owners(void)
{
	struct workspace_upload u = WORKSPACE_UPLOAD_INIT;
	struct error e = { 0 };
	struct stat st = { 0 };
	bool replaced;
	if (geteuid() != 0) {
		printf("ok %d # skip only root can write for others\n", ++tap_count_);
		return;
	}
	OK(fchownat(root, "", 12345, 12346, AT_EMPTY_PATH) == 0);
	OK(workspace_upload_begin(&u, root, "own/er", 12345, 12346, 100, &e) == 0);
	OK(workspace_upload_commit(&u, &e, &replaced) == 0);
	workspace_upload_finish(&u);
	OK(fstatat(root, "own", &st, 0) == 0 && st.st_uid == 12345 && st.st_gid == 12346);
	OK(fstatat(root, "own/er", &st, 0) == 0 && st.st_uid == 12345 && st.st_gid == 12346);
	/* Where that user may not write, neither do we. */
	OK(mkdirat(root, "ours", 0755) == 0);
	OK(workspace_upload_begin(&u, root, "ours/x", 12345, 12346, 100, &e) == -EACCES);
	OK_STR(e.slug, "path_refused");
	OK(geteuid() == 0 && workspace_remove(root, "ours", &e) == 0);
	OK(fchownat(root, "", 0, 0, AT_EMPTY_PATH) == 0);
}

/* A tree deeper than is looked at, and a directory fuller than is read: cut, and said so. */
static void bounded(void)
{
	struct listing l = { 0 };
	struct error e = { 0 };
	int dir = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < WORKSPACE_DEPTH + 5; i++) {
		OK(mkdirat(dir, "d", 0755) == 0);
		int next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd_close(dir);
		dir = next;
	}
	fd_close(dir);
	OK(list(root, "d", true, &l, &e) == 0 && l.truncated && l.n < WORKSPACE_DEPTH);
	listing_finish(&l);
	OK(mkdirat(root, "many", 0755) == 0);
	dir = openat(root, "many", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < WORKSPACE_SCAN + 1; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		fd_close(openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	fd_close(dir);
	OK(list(root, "many", false, &l, &e) == 0 && l.truncated && l.n == WORKSPACE_SCAN);
	listing_finish(&l);
}

/* A file system that is full, where root may mount one. */
static void full_disk(void)
{
	struct error e = { 0 };
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct workspace_upload u = { .dir = -1, .fd = fd, .max = 100, .name = "full" };
	OK(workspace_upload_write(&u, "x", 1, &e) == -ENOSPC);
	OK_STR(e.slug, "no_space");
	OK(e.remedy[0]);
	fd_close(fd);
}

int main(void)
{
	char base[] = "/tmp/glovebox-test-XXXXXX", command[128];
	if (!mkdtemp(base))
		return 1;
	int dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	mkdirat(dir, "workspace", 0755);
	mkdirat(dir, "outside", 0755);
	root = openat(dir, "workspace", O_PATH | O_DIRECTORY | O_CLOEXEC);
	outside = openat(dir, "outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int secret = openat(outside, "secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	OK(write(secret, "secret", 6) == 6);
	fd_close(secret);
	paths();
	files();
	planted();
	listings();
	owners();
	bounded();
	full_disk();
	snprintf(command, sizeof(command), "%s", base);
	if (!fork()) {
		execl("/bin/rm", "rm", "-rf", command, (char *)NULL);
		_exit(127);
	}
	return tap_done();
}
