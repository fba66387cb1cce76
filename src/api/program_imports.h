/* What a program imports, guessed from its text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct run_request;

/*
 * Whether the text imports modules of the standard library and of `own` only (names without dots,
 * NULL at the end), and contains no name of a package that the default template has imported. A
 * guess, made without parsing: names that are put together at run time are not found, and words in
 * strings and comments count.
 */
bool imports_are_standard(const char *text, size_t len, const char *const *own);

/*
 * The same for the code of a run and its Python files. False for texts of more than
 * LIMIT_GUESSED_BYTES together.
 */
bool run_imports_are_standard(const struct run_request *run);
