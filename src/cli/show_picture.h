/*
 * Shows values and displays at a terminal: their text, and files for forms that a terminal cannot
 * show.
 */
#pragma once

#include <stdbool.h>

#include "session/session.h"

/*
 * Prints the value's text/plain on stdout, then a line in brackets for each picture or document in
 * it. With `save` those are written to glovebox-N.EXT in the current directory, the first N from
 * *number on that is free; never over another file.
 */
void display_print(const struct bundle *b, bool save, unsigned *number);
