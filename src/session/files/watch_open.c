#include "session/files/watch_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/file_identity.h"
#include "base/text.h"
#include "sandbox/pool.h"
#include "session/internal.h"

static struct file_identity enter(const struct session *s)
{
	uid_t uid;
	gid_t gid;
	session_owner(s, &uid, &gid);
	return file_identity_enter(uid, gid);
}

static int open_in_root(const struct session *s, int root, const char *path, int flags)
{
	struct file_identity own = enter(s);
	int fd = fd_open_in_root(root, path, flags);
	file_identity_leave(&own);
	return fd;
}

static int open_beneath(const struct session *s, int dir, const char *path, int flags)
{
	struct file_identity own = enter(s);
	int fd = fd_open_beneath(dir, path, flags);
	file_identity_leave(&own);
	return fd;
}

int watch_open_directory_at(const struct session *s, int dir, const char *name)
{
	return open_beneath(s, dir, name, O_RDONLY | O_DIRECTORY);
}

bool watch_path_is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

static int open_absolute(const struct session *s, const char *path, int flags)
{
	char link[48];
	pid_t init = sandbox_init_pid(s->sandbox);
	if (!init)
		return -EAGAIN;
	snprintf(link, sizeof(link), "/proc/%d/root", (int)init);
	/* as the daemon: the kernel asks for the right to trace the init */
	_cleanup_fd_ int root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0)
		return open_in_root(s, root, path, flags);

	/*
	 * where this process may not look at the root of its own child, the workspace is what it
	 * holds
	 */
	static const char *const homes[] = { "/workspace", "/home/user" };
	for (size_t i = 0; i < ARRAY_LEN(homes); i++) {
		if (!watch_path_is_below(path, homes[i]))
			continue;
		const char *rest = path + strlen(homes[i]);
		return open_in_root(s, sandbox_workspace(s->sandbox), *rest ? rest : "/", flags);
	}
	return -EACCES;
}

int watch_open(const struct session *s, const char *root, const char *below, int flags)
{
	char path[2 * LIMIT_PATH_BYTES];

	if (!s->sandbox)
		return -EAGAIN;
	if (*root == '/') {
		if (!*below)
			return open_absolute(s, root, flags);
		_cleanup_fd_ int dir = open_absolute(s, root, O_PATH | O_DIRECTORY);
		return dir < 0 ? dir : open_beneath(s, dir, below, flags);
	}

	int workspace = sandbox_workspace(s->sandbox);
	if (workspace < 0)
		return -EAGAIN;
	if (snprintf(path, sizeof(path), "%s%s%s", root, *below ? "/" : "", below) >=
		(int)sizeof(path))
		return -ENAMETOOLONG;
	return open_beneath(s, workspace, path, flags);
}
