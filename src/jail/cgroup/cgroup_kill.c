/* Ending the processes of a group. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/process.h"
#include "jail/cgroup/cgroup_internal.h"

static bool is_among(pid_t pid, const pid_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

static bool is_spared(pid_t pid, const struct cgroup_spared *s)
{
	if (!s)
		return false;
	if (is_among(pid, s->pids, s->n_pids))
		return true;
	return s->n_leaders && is_among(getsid(pid), s->leaders, s->n_leaders);
}

enum { BATCH = 64 };

struct batch {
	pid_t pids[BATCH];
	int pidfds[BATCH];
	unsigned n;
};

/* Members of the group that are not spared, beginning with the `skip`th. */
static void read_members(int dir, const char *name, const struct cgroup_spared *spared,
	unsigned skip, struct batch *ret)
{
	char line[32];
	int fd = cgroup_open_file(dir, name, "cgroup.procs", O_RDONLY);
	_cleanup_file_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	ret->n = 0;
	while (f && ret->n < BATCH && fgets(line, sizeof(line), f)) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);
		if (pid <= 1 || is_spared(pid, spared))
			continue;
		if (skip)
			skip--;
		else
			ret->pids[ret->n++] = pid;
	}
}

/*
 * A number that was read may be another process's by now: killed is who is held by a pidfd and
 * whose number is still in the group after that.
 */
static unsigned kill_members(int dir, const char *name, const struct batch *b)
{
	char line[32];
	unsigned killed = 0;
	int fd = cgroup_open_file(dir, name, "cgroup.procs", O_RDONLY);
	_cleanup_file_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	while (f && fgets(line, sizeof(line), f)) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);
		for (unsigned i = 0; i < b->n; i++)
			if (b->pids[i] == pid && b->pidfds[i] >= 0)
				killed += process_signal(b->pidfds[i], SIGKILL) == 0;
	}
	return killed;
}

/* One round: SIGKILL to all but the spared. Returns how many it found. */
static unsigned kill_round(int dir, const char *name, const struct cgroup_spared *spared)
{
	struct batch b;
	unsigned found = 0, seen = 0;
	for (;; seen += b.n) {
		/* those that were killed may still be listed: behind them */
		read_members(dir, name, spared, seen, &b);
		if (!b.n)
			return found;
		for (unsigned i = 0; i < b.n; i++)
			b.pidfds[i] = process_pidfd_open(b.pids[i]);
		found += kill_members(dir, name, &b);
		for (unsigned i = 0; i < b.n; i++)
			fd_close(b.pidfds[i]);
	}
}

int cgroup_kill_others(struct cgroup_home *h, const char *name, const struct cgroup_limits *limits,
	const struct cgroup_spared *spared)
{
	/*
	 * One that was being made while its parent was killed is there at the next look, and so are
	 * those that a list which got shorter has hidden.
	 */
	enum { ROUNDS = 6 };
	if (!h->ops->controllers[0])
		return -ENOTSUP;
	int dir = h->dirs[h->ops->processes];
	if (!kill_round(dir, name, spared))
		return 0;
	cgroup_write_u64(dir, name, "pids.max", 1);
	for (int i = 0; i < ROUNDS && kill_round(dir, name, spared); i++)
		;
	return cgroup_write_or(dir, name, "pids.max", limits->processes, "max");
}

/* By pidfd, and looked at again: a number that was read may be another process's by now. */
static void kill_member(const struct cgroup_home *h, const char *name, pid_t pid)
{
	_cleanup_fd_ int pidfd = pid > 1 ? process_pidfd_open(pid) : -1;
	if (pidfd >= 0 && cgroup_holds(h, name, pid))
		process_signal(pidfd, SIGKILL);
}

void cgroup_kill_all(const struct cgroup_home *h, const char *name)
{
	char line[32];
	/* In every hierarchy: on version 1 a process may be in one of them alone. */
	for (unsigned i = 0; h->ops->controllers[i]; i++) {
		int fd = cgroup_open_file(h->dirs[i], name, "cgroup.procs", O_RDONLY);
		_cleanup_file_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
		while (f && fgets(line, sizeof(line), f))
			kill_member(h, name, (pid_t)strtol(line, NULL, 10));
	}
}
