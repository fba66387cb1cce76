/*
 * Calls of tools from inside a cell: a frame goes out, the thread that called waits, the answer
 * wakes it.
 *
 * Any number of threads may wait at once. One of them reads the control socket, the others sleep
 * until it has read their answer or stops reading. The main thread can be interrupted while it
 * waits. When the cell ends, every thread that still waits gets an error. All state is guarded by
 * the GIL.
 */
#pragma once

#include "guest/run/python.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_frame;

/*
 * In the zygote: puts _tool_send, _tool_wait, _tool_next and _tool_drop into the module _glovebox.
 * -1 with a Python error.
 */
int tools_prepare(void);

/* TOOLS: defines the functions in __main__ by support code. */
void tools_define(const struct wire_frame *f, PyObject *define);

/* Calls support code with JSON text and the variables of __main__; what fails is told on stderr. */
void tools_give(const char *json, size_t len, PyObject *function);

/* TOOL_RESULT: stores the answer for whoever waits for it. */
void tools_take_result(const struct wire_frame *f);

/* Is this the name of one? */
bool tools_has(PyObject *name);

/* Adds all tools to a dict that was emptied. -1 with a Python error. */
int tools_put_into(PyObject *namespace);

void tools_begin_cell(uint32_t serial);
void tools_end_cell(void);
