/*
 * The sets of packages that the settings name: installed when the server starts, and kept with a
 * template of their own.
 */
#pragma once

#include "packages/packages.h"

struct sessions;

enum { WARM_SETS_MAX = 16 };

/*
 * Hears what became of the common imports. `failed`: JSON text of an array of objects with name and
 * reason, `names`: their names with commas between them; both NULL when all are there. Valid during
 * the call only.
 */
typedef void (*warm_sets_told)(void *userdata, const char *failed, const char *names);

struct warm_sets {
	struct packages *packages;
	struct sessions *sessions;
	struct packages_wait *common_wait;
	struct packages_hold *common; /* of the imports that every session has */
	char **authorised;
	warm_sets_told told;
	void *userdata;
	unsigned n;
	struct warm_set {
		struct warm_sets *all;
		const char *line; /* of the settings */
		struct packages_wait *wait;
		struct packages_hold *hold;
	} set[WARM_SETS_MAX];
};

/*
 * Asks for all of them; each becomes a template when it is there. What fails is logged. `lines` may
 * be NULL.
 */
void warm_sets_start(struct warm_sets *w, struct packages *packages, struct sessions *sessions,
	char *const *lines);

/*
 * The modules that every session may import: what is missing is installed before the server is
 * ready. False when there is nothing to ask for (`imports` may be NULL), and `told` is not called;
 * else it is, once, now or later.
 */
bool warm_sets_common(struct warm_sets *w, struct packages *packages, struct sessions *sessions,
	char *const *imports, warm_sets_told told, void *userdata);

/*
 * The imports with slips corrected, as sessions may use them: *ret is the sets' own, and NULL
 * without any. What was written is still what packages are asked for: their report tells of the
 * correction. -ENOMEM.
 */
int warm_sets_authorise(struct warm_sets *w, char *const *imports, char ***ret);

void warm_sets_finish(struct warm_sets *w); /* before the packages go */
