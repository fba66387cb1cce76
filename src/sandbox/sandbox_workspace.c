/*
 * A session's /workspace, as the API sees it: opened when files are asked for, through the jail's
 * init, and closed a second or two later. Descriptors of the daemon are for sessions that do
 * something.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "sandbox/sandbox.h"

enum { OPEN_MAX = 32 }; /* at once; the least recently used one is closed for another */

/*
 * The init's root is read-only, so that "workspace" in it is the mount that the init made, whatever
 * code does.
 */
static int reopen(const struct sandbox *b)
{
	char path[48];
	if (!b->init.of)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)b->init.pid);
	_cleanup_fd_ int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? -1
			: openat(root, "workspace", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void sandbox_close_workspace(struct sandbox *b)
{
	if (b->workspace < 0)
		return;

	if (b->workspace_listed) {
		TAILQ_REMOVE(&b->pool->workspaces, b, workspace_link);
		b->pool->n_workspaces--;
	}

	b->workspace_listed = false;
	fd_close_clear(&b->workspace);
}

void sandbox_keep_workspace(struct sandbox *b, int fd)
{
	struct sandbox_pool *n = b->pool;
	if (!n->workspaces_tried) {
		/*
		 * On some machines this process has no access to the root directory of its own
		 * children, for example in a container without CAP_SYS_PTRACE.
		 */
		_cleanup_fd_ int again = reopen(b);
		n->workspaces_tried = true;
		n->workspaces_reopen = again >= 0;
	}

	if (n->workspaces_reopen)
		fd_close(fd);
	else
		b->workspace = fd;
}

int sandbox_workspace(struct sandbox *b)
{
	if (b->beside)
		return b->beside == b ? -1 : sandbox_workspace(b->beside);
	struct sandbox_pool *n = b->pool;
	if (b->state == SANDBOX_CLOSED || !n->workspaces_reopen)
		return b->workspace;

	if (b->workspace_listed) {
		TAILQ_REMOVE(&n->workspaces, b, workspace_link);
		n->n_workspaces--;
	} else if ((b->workspace = reopen(b)) < 0) {
		return -1;
	}

	b->workspace_listed = b->workspace_used = true;
	TAILQ_INSERT_TAIL(&n->workspaces, b, workspace_link);
	if (++n->n_workspaces > OPEN_MAX)
		sandbox_close_workspace(TAILQ_FIRST(&n->workspaces));
	return b->workspace;
}

void sandbox_pool_close_workspaces(struct sandbox_pool *n)
{
	for (struct sandbox *b = TAILQ_FIRST(&n->workspaces), *next; b; b = next) {
		next = TAILQ_NEXT(b, workspace_link);
		if (!b->workspace_used)
			sandbox_close_workspace(b);
		b->workspace_used = false;
	}
}
