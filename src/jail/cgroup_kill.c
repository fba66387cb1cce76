/* Ending the processes of a group. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "jail/cgroup_internal.h"

/* One round: SIGKILL to all but the spared. Returns how many it found. */
static unsigned kill_round(int dir, const char *name, const pid_t *spare, size_t n)
{
	char line[32];
	unsigned found = 0;
	int fd = cgroup_open_file(dir, name, "cgroup.procs", O_RDONLY);
	_cleanup_file_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	while (f && fgets(line, sizeof(line), f)) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);
		bool keep = pid <= 1;
		for (size_t i = 0; i < n; i++)
			keep |= spare[i] == pid;
		found += !keep && kill(pid, SIGKILL) == 0;
	}
	return found;
}

int cgroup_kill_others(struct cgroup_home *h, const char *name, const struct cgroup_limits *limits, const pid_t *spare, size_t n)
{
	enum { ROUNDS = 3 }; /* one that was being made while its parent was killed is there at the next look */
	if (!h->ops->controllers[0])
		return -ENOTSUP;
	int dir = h->dirs[h->ops->processes];
	if (!kill_round(dir, name, spare, n))
		return 0;
	cgroup_write_u64(dir, name, "pids.max", 1);
	for (int i = 0; i < ROUNDS && kill_round(dir, name, spare, n); i++)
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
