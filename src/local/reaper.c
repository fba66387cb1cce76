#include "local/reaper.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { LOOK_MS = 10, CHILDREN_BYTES = 4 << 20, SWEEP_ROUNDS = 100, SWEEP_MS = 10 };

/*
 * Calls back for each child of the main thread, which is the only one that forks. Returns how many
 * times it said true.
 */
static unsigned for_each_child(bool (*visit)(pid_t pid, void *userdata), void *userdata)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	unsigned n = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (fd_read_file(path, CHILDREN_BYTES, &text, NULL) < 0)
		return 0;
	for (char *p = text, *end;; p = end) {
		long pid = strtol(p, &end, 10);
		if (end == p)
			return n;
		n += visit((pid_t)pid, userdata);
	}
}

static bool is_zombie(idtype_t type, pid_t pid)
{
	siginfo_t si = { 0 };
	return waitid(type, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
	       si.si_pid != 0;
}

static void collect(pid_t pid)
{
	waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOHANG | __WALL);
}

/* ---- while the loop runs ---------------------------------------------- */

static bool was_seen(const struct reaper *r, pid_t pid)
{
	for (unsigned i = 0; i < r->n_seen; i++)
		if (r->seen[i] == pid)
			return true;
	return false;
}

struct look {
	const struct reaper *before;
	pid_t fresh[REAPER_SEEN_MAX];
	unsigned n_fresh;
};

/*
 * A zombie that was one at the last look too has no owner; a fresh one may still be waiting for its
 * owner's turn.
 */
static bool look_at(pid_t pid, void *userdata)
{
	struct look *look = userdata;
	if (!is_zombie(P_PID, pid))
		return false;
	if (was_seen(look->before, pid))
		collect(pid);
	else if (look->n_fresh < REAPER_SEEN_MAX)
		look->fresh[look->n_fresh++] = pid;
	return true;
}

static void on_timer(uv_timer_t *timer)
{
	struct reaper *r = timer->data;
	struct look look = { .before = r };
	if (is_zombie(P_ALL, 0)) /* one call instead of a walk over thousands of children */
		for_each_child(look_at, &look);
	r->n_seen = look.n_fresh;
	for (unsigned i = 0; i < look.n_fresh; i++)
		r->seen[i] = look.fresh[i];
	if (look.n_fresh)
		uv_timer_start(&r->timer, on_timer, LOOK_MS, 0);
}

static void on_child(uv_signal_t *signal, int number)
{
	struct reaper *r = signal->data;
	(void)number;
	if (!uv_is_active((uv_handle_t *)&r->timer))
		uv_timer_start(&r->timer, on_timer, LOOK_MS, 0);
}

int reaper_start(struct reaper *r, uv_loop_t *loop)
{
	*r = (struct reaper){ 0 };
	uv_timer_init(loop, &r->timer);
	uv_signal_init(loop, &r->signal);
	r->timer.data = r->signal.data = r;
	uv_unref((uv_handle_t *)&r->timer);
	uv_unref((uv_handle_t *)&r->signal);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	return uv_signal_start(&r->signal, on_child, SIGCHLD);
}

void reaper_stop(struct reaper *r)
{
	uv_close((uv_handle_t *)&r->timer, NULL);
	uv_close((uv_handle_t *)&r->signal, NULL);
}

/* ---- at the end ------------------------------------------------------- */

static bool end_child(pid_t pid, void *userdata)
{
	(void)userdata;
	kill(pid, SIGKILL); /* ours and not yet reaped: the number cannot be another's */
	collect(pid);
	return true;
}

unsigned reaper_sweep_all(void)
{
	unsigned n = for_each_child(end_child, NULL);
	/*
	 * What a killed process leaves behind becomes our child in turn, so look until there is
	 * none.
	 */
	for (unsigned round = 0; round < SWEEP_ROUNDS && for_each_child(end_child, NULL); round++)
		nanosleep(&(struct timespec){ .tv_nsec = SWEEP_MS * 1000000L }, NULL);
	return n;
}
