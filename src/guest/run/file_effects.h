/*
 * Uses of files that a cell can repeat: it opens, reads and writes regular files of /workspace, or
 * reads files of the read-only system. A rollback restores the files of the snapshot before it runs
 * cells again, so such a cell then finds what it found the first time and writes the same.
 *
 * Everything else about files stays an effect (effects.h): files in /proc, /tmp and /dev, pipes,
 * names of directories, times of files.
 */
#pragma once

#include <stdint.h>

/*
 * Learns where Python asks for a file's size while it opens and reads it. In the zygote, when the
 * calls of `names` in effects.c lead here already.
 */
void file_effects_learn(void);

/*
 * The function that stands before one of the C library, of the same type; NULL when there is none.
 */
void *file_effects_wrapper(const char *name);

void file_effects_begin(void); /* a cell begins */

/* How many calls of the wrapped functions, since the cell began, it can repeat. */
uint32_t file_effects_repeatable(void);
