/*
 * Whether a cell ends with an expression, and where that begins, seen from its text alone. Python's
 * own parser builds a tree of objects, which takes a third of the time to compile a small cell;
 * most cells end so simply that no tree is needed. This code uses no Python and never guesses:
 * cells that do not end simply are left to the parser.
 */
#pragma once

#include <stddef.h>

enum closing {
	CLOSING_UNSURE,    /* ask Python */
	CLOSING_STATEMENT, /* if the text compiles, its last statement is no expression */
	/* if what comes before *ret_start compiles as statements, and the rest as an expression,
	 * then the text is these two */
	CLOSING_EXPRESSION,
};

enum closing last_expression_find(const char *code, size_t len, size_t *ret_start);
