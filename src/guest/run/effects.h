/*
 * What a cell did beside computing: whether it read a clock or random numbers of the system, used
 * files, processes, threads, sockets. Such a cell, replayed from the same snapshot, can produce a
 * different state. The daemon is told with WIRE_DONE and takes a snapshot before the next cell.
 *
 * Programs and libraries call the C library through tables of addresses (the global offset table).
 * The zygote points the entries of about 150 functions at stubs, which note the call and jump to
 * the function. So a call takes two more instructions, and the caller sees no difference. Libraries
 * that a cell loads get stubs at the end of the cell. Reading and writing files of /workspace is
 * not an effect (file_effects.h). Not detected are system calls that a library makes without the C
 * library, and shared memory.
 *
 * Only on x86-64. Elsewhere every cell counts as a cell with effects.
 */
#pragma once

#include "wire/wire.h"

/* In the zygote, when the template is imported. */
void effects_prepare(void);

/* A cell begins. */
void effects_begin(void);

/* A cell ends: enum wire_effects that it had, or'ed. */
unsigned effects_end(void);

/* The same of the last cell that ended. */
unsigned effects_last(void);
