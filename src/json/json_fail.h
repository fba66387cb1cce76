/* Errors of the JSON reader: where the text is wrong, why, and what to do. */
#pragma once

#include <stddef.h>

struct error;

/* -EINVAL, with the place of the byte `at` of the text. */
int json_fail(const char *text, size_t at, const char *slug, const char *what, struct error *e);
