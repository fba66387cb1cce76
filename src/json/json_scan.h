/* The scan of a JSON text: private to json_read.c, which says what its results mean. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/limits.h"

struct error;
struct json_tree;

/*
 * The scan decides everything that can be wrong with a text; the tree is built from what it finds.
 * It keeps one bit per level, so hostile nesting costs nothing, and can stop after any number of
 * bytes and go on later, inside strings and runs of blanks too.
 */
enum json_scan_state {
	SCAN_WANT_VALUE,
	SCAN_WANT_FIRST, /* the first value of an array or its end */
	SCAN_WANT_NAME,
	SCAN_WANT_FIRST_NAME, /* the same of an object */
	SCAN_IN_NAME,
	SCAN_IN_STRING,
	SCAN_WANT_COLON,
	SCAN_AFTER_VALUE,
	SCAN_ENDED,
};

/* Strings from this size on are copied while they are scanned. */
enum { JSON_LONG_STRING = 64 * 1024 };

struct json_scan {
	const char *text;
	size_t len, at;
	size_t until; /* this time; at may be a little behind it */
	enum json_scan_state state;
	unsigned depth;
	uint64_t is_object; /* a bit per level; LIMIT_JSON_DEPTH must fit */
	size_t values, max_values;
	/* of the string that is being scanned */
	size_t run;             /* where the bytes begin that were not copied yet */
	bool escaped;           /* the bytes before them are in `decoded` */
	struct buffer decoded;  /* only with a tree */
	struct json_tree *tree; /* NULL: none is built */
	struct error *e;
};

_Static_assert(LIMIT_JSON_DEPTH <= 64, "one bit per level");

/*
 * Goes on for so many bytes. 1: there is more; 0: the text is whole and sound; negative: it is not.
 */
int json_scan_on(struct json_scan *s, size_t bytes);
