#include "daemon/capacity.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/machine_room.h"
#include "base/text.h"
#include "daemon/config.h"

enum { NUMBER_MAX = 64 };

/* What a session takes when it is idle. */
enum {
	/* its guest's socket and two pipes, its init's socket */
	SESSION_FDS = 4,
	SESSION_PROCESSES = 3, /* init, guest, copy */
	/* measured: 0.4 MB among a thousand; the rest is for the kernel's part */
	SESSION_BYTES = 1 << 20,
	SERVER_FDS = 512,
	SERVER_PROCESSES = 512,
};

/* The first number of a file; 0 without one, UINT64_MAX for "max". */
static uint64_t read_number(const char *path)
{
	_cleanup_free_ char *text = NULL;
	if (fd_read_file(path, NUMBER_MAX, &text, NULL) < 0)
		return 0;
	return text_starts(text, "max") ? UINT64_MAX : strtoull(text, NULL, 10);
}

void capacity_raise_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	uint64_t most = read_number("/proc/sys/fs/nr_open");
	struct rlimit raised = { .rlim_cur = most, .rlim_max = most };
	if (most > limit.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) == 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warning("cannot raise the limit of open files: %s", strerror(errno));
}

/* Lowers it to what one resource carries. */
static void settle(struct config *c, const char *what, uint64_t has, uint64_t taken, uint64_t each,
	const char *remedy)
{
	uint64_t carried = has > taken ? (has - taken) / each : 0;
	if (carried < 1)
		carried = 1;
	if (carried >= c->max_sessions)
		return;
	log_warning(
		"max-sessions is lowered from %llu to %llu: a session needs %llu %s; of %llu, %llu are available for sessions (%s)",
		(unsigned long long)c->max_sessions, (unsigned long long)carried,
		(unsigned long long)each, what, (unsigned long long)has,
		(unsigned long long)(has > taken ? has - taken : 0), remedy);
	c->max_sessions = (unsigned)carried;
}

void capacity_settle(struct config *c)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		/* those beyond are turned away */
		settle(c, "descriptors", limit.rlim_cur, SERVER_FDS + c->max_connections / 4,
			SESSION_FDS, "raise the limit of open files: ulimit -n, LimitNOFILE=");
	settle(c, "processes", machine_processes_limit(), SERVER_PROCESSES, SESSION_PROCESSES,
		"raise kernel.pid_max, kernel.threads-max or the control group's pids.max (TasksMax=)");
	settle(c, "bytes of memory", machine_memory(), 0, SESSION_BYTES,
		"give the machine more memory");
}
