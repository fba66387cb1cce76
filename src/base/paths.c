#include "base/paths.h"

#include <errno.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/interpreter.h"
#include "base/text.h"

/* Relative to this program: in a build tree, and installed. */
static const char *const bench_places[] = { "../bench/run", "../share/glovebox/bench/run", NULL };

/* The first of them that is there; -ENOENT, with the last one's path in the error, when none is. */
static int find(const char *const *places, const char *what, struct error *e, char **ret_path)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return error_set_errno(e, -errno, "/proc/self/exe");
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	*slash = '\0';
	const char *last = "";
	for (; *places; places++) {
		_cleanup_free_ char *path = NULL;
		if (asprintf(&path, "%s/%s", self, *places) < 0)
			return error_set_errno(e, -ENOMEM, "looking for %s", what);
		if (access(path, R_OK) == 0) {
			*ret_path = TAKE_PTR(path);
			return 0;
		}
		last = *places;
	}

	error_set(e, -ENOENT, "%s missing: there is no file %s/%s", what, self, last);
	return error_remedy(e, "build it with `make`, or install all of it with `make install`");
}

int paths_guest(struct error *e, char **ret_path)
{
	/*
	 * Packages have a module for each version of Python that they know; a build of one's own
	 * has one.
	 */
	char named[128], what[128];
	snprintf(named, sizeof(named), "../lib/glovebox/glovebox-guest-%s.so", interpreter_name());
	snprintf(what, sizeof(what), "the module that runs inside sessions (for %s) is",
		interpreter_name());
	const char *const places[] = { "glovebox-guest.so", named,
		"../lib/glovebox/glovebox-guest.so", NULL };
	return find(places, what, e, ret_path);
}

int paths_bench(struct error *e, char **ret_path)
{
	return find(bench_places, "the measurements are", e, ret_path);
}

char *paths_home_file(const char *variable, const char *below_home, const char *name)
{
	const char *base = getenv(variable), *home = getenv("HOME");
	char *path = NULL;
	int n = -1;
	if (base && *base == '/')
		n = asprintf(&path, "%s/%s", base, name);
	else if (home && *home == '/')
		n = asprintf(&path, "%s/%s/%s", home, below_home, name);
	return n < 0 ? NULL : path;
}

int paths_state_dir(struct error *e, char **ret_path)
{
	const char *set = getenv("GLOVEBOX_STATE_DIR"); /* the setting of the server, too */
	char *path = set && *set == '/' ? strdup(set)
		     : geteuid() == 0
			     ? strdup("/var/lib/glovebox")
			     : paths_home_file("XDG_STATE_HOME", ".local/state", "glovebox");
	if (!path) {
		error_set(e, -ENOENT, "there is no home directory to keep state in");
		return error_remedy(e, "set HOME, or GLOVEBOX_STATE_DIR=/DIRECTORY");
	}
	*ret_path = path;
	return 0;
}

int paths_make_parents(const char *path)
{
	_cleanup_free_ char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	for (char *slash = copy; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}
