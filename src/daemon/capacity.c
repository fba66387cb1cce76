#include "daemon/capacity.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/config.h"

enum { NUMBER_MAX = 64, MEMINFO_MAX = 16 * 1024, CGROUP_MAX = 4096 };

/* What a session takes when it is idle. */
enum {
	SESSION_FDS = 9,         /* three of its jail, four of its guest, two of a parked copy */
	SESSION_PROCESSES = 3,   /* init, guest, copy */
	SESSION_BYTES = 1 << 20, /* measured: 0.4 MB among a thousand; the rest is for the kernel's part */
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

/* The limit of processes of the control group we are in; UINT64_MAX without one. */
static uint64_t group_processes(void)
{
	_cleanup_free_ char *text = NULL;
	uint64_t least = UINT64_MAX;
	if (fd_read_file("/proc/self/cgroup", CGROUP_MAX, &text, NULL) < 0)
		return least;
	for (char *line = text, *next; line && *line; line = next) {
		char path[512];
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		const char *v2 = text_starts(line, "0::") ? line + strlen("0::") : NULL, *v1 = strstr(line, ":pids:");
		if (!v2 && !v1)
			continue;
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s%s/pids.max", v2 ? "" : "/pids", v2 ? v2 : v1 + strlen(":pids:"));
		uint64_t n = read_number(path);
		least = n && n < least ? n : least;
	}
	return least;
}

static uint64_t all_processes(void)
{
	uint64_t least = group_processes();
	const char *const files[] = { "/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max" };
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		uint64_t n = read_number(files[i]);
		least = n && n < least ? n : least;
	}
	return least;
}

static uint64_t all_memory(void)
{
	_cleanup_free_ char *text = NULL;
	const char *at = fd_read_file("/proc/meminfo", MEMINFO_MAX, &text, NULL) < 0 ? NULL : strstr(text, "MemTotal:");
	return at ? strtoull(at + strlen("MemTotal:"), NULL, 10) * 1024 : UINT64_MAX;
}

/* Lowers it to what one resource carries. */
static void settle(struct config *c, const char *what, uint64_t has, uint64_t taken, uint64_t each, const char *remedy)
{
	uint64_t carried = has > taken ? (has - taken) / each : 0;
	if (carried < 1)
		carried = 1;
	if (carried >= c->max_sessions)
		return;
	log_warning("max-sessions is lowered from %llu to %llu: a session takes %llu %s, and of %llu there are %llu for sessions (%s)",
		(unsigned long long)c->max_sessions, (unsigned long long)carried, (unsigned long long)each, what, (unsigned long long)has,
		(unsigned long long)(has > taken ? has - taken : 0), remedy);
	c->max_sessions = (unsigned)carried;
}

void capacity_settle(struct config *c)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		settle(c, "descriptors", limit.rlim_cur, SERVER_FDS + c->max_connections / 4, SESSION_FDS, /* those beyond are turned away */
			"raise the limit of open files: ulimit -n, LimitNOFILE=");
	settle(c, "processes", all_processes(), SERVER_PROCESSES, SESSION_PROCESSES,
		"raise kernel.pid_max, kernel.threads-max or the control group's pids.max (TasksMax=)");
	settle(c, "bytes of memory", all_memory(), 0, SESSION_BYTES, "give the machine more memory");
}
