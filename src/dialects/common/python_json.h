/*
 * JSON as Python's json module sees it, for dialects whose original servers are written in Python:
 * the words of its errors, and the spelling of its output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buffer;

/* What json.loads() says about a text, positions counted in characters. */
struct python_json_error {
	const char *message; /* "Expecting value" */
	size_t position, line, column;
};

/*
 * Finds the first error of a text of valid UTF-8 as json.loads() would. False when it finds none
 * (Python takes more than our own reader does: NaN, names given twice, any depth).
 */
bool python_json_error(const char *text, size_t len, struct python_json_error *ret);

/*
 * Appends sound JSON as json.dumps() spells it: ", " and ": ", and characters beyond ASCII escaped.
 * -ENOMEM.
 */
int python_json_dumps(struct buffer *out, const char *json, size_t len);
