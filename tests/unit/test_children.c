/*
 * Children that are watched by their number: their ends are told, also behind children of others.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/children.h"
#include "tap.h"

enum { MANY = 300, PATIENCE_MS = 5000 };

struct watched {
	struct child child;
	unsigned told;
	struct process_exit end;
};

static uv_loop_t *loop;
static struct children *all;
static unsigned told;

static void on_end(struct child *c, const struct process_exit *end)
{
	struct watched *w = (struct watched *)((char *)c - offsetof(struct watched, child));
	w->told++;
	w->end = *end;
	told++;
}

/* A child that waits to be killed, or ends at once. */
static pid_t child(int code)
{
	pid_t pid = fork();
	if (pid == 0 && code < 0)
		for (;;)
			pause();
	if (pid == 0)
		_exit(code);
	return pid;
}

static void await_told(unsigned n)
{
	for (int ms = 0; told < n && ms < PATIENCE_MS; ms++) {
		uv_run(loop, UV_RUN_NOWAIT);
		usleep(1000);
	}
}

static void await_zombie(pid_t pid)
{
	siginfo_t si;
	waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT);
}

static void test_ends(void)
{
	struct watched a = { .child.on_exit = on_end }, b = a, c = a;
	told = 0;
	pid_t quick = child(7);
	await_zombie(quick);
	OK(child_watch(all, &a.child, quick) == 0); /* it has ended by now */
	OK(child_watch(all, &b.child, child(-1)) == 0);
	OK(child_watch(all, &c.child, quick) == -EEXIST);
	OK(child_watch(all, &c.child, getppid()) == -ECHILD);
	OK(!child_runs(&a.child) && child_runs(&b.child) && !child_runs(&c.child));
	OK(told == 0); /* never from within a call */
	await_told(1);
	OK(a.told == 1 && !a.end.signaled && a.end.status == 7 && b.told == 0);
	int pidfd = child_pidfd(&b.child);
	OK(pidfd >= 0);
	close(pidfd);
	child_signal(&b.child, SIGTERM);
	await_told(2);
	OK(b.told == 1 && b.end.signaled && b.end.status == SIGTERM);
	child_signal(&b.child, SIGKILL); /* nobody's number any more: nothing happens */
	OK(child_pidfd(&b.child) == -ESRCH);
}

static void test_behind_others(void)
{
	struct watched a = { .child.on_exit = on_end };
	told = 0;
	pid_t stranger = child(0); /* older than the next, and reaped by nobody yet */
	await_zombie(stranger);
	OK(child_watch(all, &a.child, child(3)) == 0);
	await_told(1);
	OK(a.told == 1 && a.end.status == 3);
	siginfo_t si = { 0 };
	OK(waitid(P_PID, (id_t)stranger, &si, WEXITED | WNOHANG) == 0 && si.si_pid == stranger);
}

static void test_forgotten(void)
{
	struct watched a = { .child.on_exit = on_end };
	told = 0;
	pid_t pid = child(-1);
	OK(child_watch(all, &a.child, pid) == 0);
	child_forget(&a.child);
	child_forget(&a.child);
	kill(pid, SIGKILL);
	await_zombie(pid);
	uv_run(loop, UV_RUN_NOWAIT);
	OK(a.told == 0);
	OK(waitpid(pid, NULL, 0) == pid); /* it was left to others */
}

static void test_many(void)
{
	static struct watched many[MANY];
	told = 0;
	pid_t stranger = child(0);
	await_zombie(stranger);
	for (int i = 0; i < MANY; i++) {
		many[i].child.on_exit = on_end;
		child_watch(all, &many[i].child, child(i % 100));
	}
	await_told(MANY);
	unsigned right = 0;
	for (int i = 0; i < MANY; i++)
		right += many[i].told == 1 && many[i].end.status == i % 100;
	OK(right == MANY);
	waitpid(stranger, NULL, 0);
}

static void on_destroyed(void *userdata)
{
	*(bool *)userdata = true;
}

int main(void)
{
	bool destroyed = false;
	loop = uv_default_loop();
	OK(children_create(loop, &all) == 0);
	test_ends();
	test_behind_others();
	test_forgotten();
	test_many();
	children_destroy(all, on_destroyed, &destroyed);
	uv_run(loop, UV_RUN_DEFAULT);
	OK(destroyed && uv_loop_close(loop) == 0);
	return tap_done();
}
