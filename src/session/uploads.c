/*
 * Files that the API writes into a session. The kernel charges their pages to whoever writes them,
 * which is the daemon, so they are charged here: they count with what the session has, and its
 * control group's limit is lowered by as much. What is deleted is given back when it is noticed.
 */
#include <errno.h>
#include <sys/statfs.h>

#include "session/contexts/contexts.h"
#include "session/internal.h"
#include "session/processes/processes.h"

enum { LOOK_BYTES = 1 << 20 }; /* written between two looks at what the session has */

static uint64_t in_workspace(const struct session *s)
{
	struct statfs v;
	int fd = session_workspace_fd(s);
	if (fd < 0 || fstatfs(fd, &v) < 0)
		return UINT64_MAX;
	return (uint64_t)(v.f_blocks - v.f_bfree) * (uint64_t)v.f_bsize;
}

uint64_t session_disk_used(const struct session *s)
{
	uint64_t n = in_workspace(s);
	return n == UINT64_MAX ? 0 : n;
}

static int apply(struct session *s)
{
	struct cgroup_limits wall = session_cgroup_limits(&s->params.limits);
	if (!wall.memory_bytes || !s->sandbox)
		return 0;
	wall.memory_bytes -= s->usage.uploads.bytes < wall.memory_bytes / 2 ? s->usage.uploads.bytes
									    : wall.memory_bytes / 2;
	return sandbox_set_limits(s->sandbox, &wall);
}

void session_recount_uploads(struct session *s)
{
	uint64_t there = s->usage.uploads.bytes ? in_workspace(s) : 0;
	if (there >= s->usage.uploads.bytes)
		return;
	s->usage.uploads.bytes = there;
	s->usage.uploads.looked = 0;
	apply(s);
}

/* Whether so much more fits into its memory, beside what it has. */
static bool fits(const struct session *s, size_t bytes)
{
	return sandbox_memory_used(s->sandbox) + s->usage.uploads.bytes + bytes <=
	       s->params.limits.memory_bytes;
}

int session_charge_upload(struct session *s, size_t bytes, struct error *e)
{
	bool look = s->params.limits.memory_bytes &&
		    (!s->usage.uploads.looked || s->usage.uploads.looked >= LOOK_BYTES);
	if (look && s->sandbox && !fits(s, bytes))
		session_recount_uploads(s); /* perhaps files were deleted */
	if (look && s->sandbox && !fits(s, bytes)) {
		error_set(e, -ENOSPC,
			"the file does not fit into the session's memory limit of %llu bytes, which includes its files",
			(unsigned long long)s->params.limits.memory_bytes);
		error_remedy(e, "Delete files, free variables, or allow more with {memory_bytes}.");
		return error_slug(e, "no_space");
	}

	s->usage.uploads.looked = look ? bytes : s->usage.uploads.looked + bytes;
	s->usage.uploads.bytes += bytes;
	return 0;
}

void session_files_share(struct session *s)
{
	s->usage.uploads.shared = true;
}

bool session_files_shared(struct session *s)
{
	bool *shared = &s->usage.uploads.shared;
	/* those that are starting may be in no control group yet */
	if (*shared && !session_context_next(s, NULL) && !processes_running(s) && s->sandbox &&
		sandbox_is_alone(s->sandbox))
		*shared = false;
	return *shared;
}

void session_files_touched(struct session *s)
{
	s->usage.uploads.touched = s->death.holds.files = true;
	session_recount_uploads(s);
	apply(s);
}
