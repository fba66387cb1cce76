/*
 * Programs in languages other than Python: the program becomes a file of the run, and a line of
 * Python starts it.
 */
#pragma once

#include "base/error.h"

struct run_request;

enum script_language { SCRIPT_PYTHON, SCRIPT_BASH, SCRIPT_PYTEST, SCRIPT_LANGUAGE_COUNT };
extern const char *const script_languages[]; /* in the order of the enum; NULL at the end */

/*
 * Rewrites the request of a program that is not Python. A profile or `exec` that refuses
 * subprocesses refuses these programs, too, since the line that starts them is ordinary code.
 * -ENOMEM.
 */
int script_prepare(struct run_request *run, struct error *e);
