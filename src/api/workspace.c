#include "api/workspace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/file_identity.h"
#include "base/launcher.h"
#include "base/limits.h"
#include "base/text.h"

int workspace_open_beneath(int dir, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};
	for (int tries = 0;; tries++) {
		int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd >= 0)
			return fd;
		/*
		 * EAGAIN: something was renamed while the kernel looked; a guest that does nothing
		 * else is refused in the end.
		 */
		if (errno != EINTR && (errno != EAGAIN || tries >= 16))
			return -errno;
	}
}

/* ---- errors ------------------------------------------------------------- */

int workspace_fail(struct error *e, int err, const char *path)
{
	static const struct {
		int err;
		const char *slug, *what, *remedy;

	} table[] = {
		{ -ENOENT, "file_not_found", "there is no such file",
			"List the files with GET /v1/sessions/{id}/files?recursive=true." },
		{ -ENOTDIR, "not_a_directory", "a part of the path is not a directory",
			"Check the path's parents." },
		{ -EISDIR, "is_a_directory", "it is a directory",
			"Give the path of a file in this directory." },
		{ -ELOOP, "path_refused", "the path contains a symbolic link",
			"The API does not follow links; give the path of the link's target." },
		{ -EXDEV, "path_refused", "the path leaves the workspace",
			"Use a path that stays below /workspace." },
		{ -EAGAIN, "path_refused", "the path kept changing while it was opened",
			"Try again when the cell is done." },
		{ -ENXIO, "not_a_file", "it is not a regular file",
			"Only regular files can be transferred." },
		{ -ENOTEMPTY, "directory_not_empty", "the directory is not empty",
			"Delete the files in it first, or run shutil.rmtree() in a cell." },
		{ -ENOSPC, "no_space", "the session's disk is full",
			"Delete files, or create the session with a larger limits.disk_bytes." },
		{ -EDQUOT, "no_space", "the session's disk is full",
			"Delete files, or create the session with a larger limits.disk_bytes." },
		{ -EFBIG, "file_too_large", "the file is larger than this server transfers",
			"Split the file into smaller parts." },
		{ -EACCES, "path_refused", "its permissions do not allow it",
			"Change its mode with os.chmod() in a cell." },
		{ -EPERM, "path_refused", "its permissions do not allow it",
			"Change its mode with os.chmod() in a cell." },
		{ -ENAMETOOLONG, "invalid_path", "the path is too long", "Use a shorter path." },
	};
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (table[i].err != err)
			continue;
		error_set(e, err, "/workspace/%s: %s", path, table[i].what);
		error_remedy(e, "%s", table[i].remedy);
		return error_slug(e, table[i].slug), err;
	}

	error_set_errno(e, err, "/workspace/%s", path);
	return error_slug(e, "file_error"), err;
}

static int bad_path(struct error *e, const char *why)
{
	error_set(e, -EINVAL, "the path %s", why);
	error_remedy(e, "Use a path relative to /workspace, such as data/input.csv.");
	return error_slug(e, "invalid_path"), -EINVAL;
}

/* ---- names -------------------------------------------------------------- */

static int check_part(const char *part, size_t len, struct error *e)
{
	if (!len)
		return bad_path(e,
			"has an empty part (it must not begin or end with a slash, nor contain two slashes in a row)");
	if (len <= 2 && !memcmp(part, "..", len))
		return bad_path(e, "must not hold \".\" or \"..\"");
	if (len > WORKSPACE_NAME_BYTES)
		return bad_path(e, "has a part longer than 255 bytes");
	return 0;
}

int workspace_check_path(const char *path, size_t len, struct error *e)
{
	size_t parts = 0;
	if (!len)
		return bad_path(e, "is empty");
	if (len > LIMIT_PATH_BYTES)
		return bad_path(e, "is longer than 1024 bytes");
	if (memchr(path, '\0', len))
		return bad_path(e, "holds a NUL byte");
	if (!text_is_utf8(path, len))
		return bad_path(e, "is not valid UTF-8");
	for (size_t start = 0; start <= len;) {
		const char *slash = memchr(path + start, '/', len - start);
		size_t end = slash ? (size_t)(slash - path) : len;
		int r = check_part(path + start, end - start, e);
		if (r < 0)
			return r;
		if (++parts > WORKSPACE_DEPTH)
			return bad_path(e, "has more than 32 parts");
		start = end + 1;
	}

	return 0;
}

/* ---- reading and removing ----------------------------------------------- */

int workspace_open(int root, const char *path, struct error *e, int *ret_fd, struct stat *ret_stat)
{
	struct stat st;
	/*
	 * O_NONBLOCK: a FIFO planted by the guest would otherwise hold us until somebody writes to
	 * it.
	 */
	_cleanup_fd_ int fd = workspace_open_beneath(
		root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return workspace_fail(e, fd, path);
	if (fstat(fd, &st) < 0)
		return workspace_fail(e, -errno, path);
	if (S_ISDIR(st.st_mode))
		return workspace_fail(e, -EISDIR, path);
	if (!S_ISREG(st.st_mode))
		return workspace_fail(e, -ENXIO, path);
	*ret_stat = st;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Opens the directory a path's last part lives in, and says which part that is. */
static int open_parent(int root, const char *path, const char **ret_name)
{
	char parent[LIMIT_PATH_BYTES + 1];
	const char *slash = strrchr(path, '/');
	*ret_name = slash ? slash + 1 : path;
	if (!slash)
		return workspace_open_beneath(root, ".", O_RDONLY | O_DIRECTORY, 0);
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	return workspace_open_beneath(root, parent, O_RDONLY | O_DIRECTORY, 0);
}

int workspace_remove(int root, const char *path, struct error *e)
{
	const char *name;
	_cleanup_fd_ int dir = open_parent(root, path, &name);

	if (dir < 0)
		return workspace_fail(e, dir, path);
	/*
	 * The last process that closes a file frees its pages, which takes time in proportion to
	 * its size. This descriptor leaves that work to another process.
	 */
	_cleanup_discard_ int held = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	(void)held;
	/*
	 * The name is one checked part, and unlinkat never follows it, so what goes is in this
	 * directory.
	 */
	if (!unlinkat(dir, name, 0))
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return workspace_fail(e, -errno, path);
	if (!unlinkat(dir, name, AT_REMOVEDIR))
		return 0;
	return workspace_fail(e, errno == EEXIST ? -ENOTEMPTY : -errno, path);
}

/* ---- writing ------------------------------------------------------------ */

/*
 * What is made in a workspace is made as its owner. A jail's file system belongs to the jail's user
 * namespace, where our own root does not exist (EOVERFLOW), and with the owner's rights no planted
 * name can make us change what the guest could not.
 */
/* Opens `name` in dir, making it when it is missing. Returns a new descriptor. */
static int enter_or_make(int dir, const char *name)
{
	int fd = workspace_open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd != -ENOENT)
		return fd;
	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return workspace_open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0);
}

static int make_parents(int root, const char *path, const char **ret_name)
{
	char part[WORKSPACE_NAME_BYTES + 1];
	_cleanup_fd_ int dir = workspace_open_beneath(root, ".", O_RDONLY | O_DIRECTORY, 0);

	if (dir < 0)
		return dir;
	for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		int next = enter_or_make(dir, part);
		if (next < 0)
			return next;
		fd_close(dir);
		dir = next;
	}

	*ret_name = path;
	return TAKE_FD(dir);
}

static int begin(struct workspace_upload *u, int root, const char *path)
{
	/*
	 * those who watch the directory are told whether a file was there
	 * (session/files/file_watch.c)
	 */
	static const char prefixes[2][18] = { ".glovebox-upload-", ".glovebox-update-" };
	struct stat st;
	const char *name;
	u->dir = make_parents(root, path, &name);
	if (u->dir < 0)
		return u->dir;
	snprintf(u->name, sizeof(u->name), "%s", name);
	bool there = !fstatat(u->dir, name, &st, AT_SYMLINK_NOFOLLOW);
	memcpy(u->temporary, prefixes[there], sizeof(prefixes[0]));
	text_random_id(u->temporary + sizeof(prefixes[0]) - 1, 26);
	u->fd = workspace_open_beneath(u->dir, u->temporary, O_WRONLY | O_CREAT | O_EXCL, 0644);
	return u->fd < 0 ? u->fd : 0;
}

int workspace_make_directory(int root, const char *path, uid_t uid, gid_t gid, struct error *e)
{
	const char *name;
	struct file_identity own = file_identity_enter(uid, gid);
	_cleanup_fd_ int parent = make_parents(root, path, &name);
	_cleanup_fd_ int dir = parent < 0 ? parent : enter_or_make(parent, name);
	file_identity_leave(&own);
	return dir < 0 ? workspace_fail(e, dir, path) : 0;
}

int workspace_upload_begin(struct workspace_upload *u, int root, const char *path, uid_t uid,
	gid_t gid, uint64_t max, struct error *e)
{
	struct workspace_upload new = { .dir = -1, .fd = -1, .uid = uid, .gid = gid, .max = max };
	struct file_identity own = file_identity_enter(uid, gid);
	int r = begin(&new, root, path);
	file_identity_leave(&own);
	if (r < 0) {
		workspace_upload_finish(&new);
		return workspace_fail(e, r, path);
	}
	*u = new;
	return 0;
}

int workspace_upload_write(
	struct workspace_upload *u, const void *data, size_t len, struct error *e)
{
	if (len > u->max - u->written)
		return workspace_fail(e, -EFBIG, u->name);
	int r = fd_write_full(u->fd, data, len);
	if (r < 0)
		return workspace_fail(e, r, u->name);
	u->written += len;
	return 0;
}

int workspace_upload_commit(struct workspace_upload *u, struct error *e, bool *ret_replaced)
{
	struct stat st;
	/* as in workspace_remove() */
	_cleanup_discard_ int held = openat(u->dir, u->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	(void)held;
	bool replaced = !fstatat(u->dir, u->name, &st, AT_SYMLINK_NOFOLLOW);
	struct file_identity own = file_identity_enter(u->uid, u->gid);
	/* rename replaces a link itself, never what it points to. */
	int r = renameat(u->dir, u->temporary, u->dir, u->name) < 0 ? -errno : 0;
	file_identity_leave(&own);
	if (r < 0)
		return workspace_fail(e, r, u->name);
	fd_close_clear(&u->fd);
	*ret_replaced = replaced;
	return 0;
}

void workspace_upload_finish(struct workspace_upload *u)
{
	if (u->fd >= 0)
		unlinkat(u->dir, u->temporary, 0);
	launcher_discard(TAKE_FD(u->fd));
	fd_close_clear(&u->dir);
}
