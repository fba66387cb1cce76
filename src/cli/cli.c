#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/launcher.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/cli_words.h"
#include "display/image/fitter.h"
#include "display/xserver/screens.h"
#include "jail/jailer.h"
#include "jail/mover.h"
#include "network/proxy.h"
#include "packages/installer.h"
#include "sandbox/rootfs.h"

static int run_mover(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return mover_main();
}

static int run_jailer(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return jailer_main();
}

static int run_proxy(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return proxy_main();
}

static int run_fitter(int argc, char **argv)
{
	uint64_t side, bytes;
	if (argc != 3 || text_parse_u64(argv[1], 1, UINT16_MAX, &side) < 0 ||
		text_parse_u64(argv[2], 1, UINT32_MAX, &bytes) < 0)
		return CLI_USAGE;
	return fitter_main((uint32_t)side, (uint32_t)bytes);
}

static int run_launcher(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return launcher_main();
}

static int run_screens(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return screens_main();
}

const struct cli_verb cli_verbs[] = {
	{ "serve", cli_serve, "start the server" },
	{ "run", cli_run, "run a Python file or line in a new sandbox, without a server" },
	{ "shell", cli_shell, "start an interactive session, without a server" },
	{ "batch", cli_batch, "run the programs of a file on a server, many at once" },
	{ "new", cli_new, "create a session on a server" },
	{ "ps", cli_ps, "list the server's sessions" },
	{ "top", cli_top, "watch the memory and CPU time of the server's sessions" },
	{ "kill", cli_kill, "end sessions" },
	{ "pause", cli_pause, "pause sessions" },
	{ "resume", cli_resume, "resume paused sessions" },
	{ "exec", cli_exec, "run a program in a session of a server" },
	{ "attach", cli_attach, "watch the cells of a session, and type cells of your own" },
	{ "cp", cli_cp, "copy files and folders into a session, or out of it" },
	{ "open", cli_open, "open the server's console in a browser" },
	{ "ports", cli_ports, "list the servers inside a session" },
	{ "logs", cli_logs, "show the output of a session" },
	{ "checkpoint", cli_checkpoint, "take a checkpoint of a session" },
	{ "rollback", cli_rollback, "roll a session back to a checkpoint, or undo its last cell" },
	{ "fork", cli_fork, "make copies of a session" },
	{ "tree", cli_tree, "show the checkpoints of a session" },
	{ "mcp", cli_mcp, "offer Python sessions to an assistant (MCP over stdio)" },
	{ "volumes", cli_volumes, "manage the volumes of a server, which outlive sessions" },
	{ "drain", cli_drain, "stop a server from creating sessions, before it is replaced" },
	{ "fleet", cli_fleet, "print the configuration of a router for several servers" },
	{ "packages", cli_packages, "manage the packages of sessions" },
	{ "profiles", cli_profiles, "list executor profiles" },
	{ "doctor", cli_doctor, "check this machine and list what is missing" },
	{ "bench", cli_bench, "measure this program on this machine" },
	{ "version", cli_version, "show the version" },
	{ "mover", run_mover, NULL },   /* the same */
	{ "jailer", run_jailer, NULL }, /* the session layer starts this program so */
	{ "screens", run_screens, NULL },
	{ "installer", installer_main, NULL }, /* and src/packages so */
	{ "proxy", run_proxy, NULL },
	{ "inside", rootfs_inside_main, NULL },
	{ "launcher", run_launcher, NULL },     /* and the daemon so */
	{ "picture-fitter", run_fitter, NULL }, /* and the MCP dialect so */
	{ NULL },
};

/* ---- pages and errors ------------------------------------------------- */

void cli_print_page(const struct cli_page *page)
{
	printf("usage: glovebox %s %s\n\n%s\n\n", page->verb, page->usage, page->about);
	options_print(page->rows, stdout);
	if (page->examples)
		printf("\nExamples:\n%s", page->examples);
}

void cli_show_error(const char *verb, const struct error *e)
{
	fflush(stdout);
	fprintf(stderr, "glovebox %s: %s\n", verb, e->text);
	char remedy[EDGE_TEXT_MAX];
	if (*e->remedy)
		fprintf(stderr, "  %s\n", cli_remedy(e->remedy, remedy));
}

void cli_complain(const char *verb, const char *fmt, ...)
{
	va_list ap;
	fflush(stdout);
	fprintf(stderr, "glovebox %s: ", verb);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int cli_usage(const char *verb, const char *fmt, ...)
{
	va_list ap;
	fprintf(stderr, "glovebox %s: ", verb);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n  `glovebox %s --help` shows the usage\n", verb);
	return CLI_USAGE;
}

int cli_parse(const struct cli_page *page, void *target, int argc, char **argv, bool intermixed,
	int *ret_code)
{
	struct error e = { 0 };
	options_init(page->rows, target);
	int first = page->environment ? options_parse_environment(page->rows, target, &e) : 0;
	if (first >= 0)
		first = options_parse_flags(page->rows, target, argc, argv, intermixed, &e);
	if (first < 0) {
		cli_show_error(page->verb, &e);
		*ret_code = CLI_USAGE;
		return -1;
	}

	const struct option_row *help = option_find(page->rows, "help", strlen("help"));
	if (*(const bool *)((const char *)target + help->offset)) {
		cli_print_page(page);
		*ret_code = CLI_OK;
		return -1;
	}

	return first;
}

/* ---- small things ----------------------------------------------------- */

char *cli_format_size(double bytes, char buf[CLI_AMOUNT_MAX])
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	size_t unit = 0;
	while (bytes >= 1000 && unit + 1 < ARRAY_LEN(units)) {
		bytes /= 1000;
		unit++;
	}
	snprintf(buf, CLI_AMOUNT_MAX, unit && bytes < 10 ? "%.1f %s" : "%.0f %s", bytes,
		units[unit]);
	return buf;
}

char *cli_format_age(double seconds, char buf[CLI_AMOUNT_MAX])
{
	static const struct {
		double from, unit;
		char letter;
	} steps[] = { { 2 * 86400, 86400, 'd' }, { 2 * 3600, 3600, 'h' }, { 120, 60, 'm' },
		{ 0, 1, 's' } };
	if (seconds < 0)
		seconds = 0;
	size_t i = 0;
	while (seconds < steps[i].from)
		i++;
	snprintf(buf, CLI_AMOUNT_MAX, "%.0f%c", seconds / steps[i].unit, steps[i].letter);
	return buf;
}

/* ---- choosing a verb -------------------------------------------------- */

static void print_overview(FILE *out)
{
	fprintf(out,
		"Glovebox runs Python code written by a language model, in jailed sessions that keep their "
		"variables.\n\n"
		"usage: glovebox VERB [options] …\n\nVerbs:\n");
	for (const struct cli_verb *v = cli_verbs; v->name; v++)
		if (v->summary)
			fprintf(out, "  %-10s %s\n", v->name, v->summary);
	fprintf(out,
		"\n`glovebox VERB --help` explains a verb. Begin with: glovebox run -c 'print(6 * 7)'\n");
}

static int unknown_verb(const char *word)
{
	const char *names[ARRAY_LEN(cli_verbs)];
	size_t n = 0;

	for (const struct cli_verb *v = cli_verbs; v->name && n + 1 < ARRAY_LEN(names); v++)
		if (v->summary)
			names[n++] = v->name;
	names[n] = NULL;
	const char *nearest = nearest_word(word, names);
	if (nearest)
		fprintf(stderr, "glovebox: there is no verb '%.60s'. Did you mean `glovebox %s`?\n",
			word, nearest);
	else
		fprintf(stderr,
			"glovebox: there is no verb '%.60s'. `glovebox --help` lists them.\n",
			word);
	return CLI_USAGE;
}

int cli_main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;
	if (!word) {
		print_overview(stderr);
		return CLI_USAGE;
	}

	if (text_eq(word, "--help") || text_eq(word, "-h") || text_eq(word, "help")) {
		if (argc == 2) {
			print_overview(stdout);
			return CLI_OK;
		}
		char *help[] = { argv[2], (char *)"--help", NULL };
		for (const struct cli_verb *v = cli_verbs; v->name; v++)
			if (v->summary && text_eq(v->name, argv[2]))
				return v->run(2, help);
		return unknown_verb(argv[2]);
	}

	if (text_eq(word, "--version"))
		word = "version";
	for (const struct cli_verb *v = cli_verbs; v->name; v++)
		if (text_eq(v->name, word))
			return v->run(argc - 1, argv + 1);
	return unknown_verb(word);
}
