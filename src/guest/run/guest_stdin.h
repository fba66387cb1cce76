/* Standard input of a cell: descriptor 0 and sys.stdin. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

int stdin_prepare(void); /* once, in the zygote */

/*
 * Puts the descriptor on 0 and closes it; -1 stands for /dev/null. stdin_set() also makes a new
 * sys.stdin over it.
 */
void stdin_put(int fd);
void stdin_set(int fd);

bool stdin_is_closed(void); /* sys.stdin was closed, as exit() of the site module does */

/* A descriptor from which the text can be read, or -1. */
int stdin_from(const char *text, size_t len);
