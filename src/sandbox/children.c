#include "sandbox/children.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { BUCKETS = 4096, ENDED_MAX = 256 };

LIST_HEAD(bucket, child);

struct children {
	uv_signal_t signal;
	uv_timer_t again;
	unsigned open_handles;
	uint64_t walked_ms; /* by the loop, when all were last asked */
	void (*done)(void *);
	void *done_userdata;
	struct bucket buckets[BUCKETS];
};

static struct bucket *bucket_of(struct children *all, pid_t pid)
{
	return &all->buckets[(unsigned)pid % BUCKETS];
}

static struct child *find(struct children *all, pid_t pid)
{
	struct child *c;
	LIST_FOREACH(c, bucket_of(all, pid), link)
	if (c->pid == pid)
		return c;
	return NULL;
}

/* A child that has ended, left as it is: its number, 0 when there is none, or a negative errno. */
static pid_t peek(idtype_t type, pid_t pid)
{
	siginfo_t si = { 0 };
	if (waitid(type, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return -errno;
	return si.si_pid;
}

/* ---- those that have ended ------------------------------------------------------------- */

static void reap(struct child *c)
{
	siginfo_t si = { 0 };

	/* one that was reaped by another was killed for all that is known */
	struct process_exit end = { .signaled = true, .status = SIGKILL };
	if (waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | __WALL) == 0 && !si.si_pid)
		return; /* it has not ended */
	if (si.si_pid)
		end = (struct process_exit){ .signaled = si.si_code != CLD_EXITED,
			.status = si.si_status };
	child_forget(c);
	c->on_exit(c, &end);
}

/* Asks each watched child. True when there may be more than were found. */
static bool walk(struct children *all)
{
	pid_t ended[ENDED_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < BUCKETS; i++) {
		struct child *c;
		LIST_FOREACH(c, &all->buckets[i], link)
		if (n < ENDED_MAX && peek(P_PID, c->pid))
			ended[n++] = c->pid;
	}

	for (unsigned i = 0; i < n; i++) {
		struct child *c = find(all, ended[i]); /* a callback may have forgotten it */
		if (c)
			reap(c);
	}
	return n == ENDED_MAX;
}

static void look(struct children *all);

static void on_again(uv_timer_t *t)
{
	look(t->data);
}

static void look(struct children *all)
{
	pid_t pid;
	struct child *c;

	while ((pid = peek(P_ALL, 0)) > 0 && (c = find(all, pid)))
		reap(c);
	if (pid <= 0)
		return;

	/* Somebody else's hides those behind it. Its owner reaps it soon. */
	uint64_t now = uv_now(all->signal.loop), due = all->walked_ms + CHILDREN_WALK_MS;
	if (now >= due) {
		all->walked_ms = now;
		if (walk(all))
			all->walked_ms = 0;
		due = now + CHILDREN_WALK_MS;
	}

	uv_timer_start(&all->again, on_again, due > now ? due - now : 1, 0);
}

static void on_signal(uv_signal_t *s, int number)
{
	(void)number;
	look(s->data);
}

/* ---- the list --------------------------------------------------------------------------- */

int children_create(uv_loop_t *loop, struct children **ret)
{
	struct children *all = calloc(1, sizeof(*all));
	if (!all)
		return -ENOMEM;

	int r = uv_signal_init(loop, &all->signal);
	if (r < 0) {
		free(all);
		return r;
	}

	uv_timer_init(loop, &all->again);
	all->signal.data = all->again.data = all;
	uv_unref((uv_handle_t *)&all->again);
	uv_signal_start(&all->signal, on_signal, SIGCHLD);
	*ret = all;
	return 0;
}

static void on_closed(uv_handle_t *h)
{
	struct children *all = h->data;
	if (--all->open_handles)
		return;
	void (*done)(void *) = all->done;
	void *userdata = all->done_userdata;
	free(all);
	done(userdata);
}

void children_destroy(struct children *all, void (*done)(void *), void *userdata)
{
	all->done = done;
	all->done_userdata = userdata;
	all->open_handles = 2;
	uv_close((uv_handle_t *)&all->signal, on_closed);
	uv_close((uv_handle_t *)&all->again, on_closed);
}

int child_watch(struct children *all, struct child *c, pid_t pid)
{
	if (find(all, pid))
		return -EEXIST;

	pid_t ended = peek(P_PID, pid);
	if (ended < 0)
		return ended;

	c->of = all;
	c->pid = pid;
	LIST_INSERT_HEAD(bucket_of(all, pid), c, link);
	if (ended && !uv_is_active((uv_handle_t *)&all->again))
		uv_timer_start(&all->again, on_again, 0, 0);
	return 0;
}

void child_forget(struct child *c)
{
	if (!c->of)
		return;
	LIST_REMOVE(c, link);
	c->of = NULL;
}

void child_signal(const struct child *c, int sig)
{
	if (c->of)
		kill(c->pid, sig); /* ours and not reaped: the number cannot be another's */
}

void child_signal_group(const struct child *c, int sig)
{
	if (c->of)
		kill(-c->pid, sig);
}

bool child_runs(const struct child *c)
{
	return c->of && peek(P_PID, c->pid) == 0;
}

int child_pidfd(const struct child *c)
{
	return c->of ? process_pidfd_open(c->pid) : -ESRCH;
}
