/* The variant this machine has, for real; the other ones against a tree of plain files. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"
#include "jail/cgroup/cgroup.h"
#include "tap.h"

static int join(const struct cgroup_join_fds *t)
{
	for (unsigned i = 0; i < t->n; i++)
		if (write(t->fds[i], "0", 1) != 1)
			return -errno;
	return 0;
}

/* A child in the group that touches `bytes`; its exit code, or 128 + its signal. */
static int eat(struct cgroup_home *h, const char *name, size_t bytes)
{
	struct cgroup_join_fds t;
	int status;
	if (cgroup_join_fds_open(h, name, &t) < 0)
		return -1;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (t.into) { /* the zygote uses CLONE_INTO_CGROUP; the file does as well here */
			int fd = openat(t.fds[0], "cgroup.procs", O_WRONLY);
			if (write(fd, "0", 1) != 1)
				_exit(9);
		} else if (join(&t) < 0) {
			_exit(9);
		}
		char *p = mmap(
			NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (size_t i = 0; i < bytes; i += 4096)
			p[i] = 1;
		_exit(fork() < 0 && errno == EAGAIN ? 7 : 0);
	}
	cgroup_join_fds_close(&t);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The last process of the group may still be on its way out. */
static int removed(struct cgroup_home *h, const char *name)
{
	int r;
	for (int i = 0; (r = cgroup_remove(h, name)) == -EBUSY && i < 20000; i++)
		usleep(1000);
	return r;
}

/* Two processes of the group that wait, both told apart from one. */
static void who_is_there(struct cgroup_home *h)
{
	struct cgroup_join_fds t = { 0 };
	pid_t pids[2];
	int ready[2], status;
	char byte;
	OK(cgroup_make(h, "who", &(struct cgroup_limits){ 0 }) == 0 && pipe(ready) == 0);
	OK(cgroup_holds_only(h, "who", NULL, 0));
	OK(cgroup_join_open(h, "who", &t) == 0);
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			if (join(&t) == 0 && write(ready[1], "x", 1) == 1)
				pause();
			_exit(9);
		}
		OK(read(ready[0], &byte, 1) == 1);
	}
	OK(cgroup_holds_only(h, "who", pids, 2));
	OK(!cgroup_holds_only(h, "who", pids, 1) && !cgroup_holds_only(h, "who", NULL, 0));
	OK(!cgroup_holds_only(h, "nobody", pids, 2)); /* a group that is not there tells nothing */
	for (int i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], &status, 0);
	}
	cgroup_join_fds_close(&t);
	fd_close(ready[0]);
	fd_close(ready[1]);
	OK(removed(h, "who") == 0);
}

/* More than one batch of them; two are spared. */
static void all_but_two_are_killed(struct cgroup_home *h)
{
	enum { MANY = 150, SPARED = 2 };
	struct cgroup_join_fds t = { 0 };
	struct cgroup_limits limits = { .processes = MANY + 10 };
	pid_t pids[MANY];
	int ready[2], status;
	char byte;
	unsigned killed = 0;
	OK(cgroup_make(h, "many", &limits) == 0 && pipe(ready) == 0);
	OK(cgroup_join_open(h, "many", &t) == 0);
	fflush(stdout);
	for (int i = 0; i < MANY; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			if (join(&t) == 0 && write(ready[1], "x", 1) == 1)
				pause();
			_exit(9);
		}
		if (read(ready[0], &byte, 1) != 1)
			break;
	}
	struct cgroup_spared spared = { .pids = pids, .n_pids = SPARED };
	OK(cgroup_kill_others(h, "many", &limits, &spared) == 0);
	for (int i = SPARED; i < MANY; i++)
		killed += waitpid(pids[i], &status, 0) == pids[i] && WIFSIGNALED(status);
	OK(killed == MANY - SPARED);
	OK(cgroup_holds_only(h, "many", pids, SPARED));
	cgroup_kill_all(h, "many");
	for (int i = 0; i < SPARED; i++)
		waitpid(pids[i], &status, 0);
	cgroup_join_fds_close(&t);
	fd_close(ready[0]);
	fd_close(ready[1]);
	OK(removed(h, "many") == 0);
}

/*
 * A group is like a new one after a harmless session, and refused after anything that leaves a
 * trace.
 */
static void used_again(struct cgroup_home *h)
{
	struct cgroup_limits l = { .memory_bytes = 32 << 20, .processes = 1, .cpus = 1 };
	struct cgroup_usage u;
	struct cgroup_join_fds t = { 0 };
	uint64_t rest = UINT64_MAX;
	int ready[2], status;
	char byte;
	if (strcmp(cgroup_home_kind(h), "v1") != 0) {
		OK(cgroup_make(h, "again", &l) == 0 && !cgroup_reset(h, "again", &rest));
		OK(removed(h, "again") == 0);
		return;
	}

	struct cgroup_limits wide = { .memory_bytes = 64 << 20, .processes = 10 };
	OK(cgroup_make(h, "again", &wide) == 0 && eat(h, "again", 20 << 20) == 0);
	cgroup_usage_read(h, "again", &u);
	OK(u.cpu_ns > 0 && u.memory_peak_bytes >= 20 << 20);
	for (int i = 0; !cgroup_reset(h, "again", &rest) && i < 20000; i++)
		usleep(1000); /* its last process is on its way out */
	cgroup_usage_read(h, "again", &u);
	OK(rest <= CGROUP_REST_BYTES && u.cpu_ns == 0 && u.memory_peak_bytes <= CGROUP_REST_BYTES);

	/* a process in one of the hierarchies is enough */
	OK(cgroup_join_open(h, "again", &t) == 0 && pipe(ready) == 0);
	for (unsigned i = 0; i < t.n; i++) {
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			if (write(t.fds[i], "0", 1) == 1 && write(ready[1], "x", 1) == 1)
				pause();
			_exit(9);
		}
		OK(read(ready[0], &byte, 1) == 1 && !cgroup_reset(h, "again", &rest));
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	cgroup_join_fds_close(&t);
	fd_close(ready[0]);
	fd_close(ready[1]);

	OK(cgroup_set_limits(h, "again", &l) == 0 && eat(h, "again", 1 << 20) == 7);
	OK(!cgroup_reset(h, "again", &rest)); /* a fork was refused */
	OK(removed(h, "again") == 0 && !cgroup_reset(h, "again", &rest));

	l.processes = 0;
	OK(cgroup_make(h, "again", &l) == 0 && eat(h, "again", 64 << 20) == 128 + 9);
	OK(!cgroup_reset(h, "again", &rest)); /* a process was killed for want of memory */
	OK(removed(h, "again") == 0);
}

static void real_ones(void)
{
	struct cgroup_home h;
	struct error why = { 0 };
	struct cgroup_usage u;
	cgroup_home_init(&h, "/sys/fs/cgroup", &why);
	printf("# this machine: %s %s\n", cgroup_home_kind(&h), why.text);
	if (!strcmp(cgroup_home_kind(&h), "none")) {
		OK(why.text[0] && why.remedy[0]); /* said, not silently done without */
		return;
	}
	struct cgroup_limits l = { .memory_bytes = 32 << 20, .processes = 1, .cpus = 0.5 };
	OK(cgroup_make(&h, "one", &l) == 0 && cgroup_bound_sockets(&h, "one") == 0);
	OK(eat(&h, "one", 1 << 20) == 7); /* a second process is refused */
	OK(eat(&h, "one", 64 << 20) == 128 + 9);
	cgroup_usage_read(&h, "one", &u);
	OK(u.oom_kills >= 1 && u.cpu_ns > 0);
	l = (struct cgroup_limits){ .memory_bytes = 256 << 20 };
	OK(cgroup_set_limits(&h, "one", &l) == 0);
	OK(eat(&h, "one", 64 << 20) == 0);
	cgroup_usage_read(&h, "one", &u);
	OK(u.memory_peak_bytes == 0 || u.memory_peak_bytes >= 64 << 20);
	OK(removed(&h, "one") == 0);
	used_again(&h);
	who_is_there(&h);
	all_but_two_are_killed(&h);
	OK(cgroup_make(&h, "two", &(struct cgroup_limits){ 0 }) == 0 &&
		eat(&h, "two", 64 << 20) == 0);
	OK(removed(&h, "two") == 0 && removed(&h, "two") == 0);
	cgroup_home_finish(&h);
}

/*
 * A daemon that starts on this machine at the same time may find the group before it is locked, and
 * take it away.
 */
static int make_locked(const char *path)
{
	for (int tries = 0; tries < 100; tries++) {
		mkdir(path, 0755);
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_SH) == 0 && access(path, F_OK) == 0)
			return fd;
		fd_close(fd);
	}
	return -1;
}

/* A daemon that was killed: its groups are gone when the next one comes. */
static void stale_ones(void)
{
	struct cgroup_home h;
	struct error why = { 0 };
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		cgroup_home_init(&h, "/sys/fs/cgroup", &why);
		cgroup_make(&h, "left", &(struct cgroup_limits){ 0 });
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	cgroup_home_init(&h, "/sys/fs/cgroup", &why);
	char left[300] = "/nonexistent";
	if (h.parents[0][0])
		snprintf(left, sizeof(left), "%s/glovebox-%d", h.parents[0], (int)pid);
	OK(access(left, F_OK) < 0);
	/* One whose owner lives, though no process here has its pid: a daemon in a container. */
	bool made = h.parents[0][0];
	int lock = made ? make_locked(left) : -1;
	OK(!made || lock >= 0);
	cgroup_home_finish(&h);
	cgroup_home_init(&h, "/sys/fs/cgroup", &why);
	OK(!made || access(left, F_OK) == 0);
	fd_close(lock);
	cgroup_home_finish(&h);
	cgroup_home_init(&h, "/sys/fs/cgroup", &why);
	OK(access(left, F_OK) < 0);
	cgroup_home_finish(&h);
}

static void nowhere(void)
{
	struct cgroup_home h;
	struct error why = { 0 };
	struct cgroup_join_fds t;
	cgroup_home_init(&h, "/nonexistent", &why);
	OK_STR(cgroup_home_kind(&h), "none");
	OK(why.text[0] && why.remedy[0]);
	OK(cgroup_make(&h, "x", &(struct cgroup_limits){ .memory_bytes = 1 }) == 0);
	OK(cgroup_join_fds_open(&h, "x", &t) == 0 && t.n == 0);
	OK(cgroup_remove(&h, "x") == 0);
	cgroup_home_finish(&h);
}

int main(void)
{
	real_ones();
	stale_ones();
	nowhere();
	return tap_done();
}
