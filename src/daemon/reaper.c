#include "daemon/reaper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { OWNER_MS = 1000, CHILDREN_MAX = 4096, SWEEP_ROUNDS = 100, SWEEP_MS = 10 };

/* Calls back for each child of the main thread, which is the only one that forks. */
static unsigned for_each_child(bool (*visit)(pid_t pid))
{
	char path[64];
	static char text[CHILDREN_MAX * 8];
	unsigned n = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t len = read(fd, text, sizeof(text) - 1);
	if (len <= 0)
		return 0;
	text[len] = '\0';
	for (char *p = text, *end; *p; p = end) {
		long pid = strtol(p, &end, 10);
		if (end == p)
			break;
		n += visit((pid_t)pid);
	}
	return n;
}

/* Reaps it when it is a zombie; true then. */
static bool collect(pid_t pid)
{
	siginfo_t si = { 0 };
	return waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | __WALL) == 0 && si.si_pid == pid;
}

static bool end_child(pid_t pid)
{
	kill(pid, SIGKILL); /* ours and not yet reaped: the number cannot be another's */
	return true;
}

static void on_timer(uv_timer_t *timer)
{
	(void)timer;
	for_each_child(collect);
}

static void on_child(uv_signal_t *signal, int number)
{
	struct reaper *r = signal->data;
	(void)number;
	if (!uv_is_active((uv_handle_t *)&r->timer))
		uv_timer_start(&r->timer, on_timer, OWNER_MS, 0);
}

int reaper_start(struct reaper *r, uv_loop_t *loop)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	uv_timer_init(loop, &r->timer);
	uv_signal_init(loop, &r->signal);
	r->signal.data = r;
	uv_unref((uv_handle_t *)&r->timer);
	uv_unref((uv_handle_t *)&r->signal);
	return uv_signal_start(&r->signal, on_child, SIGCHLD);
}

void reaper_stop(struct reaper *r)
{
	uv_close((uv_handle_t *)&r->timer, NULL);
	uv_close((uv_handle_t *)&r->signal, NULL);
}

unsigned reaper_sweep_all(void)
{
	unsigned n = for_each_child(end_child);
	/* What a killed process leaves behind becomes our child in turn, so look until there is none. */
	for (unsigned round = 0; round < SWEEP_ROUNDS; round++) {
		for_each_child(collect);
		if (!for_each_child(end_child))
			break;
		nanosleep(&(struct timespec){ .tv_nsec = SWEEP_MS * 1000000L }, NULL);
	}
	return n;
}
