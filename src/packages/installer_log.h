/* Interprets pip's messages: which package failed, why, and the remedy. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "packages/requirement.h"

struct pip_failure {
	/* package_not_found, package_conflict, package_build_failed, index_unreachable,
	 * package_failed … */
	const char *slug;
	char package[REQUIREMENT_NAME_MAX + 1]; /* in its one form; empty when pip names none */
	char reason[ERROR_TEXT_MAX];
	char remedy[ERROR_REMEDY_MAX];
};

/* From the last lines pip printed (an array of texts) and the settings it ran with. */
void pip_explain(const json_t *log, const json_t *settings, struct pip_failure *ret);
