#include "jail/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_internal.h"

/* ---- small files ------------------------------------------------------------------ */

int cgroup_open_file(int dir, const char *name, const char *file, int flags)
{
	char path[CGROUP_NAME_MAX + 64];
	snprintf(path, sizeof(path), "%s/%s", name, file);
	int fd = openat(dir, path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cgroup_write_text(int dir, const char *name, const char *file, const char *text)
{
	_cleanup_fd_ int fd = cgroup_open_file(dir, name, file, O_WRONLY);
	if (fd < 0)
		return fd;
	/* again after a signal: a limit on memory is refused while one is pending */
	return fd_write_full(fd, text, strlen(text));
}

int cgroup_write_u64(int dir, const char *name, const char *file, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return cgroup_write_text(dir, name, file, text);
}

int cgroup_write_or(
	int dir, const char *name, const char *file, uint64_t value, const char *no_limit)
{
	return value ? cgroup_write_u64(dir, name, file, value)
		     : cgroup_write_text(dir, name, file, no_limit);
}

int cgroup_find_number(int dir, const char *name, const char *file, const char *key, uint64_t *ret)
{
	char text[2048];
	_cleanup_fd_ int fd = cgroup_open_file(dir, name, file, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return fd < 0 ? fd : -ENODATA;
	text[n] = '\0';
	size_t len = key ? strlen(key) : 0;
	for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (!key || (!strncmp(p, key, len) && p[len] == ' ')) {
			*ret = strtoull(key ? p + len + 1 : p, NULL, 10);
			return 0;
		}
	return -ENODATA;
}

uint64_t cgroup_read_number(int dir, const char *name, const char *file, const char *key)
{
	uint64_t n;
	return cgroup_find_number(dir, name, file, key, &n) < 0 ? 0 : n;
}

/* ---- groups ------------------------------------------------------------------------------ */

int cgroup_make(struct cgroup_home *h, const char *name, const struct cgroup_limits *limits)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && h->ops->controllers[i]; i++)
		/* cpu and cpuacct are often one */
		if (mkdirat(h->dirs[i], name, 0755) < 0 && errno != EEXIST)
			r = -errno;
	if (r == 0)
		r = h->ops->set_limits(h, name, limits);
	if (r < 0)
		cgroup_remove(h, name);
	return r;
}

int cgroup_make_family(struct cgroup_home *h, const char *name)
{
	for (unsigned i = 0; h->ops->controllers[i]; i++) {
		if (mkdirat(h->dirs[i], name, 0755) < 0 && errno != EEXIST)
			return -errno;
		int r = h->ops->allow_children ? h->ops->allow_children(h, name) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_home_procs(const struct cgroup_home *h)
{
	return h->ops->controllers[0]
		       ? cgroup_open_file(h->dirs[h->ops->processes], ".", "cgroup.procs", O_WRONLY)
		       : -ENOTSUP;
}

int cgroup_set_limits(struct cgroup_home *h, const char *name, const struct cgroup_limits *limits)
{
	return h->ops->set_limits(h, name, limits);
}

int cgroup_set_processes(struct cgroup_home *h, const char *name, unsigned processes)
{
	return h->ops->controllers[0] ? cgroup_write_or(h->dirs[h->ops->processes], name,
						"pids.max", processes, "max")
				      : 0;
}

int cgroup_bound_sockets(struct cgroup_home *h, const char *name)
{
	int r = h->ops->sockets
			? cgroup_write_u64(h->dirs[0], name, h->ops->sockets, CGROUP_SOCKET_BYTES)
			: 0;
	return r == -ENOENT ? 0 : r; /* a kernel that was built without it */
}

int cgroup_join_fds_open(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret)
{
	return h->ops->open_join_fds(h, name, ret);
}

int cgroup_join_open(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret)
{
	*ret = (struct cgroup_join_fds){ 0 };
	for (unsigned i = 0; h->ops->controllers[i]; i++) {
		int fd = cgroup_open_file(h->dirs[i], name, "cgroup.procs", O_WRONLY);
		if (fd < 0) {
			cgroup_join_fds_close(ret);
			return fd;
		}
		ret->fds[ret->n++] = fd;
	}
	return 0;
}

void cgroup_join_fds_close(struct cgroup_join_fds *t)
{
	for (unsigned i = 0; i < t->n; i++)
		fd_close(t->fds[i]);
	t->n = 0;
}

int cgroup_usage_read(struct cgroup_home *h, const char *name, struct cgroup_usage *ret)
{
	*ret = (struct cgroup_usage){ 0 };
	h->ops->usage(h, name, ret);
	return 0;
}

uint64_t cgroup_memory(struct cgroup_home *h, const char *name)
{
	return h->ops->memory
		       ? cgroup_read_number(h->dirs[CGROUP_V1_MEMORY], name, h->ops->memory, NULL)
		       : 0;
}

bool cgroup_holds_only(struct cgroup_home *h, const char *name, const pid_t *those, size_t n)
{
	char text[4096], *at = text;
	_cleanup_fd_ int fd = h->ops->threads ? cgroup_open_file(h->dirs[h->ops->processes], name,
							h->ops->threads, O_RDONLY)
					      : -1;
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (len < 0 || len == sizeof(text) - 1)
		return false;
	text[len] = '\0';
	while (*at) {
		pid_t id = (pid_t)strtol(at, &at, 10);
		bool known = false;
		for (size_t i = 0; i < n; i++)
			known |= those[i] == id;
		if (!known)
			return false;
		at += strspn(at, "\n");
	}

	return true;
}

bool cgroup_holds(const struct cgroup_home *h, const char *name, pid_t pid)
{
	char path[64], group[2 * CGROUP_NAME_MAX + 4];
	_cleanup_free_ char *text = NULL;
	if (!h->ops->controllers[0])
		return true;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	snprintf(group, sizeof(group), "/%s/%s\n", h->name, name);
	return fd_read_file(path, GROUPS_TEXT_MAX, &text, NULL) == 0 && strstr(text, group);
}

bool cgroup_reset(struct cgroup_home *h, const char *name, uint64_t *ret_memory)
{
	return h->ops->reset && h->ops->reset(h, name, ret_memory);
}

int cgroup_remove(struct cgroup_home *h, const char *name)
{
	int r = 0;
	for (unsigned i = 0; h->ops->controllers[i]; i++)
		if (unlinkat(h->dirs[i], name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			r = -errno;
	return r;
}
