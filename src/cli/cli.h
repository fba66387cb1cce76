/*
 * What the verbs share: the page that explains a verb, its options, and how errors are shown. One
 * file per verb; main.c only chooses. A verb gets its own argc and argv (argv[0] is its name) and
 * returns the exit code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "options/options.h"

enum {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,       /* the command line is wrong */
	CLI_TIMEOUT = 124,   /* run: the time limit ended the code */
	CLI_NO_START = 125,  /* run, shell: Glovebox itself could not run it */
	CLI_INTERRUPT = 130, /* run: Ctrl-C */
	CLI_PIPE = 141,      /* run: whoever read the output has left */
};

struct cli_verb {
	const char *name; /* the end of the table has NULL */
	int (*run)(int argc, char **argv);
	const char *summary; /* NULL: not for people, not listed */
};
extern const struct cli_verb cli_verbs[];

struct cli_page {
	const char *verb;
	const char *usage; /* behind "glovebox VERB " */
	const char *about;
	const struct option_row *rows; /* must have "help" */
	const char *examples;          /* lines, or NULL */
	/* rows that are not flag_only are also read from GLOVEBOX_… */
	bool environment;
};

/*
 * Reads the verb's flags into target. Returns the index of the first word that is no flag (as
 * options_parse_flags()), or -1 when the verb is to end with *ret_code: --help was printed, or an
 * error shown.
 */
int cli_parse(const struct cli_page *page, void *target, int argc, char **argv, bool intermixed,
	int *ret_code);

void cli_print_page(const struct cli_page *page);

/* Shows the error on stderr, as "glovebox VERB: text" and the remedy below it. */
void cli_show_error(const char *verb, const struct error *e);
void cli_complain(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Complaint about the command line, with a pointer to --help; returns CLI_USAGE. */
int cli_usage(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "12 kB", "3.4 MB" */
enum { CLI_AMOUNT_MAX = 24 };
char *cli_format_size(double bytes, char buf[CLI_AMOUNT_MAX]);
char *cli_format_age(double seconds, char buf[CLI_AMOUNT_MAX]); /* "42s", "3m", "2h", "5d" */

#define CLI_HELP(type)                                                                    \
	{                                                                                 \
		"help", 'h', OPTION_FLAG, offsetof(type, help), .flag_only = true,        \
								.help = "print this text" \
	}
#define CLI_JSON(type)                                                             \
	{                                                                          \
		"json", 0, OPTION_FLAG, offsetof(type, json), .flag_only = true,   \
							      .help = "print JSON" \
	}

int cli_serve(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_shell(int argc, char **argv);
int cli_new(int argc, char **argv);
int cli_ps(int argc, char **argv);
int cli_kill(int argc, char **argv);
int cli_drain(int argc, char **argv);
int cli_fleet(int argc, char **argv);
int cli_pause(int argc, char **argv);
int cli_ports(int argc, char **argv);
int cli_volumes(int argc, char **argv);
int cli_resume(int argc, char **argv);
int cli_exec(int argc, char **argv);
int cli_logs(int argc, char **argv);
int cli_cp(int argc, char **argv);
int cli_attach(int argc, char **argv);
int cli_open(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_checkpoint(int argc, char **argv);
int cli_rollback(int argc, char **argv);
int cli_fork(int argc, char **argv);
int cli_tree(int argc, char **argv);
int cli_batch(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_profiles(int argc, char **argv);
int cli_version(int argc, char **argv);
int cli_mcp(int argc, char **argv);
int cli_packages(int argc, char **argv);

/* All of main() but the name: what the tests call. */
int cli_main(int argc, char **argv);
