/* Declarations shared by the files of this folder; private to it. */
#pragma once

#include <jansson.h>

#include "profile/profiles.h"

struct own_profile {
	char *name;
	json_t *object;
};

struct profiles {
	struct own_profile *own;
	size_t n;
};

/* Whether the profile of this name can be put together. */
int profiles_check(const struct profiles *p, const char *name, struct error *e);
