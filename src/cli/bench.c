/*
 * glovebox bench: starts the program that measures (bench/run), with this program as what is
 * measured
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "cli/cli.h"

static const char python[] = "/usr/bin/python3";

struct options {
	bool all, quick, explain, json, help;
	unsigned soak;
};
#define AT(member) offsetof(struct options, member)

static const struct option_row rows[] = {
	{ "explain", 0, OPTION_FLAG, AT(explain), .flag_only = true,
		.help = "show the time of each step of a session's start and of a cell" },
	{ "soak", 0, OPTION_COUNT, AT(soak), 1, 10000, "MINUTES", .flag_only = true,
		.help = "run good and hostile cells for this long, then count leftovers" },
	{ "all", 0, OPTION_FLAG, AT(all), .flag_only = true,
		.help = "also run the comparisons with other programs; missing programs are listed" },
	{ "quick", 0, OPTION_FLAG, AT(quick), .flag_only = true,
		.help = "take a fifth of the samples" },
	CLI_JSON(struct options),
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page page = {
	.verb = "bench",
	.usage = "[--explain | --soak MINUTES | --all] [--quick] [--json] [PART …]",
	.about =
		"Measures this program on this machine, with a server that is started and ended for this purpose. The report goes to\n"
		"the terminal as Markdown. A copy with all samples and pictures is written to bench/results, or to ./glovebox-bench\n"
		"if the program is installed. PART selects parts: start cell compute idle printing modes growth episodes …",
	.rows = rows,
	.examples = "  glovebox bench --explain           where the milliseconds of a start go\n"
		    "  glovebox bench --quick episodes    sessions and steps a second, roughly\n"
		    "  glovebox bench --soak 15           does anything leak?\n",
};

/* What is measured lies beside this program. The results go where the user may write. */
static int set_environment(const char *program, struct error *e)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return error_set_errno(e, -errno, "/proc/self/exe");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	setenv("GLOVEBOX_BUILD", self, 1);
	_cleanup_free_ char *folder = strdup(program), *here = getcwd(NULL, 0), *results = NULL;
	if (!folder || !here || asprintf(&results, "%s/glovebox-bench", here) < 0)
		return error_set_errno(e, -errno, "the results' folder");
	*strrchr(folder, '/') = '\0';
	if (access(folder, W_OK) < 0)
		setenv("GLOVEBOX_BENCH_RESULTS", results, 0);
	return 0;
}

static int start(const struct options *o, const char *program, char **parts)
{
	char minutes[16];
	const char *words[64] = { python, program };
	size_t n = 2;

	if (o->soak) {
		snprintf(minutes, sizeof(minutes), "%u", o->soak);
		words[n++] = "--soak";
		words[n++] = minutes;
	}

	if (o->quick)
		words[n++] = "--quick";
	if (o->json)
		words[n++] = "--json";
	if (o->explain)
		words[n++] = "--explain";
	else if (!*parts && !o->all)
		words[n++] = "--alone";
	for (; *parts && n < 63; parts++)
		words[n++] = *parts;
	fflush(stdout);
	execv(python, (char *const *)words);
	cli_complain(page.verb,
		"%s cannot be started: %s\n  Debian's Python is needed: apt install python3",
		python, strerror(errno));
	return CLI_FAILED;
}

int cli_bench(int argc, char **argv)
{
	struct options o = { 0 };
	struct error e = { 0 };
	_cleanup_free_ char *program = NULL;
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);
	if (first < 0)
		return code;
	if (paths_bench(&e, &program) < 0 || set_environment(program, &e) < 0) {
		cli_show_error(page.verb, &e);
		return CLI_FAILED;
	}
	return start(&o, program, argv + first);
}
