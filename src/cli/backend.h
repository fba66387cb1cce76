/*
 * What a command with a session of its own runs its code under: the profile and imports of its
 * flags and of the variables by which coding_env's servers are configured (EXECUTOR_BACKEND,
 * ADDITIONAL_IMPORTS), and the packages it needs. Modules that ADDITIONAL_IMPORTS names are
 * installed where they are missing.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/fetch.h"
#include "daemon/config.h"

struct backend {
	char *profile;  /* NULL: python */
	char **imports; /* NULL at the end; or NULL */
	/*
	 * the variables of coding_env were set: its rules hold for imports, as in the OpenEnv
	 * dialect
	 */
	bool imports_below;
	struct fetched fetched;
	/* private */
	struct config settings; /* of the packages */
	bool install;           /* the imports came from ADDITIONAL_IMPORTS */
};

/*
 * `profile`, `imports` and `packages` are those of the flags, or NULL. Modules that cannot be had
 * are told on stderr; a package that cannot be had is an error. backend_finish() is the caller's
 * after success only.
 */
int backend_open(struct backend *b, const char *verb, const char *profile, char *const *imports,
	char *const *packages, struct error *e);
/* the session must be gone; one that is all zeros is fine */
void backend_finish(struct backend *b);
