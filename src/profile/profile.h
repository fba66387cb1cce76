/*
 * Executor profiles: what the code of a session may import, call and name, as data.
 *
 * A built-in profile is a row of profile_tables. What a session gets is one of them, changed by what its request or a
 * file of the configuration directory says, and travels to the guest as rules, texts "key=value":
 *
 *   base=smolagents        the row it starts from, first
 *   import=numpy.*         may be imported; all of them are named, the row's own are not implied
 *   builtin=open           a builtin beyond the row's
 *   refuse=random.seed     a builtin or a dotted attribute of a module that is taken away
 *   max_operations=N, max_while_iterations=N, print_chars=N, final_answer_stops=0|1, fresh_namespace=0|1
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum profile_base { PROFILE_PYTHON, PROFILE_SMOLAGENTS, PROFILE_RESTRICTED, PROFILE_TINYAGENT };

struct profile_table {
	const char *name;
	enum profile_base base;
	const char *stands_for, *summary;
	const char *const *imports;  /* NULL at the end; a single "*" for all */
	const char *const *builtins; /* NULL at the end; NULL for all */
	const char *const *refuses;  /* for people: a clause each, NULL at the end */
	uint64_t max_operations, max_while_iterations, print_chars; /* 0: no limit */
	bool final_answer_stops; /* final_answer() ends the cell */
	bool fresh_namespace;    /* every cell starts without variables */
	bool top_imports;        /* a rule allows the module and everything below it */
	/* RestrictedPython's rules without those that ordinary programs break: restricted.c */
	bool permissive;
};

/* The built-in ones; a NULL name ends them. The first is the default. */
enum { PROFILE_COUNT = 6 };
extern const struct profile_table profile_tables[PROFILE_COUNT + 1];

/* By name, or NULL. Also the names by which others call them ("restrictedpython", "local"). */
const struct profile_table *profile_find(const char *name);

/* What a violation is counted as, and the `code` of its error: "policy_import". */
enum policy_rule {
	POLICY_IMPORT,     /* a module that is not on the list */
	POLICY_MODULE,     /* a module not on the list, reached through another object */
	POLICY_FUNCTION,   /* a function that is taken away */
	POLICY_NAME,       /* a name that may not be used or bound */
	POLICY_ATTRIBUTE,  /* an attribute that may not be read or set */
	POLICY_STATEMENT,  /* a kind of statement or expression */
	POLICY_TOOL,       /* assigning to the name of a tool */
	POLICY_FORMAT,     /* a format string that walks to a refused attribute */
	POLICY_OPERATIONS, /* the count of operations or iterations is reached */
	POLICY_CODE,       /* text that was to be run as code */
	POLICY_FILE,       /* a file outside the session's own */
	POLICY_PROCESS,    /* a program or process that was to be started */
	POLICY_NETWORK,    /* a socket */
	POLICY_NATIVE,     /* raw memory, frames, code objects, native libraries */
	POLICY_RULES
};
extern const char *const policy_rule_codes[POLICY_RULES];
