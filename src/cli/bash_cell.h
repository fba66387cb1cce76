/* Cells of bash at the prompt of `glovebox shell --bash`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether the lines so far are a whole cell. They are not inside quotes, behind a backslash at the
 * end of a line, and in a block (behind `do`, `then`, `{`, `|` …), which goes on until an empty
 * line.
 */
bool bash_cell_is_complete(const char *text, size_t len);
