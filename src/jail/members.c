#include "jail/members.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/process.h"

enum { FILE_MAX = 4096, ROUNDS = 50, LEVELS_MAX = 40 };

/* A file of a process, with a NUL at its end. The directory is that of a process or a /proc. */
static int read_in(int dir, const char *path, char text[FILE_MAX])
{
	_cleanup_fd_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	size_t len = 0;
	while (len < FILE_MAX - 1) {
		ssize_t n = read(fd, text + len, FILE_MAX - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}

	text[len] = '\0';
	return len ? 0 : -ESRCH;
}

/*
 * The number behind a key that begins with a newline and ends with a colon; 0 when there is none.
 */
static uint64_t number_in(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/*
 * The numbers of a process in our namespace and those below it, from a status file; returns how
 * many.
 */
static unsigned read_numbers(const char *status, pid_t ret[LEVELS_MAX])
{
	static const char key[] = "\nNSpid:";
	const char *at = strstr(status, key);
	unsigned n = 0;
	if (!at)
		return 0;
	char *end;
	for (at += strlen(key); n < LEVELS_MAX && *at != '\n'; at = end) {
		ret[n] = (pid_t)strtol(at, &end, 10);
		if (end == at)
			break;
		n++;
	}
	return n;
}

static int parse_stat(const char *text, struct member *ret)
{
	unsigned long t[4];
	unsigned long long start;
	int leader;
	char state;

	/* a name may hold anything */
	const char *after = strrchr(text, ')');
	if (!after ||
		sscanf(after + 1,
			" %c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu %*d %*d %*d %*d %llu",
			&state, &leader, &t[0], &t[1], &t[2], &t[3], &start) != 7)
		return -EIO;
	uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	ret->state = state;
	ret->leader = leader;
	ret->cpu_ns = (t[0] + t[1] + t[2] + t[3]) * tick_ns;
	ret->start = start;
	return 0;
}

/* *ret_levels: how many pid namespaces it is in, from that of this /proc on. */
static int read_member(int dir, struct member *ret, unsigned *ret_levels)
{
	char text[FILE_MAX];
	pid_t numbers[LEVELS_MAX];
	int r = read_in(dir, "stat", text);

	if (r == 0)
		r = parse_stat(text, ret);
	if (r == 0)
		r = read_in(dir, "status", text);
	if (r < 0)
		return r;
	*ret_levels = read_numbers(text, numbers);
	ret->shmem = number_in(text, "\nRssShmem:") * 1024;
	ret->bytes = (number_in(text, "\nRssAnon:") + number_in(text, "\nVmSwap:")) * 1024 +
		     ret->shmem;
	return 0;
}

static int open_process(int proc, pid_t pid)
{
	char name[16];
	snprintf(name, sizeof(name), "%d", (int)pid);
	int fd = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int append(struct member **all, size_t *n, size_t *room, const struct member *m)
{
	if (*n == *room) {
		size_t more = *room ? 2 * *room : 16;
		struct member *grown = realloc(*all, more * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		*all = grown;
		*room = more;
	}
	(*all)[(*n)++] = *m;
	return 0;
}

static DIR *open_list(int proc, const char *path)
{
	int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !d)
		fd_close(fd);
	return d;
}

int members_read(int proc, struct member **ret, size_t *ret_n, uint64_t *ret_init_cpu_ns)
{
	DIR *d = open_list(proc, ".");
	struct member *all = NULL;
	size_t n = 0, room = 0;
	int r = d ? 0 : -errno;
	for (struct dirent *e = d ? readdir(d) : NULL; e && n < MEMBERS_MAX && r == 0;
		e = readdir(d)) {
		struct member m = { .pid = (pid_t)strtol(e->d_name, NULL, 10) };
		_cleanup_fd_ int dir = m.pid > 0 ? open_process(proc, m.pid) : -1;
		unsigned levels;
		if (dir < 0 || read_member(dir, &m, &levels) < 0 || levels != 1)
			continue;
		if (m.pid == 1)
			*ret_init_cpu_ns += m.cpu_ns;
		else
			r = append(&all, &n, &room, &m);
	}

	if (d)
		closedir(d);
	if (r < 0) {
		free(all);
		return r;
	}

	*ret = all;
	*ret_n = n;
	return 0;
}

static int open_host(pid_t pid)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int members_read_host(pid_t pid, struct member *ret)
{
	_cleanup_fd_ int dir = open_host(pid);
	unsigned levels;
	struct member m = { .pid = pid };
	if (dir < 0 || read_member(dir, &m, &levels) < 0)
		return -ESRCH;
	*ret = m;
	return 0;
}

uint64_t members_share(int proc, const struct member *m)
{
	char text[FILE_MAX];
	_cleanup_fd_ int dir = open_process(proc, m->pid);
	if (dir < 0 || read_in(dir, "smaps_rollup", text) < 0 || !strstr(text, "\nPss_Anon:"))
		return m->bytes;
	return (number_in(text, "\nPss_Anon:") + number_in(text, "\nPss_Shmem:") +
		       number_in(text, "\nSwapPss:")) *
		       1024 +
	       m->unnamed;
}

static bool is_new(struct members_files *counted, uint64_t inode)
{
	for (size_t i = 0; i < counted->n; i++)
		if (counted->inodes[i] == inode)
			return false;
	if (counted->n < MEMBERS_FILES_MAX)
		counted->inodes[counted->n++] = inode;
	return true;
}

void members_add_unnamed(int proc, struct member *m, struct members_files *counted)
{
	static const char unnamed[] = "/memfd:";
	char path[32], target[sizeof(unnamed) - 1];
	uint64_t bytes = 0;
	struct stat st;

	snprintf(path, sizeof(path), "%d/fd", (int)m->pid);
	DIR *d = open_list(proc, path);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		if (readlinkat(dirfd(d), e->d_name, target, sizeof(target)) == sizeof(target) &&
			!memcmp(target, unnamed, sizeof(target)) &&
			fstatat(dirfd(d), e->d_name, &st, 0) == 0 && is_new(counted, st.st_ino))
			bytes += (uint64_t)st.st_blocks * 512;
	if (d)
		closedir(d);
	m->unnamed = bytes > m->shmem ? bytes - m->shmem : 0;
	m->bytes += m->unnamed;
}

pid_t members_number(pid_t pid, unsigned depth)
{
	char text[FILE_MAX];
	pid_t numbers[LEVELS_MAX];
	_cleanup_fd_ int dir = open_host(pid);
	if (dir < 0 || read_in(dir, "status", text) < 0)
		return 0;
	return read_numbers(text, numbers) > depth ? numbers[depth] : 0;
}

bool members_have(int proc, unsigned depth, pid_t pid)
{
	struct member theirs, ours = { 0 };
	unsigned levels;
	pid_t number = members_number(pid, depth);
	_cleanup_fd_ int dir = number ? open_process(proc, number) : -1;
	return dir >= 0 && read_member(dir, &ours, &levels) == 0 &&
	       members_read_host(pid, &theirs) == 0 && theirs.start == ours.start;
}

int members_signal(int proc, pid_t member, int sig)
{
	/* the directory of a process is a handle of it, as a pidfd is */
	_cleanup_fd_ int dir = open_process(proc, member);
	return dir < 0 ? dir : process_signal(dir, sig);
}

/* ---- killing ------------------------------------------------------------------------ */

static bool is_among(pid_t pid, const pid_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

static bool is_spared(const struct member *m, const struct members_spared *s)
{
	return s && (is_among(m->pid, s->pids, s->n_pids) ||
			    is_among(m->leader, s->leaders, s->n_leaders));
}

static bool knows(const struct member *all, size_t n, const struct member *m)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].pid == m->pid && all[i].start == m->start)
			return true;
	return false;
}

/* Sends a signal to those that the last round has not seen; returns how many these were. */
static size_t signal_round(int proc, const struct members_spared *spared, int sig,
	struct member **seen, size_t *n_seen)
{
	struct member *all = NULL;
	size_t n = 0, sent = 0;
	uint64_t unused = 0;

	if (members_read(proc, &all, &n, &unused) < 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		bool ended = all[i].state == 'Z' || all[i].state == 'X';
		if (ended || is_spared(&all[i], spared) || knows(*seen, *n_seen, &all[i]))
			continue;
		sent += members_signal(proc, all[i].pid, sig) == 0;
	}

	free(*seen);
	*seen = all;
	*n_seen = n;
	return sent;
}

/* ---- stopping: with few system calls, because processes that run leave us little time ---- */

struct numbers {
	pid_t pids[MEMBERS_MAX];
	size_t n;
};

static bool may_stop(int dir, pid_t pid, const struct members_spared *spared, bool nested)
{
	char text[FILE_MAX];
	pid_t numbers[LEVELS_MAX];
	struct member m = { .pid = pid };
	if (spared && is_among(pid, spared->pids, spared->n_pids))
		return false;
	if (spared && spared->n_leaders &&
		(read_in(dir, "stat", text) < 0 || parse_stat(text, &m) < 0 ||
			is_spared(&m, spared)))
		return false;
	return !nested || (read_in(dir, "status", text) == 0 && read_numbers(text, numbers) == 1);
}

/* Stops those that it has not seen yet; returns how many these were. */
static size_t stop_round(
	int proc, const struct members_spared *spared, bool nested, struct numbers *seen)
{
	DIR *d = open_list(proc, ".");
	size_t sent = 0, before = seen->n;
	for (struct dirent *e = d ? readdir(d) : NULL; e && seen->n < MEMBERS_MAX; e = readdir(d)) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid <= 1 || is_among(pid, seen->pids, before))
			continue;
		_cleanup_fd_ int dir = open_process(proc, pid);
		seen->pids[seen->n++] = pid;
		if (dir >= 0 && may_stop(dir, pid, spared, nested))
			sent += process_signal(dir, SIGSTOP) == 0;
	}

	if (d)
		closedir(d);
	return sent;
}

static void stop_all(int proc, const struct members_spared *spared, bool nested)
{
	struct numbers *seen = calloc(1, sizeof(*seen));
	for (int i = 0; seen && i < ROUNDS && stop_round(proc, spared, nested, seen); i++)
		;
	free(seen);
}

static void signal_all(int proc, const struct members_spared *spared, int sig)
{
	struct member *seen = NULL;
	size_t n_seen = 0;
	for (int i = 0; i < ROUNDS && signal_round(proc, spared, sig, &seen, &n_seen); i++)
		;
	free(seen);
}

void members_kill_others(int proc, const struct members_spared *spared, bool nested)
{
	stop_all(proc, spared, nested);
	signal_all(proc, spared, SIGKILL);
}
