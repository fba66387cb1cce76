#include "sandbox/arrival.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/process.h"
#include "jail/mover.h"
#include "sandbox/sandbox.h"

static void refuse(struct sandbox *b, const char *text)
{
	if (b->arriving >= 0)
		/* it was looked at before: it has the session's id, or is in its group */
		process_signal(b->arriving, SIGKILL);
	fd_close_clear(&b->arriving);
	sandbox_snapshot_failed(b, text);
}

/* It is where it belongs: it may put the files back now, which are the fork's own. */
static void welcome(struct sandbox *b)
{
	_cleanup_buffer_ struct buffer frames = BUFFER_INIT(0);
	size_t start;

	if (wire_begin(&frames, WIRE_JOINED, 0, &start) < 0) {
		refuse(b, "out of memory");
		return;
	}

	wire_end(&frames, start);
	fd_close_clear(&b->arriving);
	for (int i = 0; i < JAIL_NAMESPACES; i++)
		fd_close_clear(&b->namespaces[i]);
	sandbox_take_guest(b, b->arriving_pid);
	if (b->guest && b->state == SANDBOX_STARTING)
		guest_send(b->guest, &frames);
}

static void on_message(struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct sandbox_pool *n = (struct sandbox_pool *)((char *)h -
							 offsetof(struct sandbox_pool, mover));
	struct mover_answer a;

	(void)fds, (void)n_fds;
	if (len != sizeof(a))
		return;

	memcpy(&a, data, sizeof(a));
	a.text[sizeof(a.text) - 1] = '\0';
	struct sandbox *b = sandbox_find(n, a.serial);
	if (!b || b->arriving < 0)
		return;

	if (b->state != SANDBOX_STARTING)
		fd_close_clear(&b->arriving);
	else if (a.err)
		refuse(b, a.text);
	else
		welcome(b);
}

static void on_exit_of(struct helper *h)
{
	helper_close(h);
}

static void on_closed(struct helper *h)
{
	struct sandbox_pool *n = (struct sandbox_pool *)((char *)h -
							 offsetof(struct sandbox_pool, mover));
	if (n->destroying)
		sandbox_pool_finish_when_empty(n);
	else
		log_warning("the mover ended; a new one is started when it is needed");
}

static int start(struct sandbox_pool *n)
{
	char *argv[] = { (char *)"glovebox", (char *)"mover", NULL };
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };

	if (n->destroying || n->mover.running || n->mover.open_polls)
		return 0;

	_cleanup_fd_ int home = cgroup_home_procs(&n->cgroups);
	if (home < 0 && home != -ENOTSUP) /* without control groups it only looks */
		return home;

	n->mover.on_message = on_message;
	n->mover.on_exit = on_exit_of;
	n->mover.on_closed = on_closed;
	return helper_start(&n->mover, n->config.loop, "/proc/self/exe", argv, envp,
		(const int[HELPER_EXTRA]){ home < 0 ? -1 : home, -1 });
}

/*
 * Sends the request to the mover. If the mover dies before it answers, the request is sent again.
 */
static int ask(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	struct mover_request q = { .order = MOVER_MOVE,
		.serial = b->serial,
		.host_id = geteuid() == 0 ? (int64_t)b->host_id : -1 };
	struct cgroup_join_fds join = { 0 };
	int fds[MOVER_FIXED_FDS + CGROUP_CONTROLLERS_MAX] = { b->arriving,
		b->namespaces[JAIL_NS_USER], b->namespaces[JAIL_NS_PID] };
	int r = start(n);

	b->joins.others = true;
	if (r == 0)
		r = cgroup_join_open(&n->cgroups, b->cgroup, &join);
	if (r == 0) {
		memcpy(fds + MOVER_FIXED_FDS, join.fds, join.n * sizeof(int));
		r = helper_send(&n->mover, &q, sizeof(q), fds, MOVER_FIXED_FDS + join.n);
	}

	cgroup_join_fds_close(&join);
	return r;
}

void arrival_expect(struct sandbox_pool *n)
{
	struct mover_request q = { .order = MOVER_PREPARE };
	int r = start(n);
	if (r < 0)
		log_warning("the mover could not be started: %s", strerror(-r));
	else
		helper_send(&n->mover, &q, sizeof(q), NULL, 0);
}

void arrival_begin(struct sandbox *b, int pidfd, pid_t pid)
{
	char text[96];
	fd_close(b->arriving);
	b->arriving = pidfd;
	b->arriving_pid = pid;
	int r = ask(b);
	if (r < 0 && r != -ENOTCONN && r != -EPIPE) { /* a mover that died is started again */
		snprintf(text, sizeof(text), "joining its control groups: %s", strerror(-r));
		refuse(b, text);
	}
}

void arrival_restart(struct sandbox_pool *n)
{
	struct sandbox *b;
	if (n->mover.running || n->mover.open_polls)
		return;
	TAILQ_FOREACH (b, &n->sandboxes, link)
		if (b->arriving >= 0 && b->state == SANDBOX_STARTING)
			ask(b); /* the watchdog has a limit for it */
}

void arrival_destroy(struct sandbox_pool *n)
{
	helper_close(&n->mover);
}
