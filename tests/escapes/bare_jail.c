/*
 * Runs a program in a real jail, with or without the system call filter: what holds when one layer
 * of the wall is taken away.
 *
 *   bare_jail filter|none PROGRAM ARGUMENT…
 *
 * The jailer, the jail and the way into it are the product's own; only the zygote's last step,
 * loading the filter, is optional here.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/real_jail.h"
#include "jail/filter.h"

enum { TEST_HOST_ID = JAIL_HOST_ID + 64000, DISK_BYTES = 16 << 20, FAILED = 99 };

static void __attribute__((noreturn)) inside(const struct real_jail *j, int filtered, char **argv)
{
	const char *step = "";
	struct filter f = { 0 };
	int r = filtered ? filter_build(JAIL_EXEC_SYSTEM, JAIL_NET_NONE, &f) : 0;
	if (r == 0)
		r = jail_enter(j->init, JAIL_EXEC_SYSTEM, JAIL_NET_NONE, &step);
	if (r == 0 && filtered) {
		step = "loading the filter";
		r = filter_load(&f);
	}
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", step, strerror(-r));
		_exit(FAILED);
	}
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", (char *)"HOME=/workspace",
		(char *)"LANG=C.UTF-8", NULL };
	execve(argv[0], argv, envp);
	perror(argv[0]);
	_exit(FAILED);
}

int main(int argc, char **argv)
{
	struct jail_answer a = { 0 };
	struct jail_request q = { .serial = 1, .host_id = TEST_HOST_ID, .disk_bytes = DISK_BYTES };
	struct real_jail j = { -1, -1, -1, 0 };
	int status = 0;
	if (argc < 3)
		return FAILED;
	int jailer = real_jailer_start(&a);
	if (jailer < 0 || real_jail_make(jailer, &q, &j, &a) < 0 || jail_aim_children(j.init) < 0) {
		fprintf(stderr, "no jail: %s\n", a.text);
		return FAILED;
	}
	pid_t pid = fork();
	if (pid == 0)
		inside(&j, !strcmp(argv[1], "filter"), argv + 2);
	waitpid(pid, &status, 0);
	fd_close(j.control); /* ends the init and all that is left in the jail */
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
