/*
 * One requirement of a request, in pip's notation: a name, extras, versions, a marker, hashes.
 * Nothing else passes: no option, no address, no path, since each of them would get around the
 * index and the policy.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum { REQUIREMENT_NAME_MAX = 128, REQUIREMENT_TEXT_MAX = 1024 };

struct requirement {
	/* in its one form: lower case, '-' between the parts */
	char name[REQUIREMENT_NAME_MAX + 1];
	char given[REQUIREMENT_NAME_MAX + 1]; /* as it was written */
	/* name, extras, versions, marker and hashes, as pip takes them */
	char text[REQUIREMENT_TEXT_MAX + 1];
	bool plain; /* any version will do: nothing but the name */
	bool hashed;
};

/* -EINVAL with slug "invalid_package". */
int requirement_parse(const char *text, struct requirement *ret, struct error *e);

/*
 * The one form of a package's name: lower case, runs of '-', '_' and '.' become '-'. False when it
 * is no name.
 */
bool requirement_normalise(const char *name, char ret[REQUIREMENT_NAME_MAX + 1]);

/*
 * Does a pattern of an allow or deny list (a name, with '*' for any characters) stand for this
 * (normalised) name?
 */
bool requirement_matches(const char *pattern, const char *name);
