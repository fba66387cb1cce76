/*
 * Names of modules and of the packages they come from: PIL is pillow's, yaml is pyyaml's. And names
 * that are seldom meant: a module that was misspelt is corrected where only one thing can be meant,
 * and otherwise the answer asks "did you mean …".
 *
 * What belongs to the standard library is not written here: the interpreter itself says it.
 */
#pragma once

#include <stdbool.h>

/*
 * The package of a top-level module, or NULL when it is not known (most have the module's own
 * name).
 */
const char *names_package_of(const char *module);

/*
 * What was meant by a module name that is a known slip ("dataclass") or one of Python 2
 * ("httplib"), or NULL. May be dotted: "http.client".
 */
const char *names_slip(const char *module);

/* Was it a module of some Python's standard library? An index is never asked for it. */
bool names_was_stdlib(const char *module);

/*
 * Puts the right names in the place of slips, in a list of modules (NULL at the end; or NULL).
 * -ENOMEM.
 */
int names_correct_imports(char **imports);

/* Is it the name of a package or module that many people use? */
bool names_known(const char *name);

/*
 * A name of the list (NULL at the end), of a known module or of a known package that is one slip of
 * the pen away; or NULL.
 */
const char *names_suggest(const char *name, const char *const *more);
