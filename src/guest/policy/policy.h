/*
 * Executor profiles inside a guest: what the code of its cells may import, call and name.
 *
 * A guest starts without a profile. The rules of its session's profile come with SETUP, once,
 * before the first cell; from then on every cell is checked before it is compiled, sees builtins
 * and modules of its own, and an audit hook watches what the libraries do for it. A profile gives
 * understandable refusals; it is not the security boundary, which is the jail.
 *
 * Invariants: cell code never holds a module, a builtin or a name by which it could change any of
 * this. Guards are constants of compiled code, not names. If a check itself fails, the code is
 * refused.
 */
#pragma once

#include "guest/run/python.h"

#include "base/buffer.h"
#include "profile/profile.h"

#include <stdbool.h>
#include <stddef.h>

/* In the zygote, when all is imported. -1 with a Python error. */
int policy_prepare(PyObject *globals);

/* SETUP: one rule, "key=value". Unknown ones are ignored by the guest; the daemon checked them. */
void policy_rule(const char *text, size_t len);

/*
 * SETUP, after the last rule: from here on it holds. -1 with a Python error: then no cell may run.
 */
int policy_apply(void);

/* Whether there is anything to hold. */
bool policy_active(void);

/* The built-in profile that the session's own is made of: "smolagents". */
const char *policy_profile(void);

/*
 * Before a cell is compiled: checks the tree and changes it where guards are needed. -1 with an
 * error set: nothing may run. `code` is the cell's source.
 */
int policy_check(PyObject *tree, const char *code, size_t len);

/* After it is compiled: puts the guards into the code object and those inside it. */
int policy_seal(PyObject *code);

/* A cell begins: counts start at 0, a profile with fresh names has none. */
void policy_begin(void);

/* Was the last cell refused before it ran? */
bool policy_refused(void);

/* The cell is over: writes out what its print() held back. */
void policy_end(void);

/*
 * What an error of a cell is in the profile's words. *ret_rule: the rule it breaks, or
 * POLICY_RULES. Type, message and remedy: new references, or NULL to leave them as they are.
 */
struct policy_words {
	enum policy_rule rule;
	long line; /* 0: where it was raised */
	PyObject *type, *message, *remedy;
	PyObject *traceback; /* not policy_explain()'s */
};
void policy_explain(PyObject *exception, struct policy_words *ret);
void policy_words_finish(struct policy_words *w);

/*
 * Our own calls that the audit hook must let through: nested pairs. What a cell's code does when
 * such a call reaches it (its __str__, its __fspath__) is not trusted.
 */
void policy_trust(bool on);
