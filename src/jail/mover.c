#include "jail/mover.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/process.h"
#include "base/text.h"
#include "jail/cgroup/cgroup.h"
#include "jail/filter_own.h"

enum { KEEP_MS = 4, RECENT_S = 2 };
enum { STATUS_MAX = 16384, FDS_MAX = MOVER_FIXED_FDS + CGROUP_CONTROLLERS_MAX };

static bool same_namespace(pid_t pid, const char *kind, int ns)
{
	char path[64];
	struct stat theirs, wanted;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	return stat(path, &theirs) == 0 && fstat(ns, &wanted) == 0 &&
	       theirs.st_ino == wanted.st_ino && theirs.st_dev == wanted.st_dev;
}

/* The text behind "KEY:" and white space in a status file; NULL when there is none. */
static const char *value_of(const char *status, const char *key)
{
	size_t len = strlen(key);
	for (const char *line = status; line && *line;
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (!strncmp(line, key, len) && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " \t");
	return NULL;
}

/* Whether the line has these numbers, the first `n` of it. */
static bool numbers_are(
	const char *status, const char *key, int base, unsigned n, unsigned long long wanted)
{
	const char *at = value_of(status, key);
	for (unsigned i = 0; at && i < n; i++) {
		char *end;
		if (strtoull(at, &end, base) != wanted || end == at)
			return false;
		at = end;
	}
	return at != NULL;
}

/* What keeps the process from being a guest of the jail; NULL when nothing does. */
static const char *objection(pid_t pid, const int *fds, int64_t host_id)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	char path[64];
	_cleanup_free_ char *status = NULL;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (fd_read_file(path, STATUS_MAX, &status, NULL) < 0)
		return "the process is gone";
	if (!same_namespace(pid, "user", fds[MOVER_USER_NS]) ||
		!same_namespace(pid, "pid", fds[MOVER_PID_NS]))
		return "the process is not in the fork's jail";
	if (host_id >= 0 && !numbers_are(status, "Uid", 10, 4, (unsigned long long)host_id))
		return "the process has another user id";
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		if (!numbers_are(status, sets[i], 16, 1, 0))
			return "the process has capabilities";
	if (!numbers_are(status, "NoNewPrivs", 10, 1, 1) ||
		!numbers_are(status, "Seccomp", 10, 1, 2))
		return "the process has no system call filter";
	return NULL;
}

static int write_pid(int fd, pid_t pid)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%d", (int)pid);
	return write(fd, text, (size_t)len) == len ? 0 : -errno;
}

static int move(const struct mover_request *q, const int *fds, size_t n, const char **ret_text)
{
	pid_t pid = process_pid(fds[MOVER_PROCESS]);
	*ret_text = pid > 1 ? objection(pid, fds, q->host_id) : "the process is gone";
	if (*ret_text)
		return -EPERM;
	*ret_text = "moving it into the fork's control groups";
	for (size_t i = MOVER_FIXED_FDS; i < n; i++) {
		int r = write_pid(fds[i], pid);
		if (r < 0)
			return r;
	}
	return 0;
}

static void serve(const struct mover_request *q, const int *fds, size_t n)
{
	struct mover_answer a = { .serial = q->serial };
	const char *text = "reading the request";
	if (q->order == MOVER_PREPARE) {
		/* the wait for the grace period is all that counts */
		write_pid(MOVER_HOME_FD, getpid());
		return;
	}
	a.err = n < MOVER_FIXED_FDS ? -EINVAL : move(q, fds, n, &text);
	if (a.err)
		snprintf(a.text, sizeof(a.text), "%s", text);
	fd_send(MOVER_SOCKET_FD, &a, sizeof(a), NULL, 0);
}

/*
 * Whether an order is there. While the last one is recent the next wait for a grace period is kept
 * off: one move after another does not wait.
 */
static void await_order(bool has_home, uint64_t recent_until_ns)
{
	struct pollfd p = { .fd = MOVER_SOCKET_FD, .events = POLLIN };
	while (poll(&p, 1, has_home && clock_now_ns() < recent_until_ns ? KEEP_MS : -1) == 0)
		write_pid(MOVER_HOME_FD, getpid());
}

int mover_main(void)
{
	uint64_t recent_until_ns = 0;
	struct mover_request q;
	int fds[FDS_MAX];
	size_t n = 0;

	prctl(PR_SET_NAME, "glovebox-mover");
	prctl(PR_SET_DUMPABLE, 0);
	if (filter_enter_own(FILTER_MOVER) < 0)
		return 1;
	/* without control groups there is none, and nothing to wait for */
	bool has_home = write_pid(MOVER_HOME_FD, getpid()) != -EBADF;
	for (;;) {
		await_order(has_home, recent_until_ns);
		if (fd_recv(MOVER_SOCKET_FD, &q, sizeof(q), fds, FDS_MAX, &n) != (ssize_t)sizeof(q))
			return 0;
		serve(&q, fds, n);
		recent_until_ns = clock_now_ns() + RECENT_S * NSEC_PER_SEC;
		for (size_t i = 0; i < n; i++)
			fd_close(fds[i]);
	}
}
