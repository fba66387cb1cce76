/*
 * The end of a cell whose picture is wanted: its toolkits paint their windows, and the process
 * lives until the daemon has the picture.
 *
 * Toolkits paint when they handle events. Code that ends without a main loop has handled none, so
 * its windows are not on the screen, or are empty, although it did nothing wrong. The support code
 * (painting.py) handles the events in the code's place. It runs callbacks of the session's code:
 * the daemon sets the time limit, interrupts callbacks that exceed it, and kills a process that
 * does not react (session/display/cell_picture.c).
 */
#pragma once

#include "guest/run/python.h"

/* In the zygote: puts _paint_wait into the module _glovebox. -1 with a Python error. */
int paint_prepare(PyObject *paint_screen);

/*
 * Called when the code of a cell has ended. Does nothing where no window can be: no connection to
 * the display, no thread, no child process.
 */
void paint_windows(void);

/* CONTINUE came. */
void paint_continue(void);
