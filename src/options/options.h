/*
 * Options as data: one row says an option's name, type, range, default and help, and where its value goes.
 * The same row is read as a flag (--idle-timeout 60), as a variable (GLOVEBOX_IDLE_TIMEOUT=60) and as a line
 * of an INI file (idle-timeout = 60), and prints itself in --help. Every error begins with the place the
 * value came from.
 *
 * Targets: a struct of the caller's in which each option owns the member at `offset`:
 *   OPTION_FLAG bool · OPTION_TEXT char * · OPTION_LIST, OPTION_ITEMS char ** · OPTION_COUNT unsigned ·
 *   OPTION_SECONDS double · OPTION_SIZE uint64_t · OPTION_CHOICE int (index into choices) · OPTION_NUMBER double
 * Texts and lists are malloc'd (the lists end with NULL) and freed by options_finish(); a zeroed struct is
 * empty.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum option_type {
	OPTION_FLAG,
	OPTION_TEXT,
	OPTION_LIST, /* commas or spaces between items in one value; "none" is the empty list; a repeated flag
			adds */
	OPTION_ITEMS, /* a list whose values are taken whole, one per flag (--env A=b,c) */
	OPTION_COUNT,
	OPTION_SECONDS,
	OPTION_SIZE,
	OPTION_CHOICE,
	OPTION_NUMBER,
};

enum {
	OPTION_ROWS_MAX = 192,         /* of one table */
	OPTION_LIST_MAX = 256,         /* items of one list */
	OPTION_FILE_BYTES = 256 * 1024 /* of an INI file */
};

struct option_row {
	const char *name; /* the long flag without its dashes; the end of the table has NULL */
	char letter;      /* the short flag, or 0 */
	enum option_type type;
	size_t offset;
	double min, max;   /* OPTION_COUNT, OPTION_SECONDS, OPTION_SIZE; max 0: no limit */
	const char *value; /* the value's name in the help, such as "SECONDS" */
	/* the default, written as a user would write it; NULL: empty or off */
	const char *fallback;
	const char *const *choices; /* OPTION_CHOICE: the words, NULL at the end */
	/* heading in the help and section of the INI file; NULL: as the row before */
	const char *group;
	const char *help;
	bool is_maximum; /* max-NAME, behind the row NAME; 0 is allowed when it is the default */
	bool flag_only;  /* not a setting: neither in the environment nor in a file */
	bool ends;       /* what follows belongs to the program that is run, flags or not */
};

/*
 * Fills the target with the rows' defaults. They are part of the program: a wrong one is an
 * assertion.
 */
void options_init(const struct option_row *rows, void *target);
void options_finish(const struct option_row *rows, void *target);

/*
 * Reads the flags in argv[1…argc) up to the first word that is none (or behind "--") and returns
 * that word's index. Flags may be written --name VALUE, --name=VALUE, -n VALUE, -nVALUE; a flag of
 * OPTION_FLAG type also --no-name. Where `intermixed` is set, words and flags may alternate: the
 * words are moved to the end of argv, in their order. Negative errno and *e on an unknown flag
 * (names the nearest), a missing or a bad value.
 */
int options_parse_flags(const struct option_row *rows, void *target, int argc, char **argv,
	bool intermixed, struct error *e);

/* Reads GLOVEBOX_NAME for every row from the environment (upper case, underscores). */
int options_parse_environment(const struct option_row *rows, void *target, struct error *e);

/*
 * Reads an INI file. -ENOENT when there is none; unknown sections and keys are refused with the
 * nearest name.
 */
int options_parse_file(
	const struct option_row *rows, void *target, const char *path, struct error *e);

/* The same on text in memory; `origin` names it in errors. */
int options_parse_ini(const struct option_row *rows, void *target, const char *origin,
	const char *text, struct error *e);

/*
 * Walks over the variables GLOVEBOX_… of the environment that no row (and none of the
 * NULL-terminated `others`) has: returns the next one's name and, when a row is near, its name in
 * *ret_nearest (else NULL). *position starts at 0. NULL at the end. The result is valid until the
 * next call.
 */
const char *options_unknown_variable(const struct option_row *rows, const char *const *others,
	size_t *position, const char **ret_nearest);

/* The table as people read it: flag, value, help, default; grouped. */
void options_print(const struct option_row *rows, FILE *out);

/* "GLOVEBOX_IDLE_TIMEOUT" for "idle-timeout"; returns buf. */
enum { OPTION_VARIABLE_MAX = 64 };
char *options_variable(const char *name, char buf[OPTION_VARIABLE_MAX]);

/*
 * Sets one row's value as a source named `origin` would; adds to a list when `more`. For the
 * parsers, and for callers whose words are values too.
 */
int option_set(const struct option_row *row, void *target, const char *value, bool more,
	const char *origin, struct error *e);

/* The row's own name, or NULL; '-' and '_' are the same. */
const struct option_row *option_find(const struct option_row *rows, const char *name, size_t len);
const char *option_nearest(const struct option_row *rows, const char *name);

/* Frees a list as the options make it. NULL is fine. */
void option_list_free(char **list);
