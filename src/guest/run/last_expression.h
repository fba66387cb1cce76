/*
 * Whether a cell ends with an expression, and where that begins, seen from its text alone. Python's own answer is a tree of objects, a third of the
 * time for compiling a small cell; most cells end so plainly that none is needed. No Python here, and no guess: what is not plain is left to the tree.
 */
#pragma once

#include <stddef.h>

enum closing {
	CLOSING_UNSURE,     /* ask Python */
	CLOSING_STATEMENT,  /* if the text compiles, its last statement is no expression */
	CLOSING_EXPRESSION, /* if what comes before *ret_start compiles as statements, and the rest as an expression, then the text is these two */
};

enum closing last_expression_find(const char *code, size_t len, size_t *ret_start);
