#include "cli/user_scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "jail/cgroup/cgroup.h"

#define TREE "/sys/fs/cgroup"

/* Set in the restarted program, so that it does not do it again. */
static const char mark[] = "_GLOVEBOX_SCOPE";

enum { TRY_S = 5, ARGS_MAX = 512 };

/* The user manager answers on one of these sockets. */
static bool has_manager(void)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	char path[256];
	if (!dir || !*dir)
		return false;
	snprintf(path, sizeof(path), "%.200s/systemd/private", dir);
	if (access(path, W_OK) == 0)
		return true;
	snprintf(path, sizeof(path), "%.200s/bus", dir);
	return access(path, W_OK) == 0 && access("/run/systemd/system", F_OK) == 0;
}

const char *user_scope_command(void)
{
	struct statfs tree;
	/* Version 1 cannot be delegated to a user. */
	bool possible = geteuid() != 0 && statfs(TREE, &tree) == 0 &&
			(unsigned long)tree.f_type == CGROUP2_SUPER_MAGIC && has_manager();
	return possible ? "systemd-run --user --scope -p Delegate=yes glovebox serve" : NULL;
}

static bool has_groups(void)
{
	struct cgroup_home home;
	struct error why = { 0 };
	cgroup_home_init(&home, TREE, &why);
	cgroup_home_finish(&home);
	return !why.err;
}

static char scope[] = "systemd-run", user[] = "--user", kind[] = "--scope", quiet[] = "--quiet",
	    collect[] = "--collect", about[] = "--description=glovebox", property[] = "-p",
	    delegate[] = "Delegate=yes", end[] = "--", nothing[] = "true";

/*
 * Whether the manager makes a scope: tried with a program that does nothing, because a server that
 * could not start there must start here.
 */
static bool manager_obeys(void)
{
	char *argv[] = { scope, user, kind, quiet, collect, about, property, delegate, end, nothing,
		NULL };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		alarm(TRY_S); /* it stays across exec: a manager that is silent is none */
		execvp(argv[0], argv);
		_exit(127);
	}

	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void user_scope_enter(char **args)
{
	static char self[4096];
	char *argv[ARGS_MAX] = { scope, user, kind, quiet, collect, about, property, delegate, end,
		self };
	size_t n = 10;
	if (getenv(mark) || !user_scope_command() || has_groups() || !manager_obeys())
		return;

	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	for (char **arg = args; *arg && n < ARGS_MAX - 1; arg++)
		argv[n++] = *arg;
	if (len <= 0 || n == ARGS_MAX - 1 || setenv(mark, "1", 1) < 0)
		return;

	log_info(
		"starting again in a scope of the user's systemd manager, which gives control groups: systemd-run --user --scope -p Delegate=yes");
	execvp(argv[0], argv);
	log_warning("%s: %s", argv[0], strerror(errno));
}
