/*
 * A MemoryError keeps the memory that ran out: sys.last_value refers to its traceback, the
 * traceback to the frames, and the frames to their local variables. Once the error is reported, its
 * frames are cleared. Types, messages and line numbers stay, so the traceback can still be printed.
 */
#pragma once

#include "guest/run/python.h"

#include <stdbool.h>

/* True when `exception`, or one in its chain or group, is a MemoryError. */
bool memory_error_in(PyObject *exception);

/*
 * Clears the frames of `exception`, of its chain and of its group, collects cycles, and returns
 * freed memory to the system.
 */
void memory_error_release(PyObject *exception);
