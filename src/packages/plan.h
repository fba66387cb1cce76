/*
 * From what a request names to what pip is asked for: names of packages and of modules, seen against what the interpreter has
 * (the survey), become requirements and a report. No I/O.
 *
 * The report, as it is answered:
 *	{"stdlib": ["dataclasses"], "present": [{"name", "version", "module"}], "corrected": [{"from", "to"}],
 *	 "installed": [{"name", "version", "requested"}], "failed": [{"name", "reason", "suggestion"}]}
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { PLAN_NAMES_MAX = 128 };

struct plan {
	json_t *report;
	/* [{"text", "name", "module"}]; module: the import it is for, absent for packages */
	json_t *requirements;
	bool failed; /* a package (not just an import) cannot be had */
};

/* The top-level modules whose presence matters, for the survey: an array of texts, the caller's. */
json_t *plan_modules(const json_t *packages, const json_t *imports);

/*
 * Fills the plan; settings has allow, deny and require_hashes. Wrong requirements and forbidden
 * names are errors ("invalid_package", "package_refused").
 */
int plan_make(const json_t *packages, const json_t *imports, const json_t *survey,
	const json_t *settings, struct error *e, struct plan *ret);
void plan_finish(struct plan *p);

/*
 * A requirement that could not be had goes from the requirements into the report. False when there
 * is none of that name.
 */
bool plan_fail(struct plan *p, const char *name, const char *reason);

/*
 * What pip installed, and versions of what it found to be there already. -EPERM ("package_refused")
 * when the policy forbids one.
 */
int plan_installed(
	struct plan *p, const json_t *installed, const json_t *settings, struct error *e);

/* Does the policy (allow, deny) let this package in? */
bool plan_allows(const json_t *settings, const char *name);
