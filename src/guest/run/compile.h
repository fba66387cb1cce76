/*
 * From a cell's text to its value: parsed, checked by the policy, compiled as statements and a
 * closing expression, run in __main__. Lines such as `%pip install x`, which are no Python, are
 * carried out first when the text does not compile.
 */
#pragma once

#include "guest/run/cell.h"

/*
 * In the zygote: looks up what running needs; `main_globals` (of __main__) is borrowed for good. -1
 * with a Python error.
 */
int compile_prepare(const struct support *support, PyObject *main_globals);

/*
 * Runs the text (NUL-terminated, len bytes). Returns the value of its closing expression as a new
 * reference (None where there is none), or NULL with a Python error: of the syntax, of the policy,
 * of a line that is no Python, or of the code itself.
 */
PyObject *compile_run(const char *code, size_t len, PyObject *filename);
