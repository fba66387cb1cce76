/* Declarations shared by the two files of json_schema.h; private to them. */
#pragma once

#include <stddef.h>

enum { SPOT_PATH_MAX = 160, SPOT_WORD_MAX = 40 };

/* A place in a value or a schema; written out only when something is wrong there. */
struct spot {
	const struct spot *parent;
	const char *key; /* or NULL: an index */
	size_t index;
};

/* "$.a[0]"; NULL is the root. Returns the length. */
size_t spot_path(const struct spot *s, char *out, size_t size);
