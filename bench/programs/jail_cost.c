/*
 * What the jail adds to the start of a session: a small process is cloned and waited for, plainly
 * and into a jail with all its walls (namespaces, mounts, rlimits, privileges, Landlock, filter),
 * in turn. Prints two numbers of microseconds a line: plain, jailed; then "made N": what making the
 * jail itself takes, which happens ahead of need.
 *
 * The same steps as the zygote's (src/zygote/zygote.c), with a process that has next to no memory,
 * so that the difference is the jail's.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/process.h"
#include "jail/filter.h"
#include "jail/jail.h"
#include "unit/real_jail.h"

static struct filter filter;

static int start_jailer(void)
{
	struct jail_answer hello = { 0 };
	int jailer = real_jailer_start(&hello);
	if (jailer < 0) {
		fprintf(stderr, "no jailer: %s\n", hello.text);
		exit(1);
	}
	return jailer;
}

static struct real_jail make(int jailer, uint32_t serial)
{
	struct jail_request q = {
		.serial = serial, .host_id = JAIL_HOST_ID + serial, .disk_bytes = 1 << 20
	};
	struct jail_answer a = { 0 };
	struct real_jail j;
	if (real_jail_make(jailer, &q, &j, &a)) {
		fprintf(stderr, "no jail: %s\n", a.text);
		exit(1);
	}
	return j;
}

static double us_since(uint64_t start)
{
	return (double)(clock_now_ns() - start) / 1e3;
}

static int wait_for(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static double plain(void)
{
	uint64_t start = clock_now_ns();
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	wait_for(pid);
	return us_since(start);
}

/*
 * Aiming at a pid namespace cannot be undone by the next aim of a process that has children there;
 * so each in a process of its own, as far as it is not measured.
 */
static double jailed(const struct real_jail *j)
{
	int report[2];
	double took = -1;
	if (pipe(report) < 0)
		exit(1);
	pid_t helper = fork();
	if (helper == 0) {
		const char *step = "";
		uint64_t start = clock_now_ns();
		pid_t pid = jail_aim_children(j->init) < 0 ? -1 : fork();
		if (pid == 0)
			_exit(jail_enter(j->init, JAIL_EXEC_SYSTEM, JAIL_NET_NONE, &step) < 0 ||
				filter_load(&filter) < 0);
		took = pid > 0 && wait_for(pid) == 0 ? us_since(start) : -1;
		_exit(write(report[1], &took, sizeof(took)) != sizeof(took));
	}
	close(report[1]);
	if (read(report[0], &took, sizeof(took)) != sizeof(took))
		took = -1;
	close(report[0]);
	wait_for(helper);
	return took;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 200, jailer = start_jailer();
	double making = 0;
	if (filter_build(JAIL_EXEC_SYSTEM, JAIL_NET_NONE, &filter) < 0)
		return 1;
	for (int i = 0; i < n; i++) {
		uint64_t start = clock_now_ns();
		struct real_jail j = make(jailer, (uint32_t)i + 1);
		making += us_since(start);
		printf("%.1f %.1f\n", plain(), jailed(&j));
		fd_close(j.control);
		fd_close(j.workspace);
		process_signal(j.init, SIGKILL);
		process_kill_wait(j.init);
		fd_close(j.init);
	}
	printf("made %.1f\n", making / n);
	return 0;
}
