/*
 * The exception of a cell, written into frames: an error with its traceback and remedy, an exit, or
 * a final answer that stopped the code.
 */
#pragma once

#include <stdbool.h>

#include "guest/run/cell.h"

#include "wire/wire.h"

/* How a cell ended, as WIRE_DONE tells it. */
struct outcome {
	enum wire_outcome kind;
	int exit_code;
};

/* In the zygote, before any cell. */
void cell_error_prepare(const struct support *support);

/*
 * Takes the Python error that is set, appends its WIRE_ERROR (unless it is none: exit code 0, a
 * final answer) and says how the cell ended.
 */
struct outcome cell_error_report(struct buffer *out, uint32_t serial, PyObject *filename);

/*
 * The cell is a whole program: as in python3, a sys.excepthook that the code put in place of
 * Python's own is called with what it raised, and shows it.
 */
void fault_set_program(bool program);

/* This process is a copy of the guest: errors go to stderr from now on. */
void cell_error_forked(void);
