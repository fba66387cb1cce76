#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/fds.h"
#include "base/process.h"
#include "local/reaper.h"
#include "tap.h"

enum { PATIENCE_MS = 60000 };

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

static bool exists(pid_t pid)
{
	return kill(pid, 0) == 0;
}

/*
 * A child that leaves a grandchild behind, which ends after `ms` (0: never). Returns the
 * grandchild.
 */
static pid_t leave_orphan(long ms)
{
	int ends[2];
	pid_t grandchild = -1;
	if (pipe(ends) < 0)
		return -1;
	pid_t child = fork();
	if (child == 0) {
		grandchild = fork();
		if (grandchild == 0) {
			close(ends[0]);
			close(ends[1]);
			pause_ms(ms ? ms : 600000);
			_exit(0);
		}
		fd_write_full(ends[1], &grandchild, sizeof(grandchild));
		_exit(0);
	}
	fd_read_full(ends[0], &grandchild, sizeof(grandchild));
	close(ends[0]);
	close(ends[1]);
	waitpid(child, NULL, 0);
	return grandchild;
}

static void on_late(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
}

/* Turns the loop until the process is gone for good (a zombie still exists), or patience ends. */
static bool gone_in_time(uv_loop_t *loop, pid_t pid)
{
	uv_timer_t timer;
	bool late = false;
	uv_timer_init(loop, &timer);
	timer.data = &late;
	uv_timer_start(&timer, on_late, PATIENCE_MS, 0);
	while (exists(pid) && !late)
		uv_run(loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(loop, UV_RUN_NOWAIT);
	return !late;
}

static void test_orphans_are_collected(uv_loop_t *loop)
{
	pid_t orphan = leave_orphan(50);
	OK(orphan > 0 && exists(orphan));
	OK(gone_in_time(loop, orphan));
}

struct owner {
	uv_poll_t poll;
	int pidfd, reaped;
	struct process_exit end;
};

static void on_owned(uv_poll_t *poll, int status, int events)
{
	struct owner *o = poll->data;
	(void)status;
	(void)events;
	o->reaped = process_reap(o->pidfd, &o->end);
	uv_poll_stop(poll);
}

/* Whoever waits for a child of his own must get its exit code, although the reaper looks too. */
static void test_owners_come_first(uv_loop_t *loop)
{
	pid_t child = fork();
	if (child == 0) {
		pause_ms(30);
		_exit(7);
	}
	struct owner o = { .pidfd = process_pidfd_open(child) };
	uv_poll_init(loop, &o.poll, o.pidfd);
	o.poll.data = &o;
	uv_poll_start(&o.poll, UV_READABLE, on_owned);
	pause_ms(200); /* the loop is late: the child is dead long before anybody looks */
	OK(gone_in_time(loop, child));
	OK(o.reaped == 1 && !o.end.signaled && o.end.status == 7);
	uv_close((uv_handle_t *)&o.poll, NULL);
	uv_run(loop, UV_RUN_NOWAIT);
	close(o.pidfd);
}

static void test_sweep(void)
{
	pid_t orphan = leave_orphan(0);
	OK(exists(orphan));
	OK(reaper_sweep_all() == 1);
	OK(!exists(orphan));
	OK(reaper_sweep_all() == 0);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	struct reaper r;
	OK(reaper_start(&r, loop) == 0);
	test_orphans_are_collected(loop);
	test_owners_come_first(loop);
	test_orphans_are_collected(loop);
	reaper_stop(&r);
	uv_run(loop, UV_RUN_DEFAULT); /* ends: nothing of the reaper keeps it alive */
	OK(uv_loop_close(loop) == 0);
	test_sweep();
	return tap_done();
}
