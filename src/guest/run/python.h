/* Python.h, first of all headers, as CPython asks. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
