/* glovebox bench: starts the program that measures, with this program as what is measured */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "daemon/places.h"

static const char verb[] = "bench";
static const char python[] = "/usr/bin/python3";

/* Beside what is measured: its folder. The results go to the user's own folder where they cannot go beside the program. */
static int set_environment(const char *program, struct error *e)
{
	char self[PATH_MAX], results[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return error_set_errno(e, -errno, "/proc/self/exe");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	setenv("GLOVEBOX_BUILD", self, 1);
	setenv("GLOVEBOX_BENCH_AS", "glovebox bench", 1);
	_cleanup_free_ char *folder = strdup(program);
	if (!folder)
		return error_set_errno(e, -ENOMEM, "bench");
	*strrchr(folder, '/') = '\0';
	if (access(folder, W_OK) < 0 && getcwd(results, sizeof(results) - sizeof("/glovebox-bench"))) {
		strncat(results, "/glovebox-bench", sizeof(results) - strlen(results) - 1);
		setenv("GLOVEBOX_BENCH_RESULTS", results, 0);
	}
	return 0;
}

/* With no part named, those that need nothing else installed. */
static bool names_what(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-' || text_eq(argv[i], "--explain") || text_starts(argv[i], "--soak"))
			return true;
	return false;
}

int cli_bench(int argc, char **argv)
{
	_cleanup_free_ char *program = NULL;
	_cleanup_free_ char **words = calloc((size_t)argc + 4, sizeof(*words));
	struct error e = { 0 };
	if (!words || places_bench(&e, &program) < 0 || set_environment(program, &e) < 0) {
		cli_show_error(verb, &e);
		return CLI_FAILED;
	}
	size_t n = 0;
	words[n++] = (char *)python;
	words[n++] = program;
	for (int i = 1; i < argc; i++)
		words[n++] = argv[i];
	if (!names_what(argc, argv))
		words[n++] = (char *)"--alone";
	execv(python, words);
	cli_complain(verb, "%s cannot be started: %s\n  Debian's python3 is needed: apt install python3", python,
		strerror(errno));
	return CLI_FAILED;
}
