/*
 * Finds out which of some blocks of memory a piece of code touches. Pages are too coarse for this:
 * touched objects lie scattered among untouched ones. The pages of the blocks are made inaccessible
 * or read-only; each access traps, is recorded, and is executed by a single step, in some 10 µs. A
 * page that brought no new block for a while is left open. x86-64 only; for a process with one
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum trace { TRACE_WRITES, TRACE_ALL };

/*
 * Looks at the memory there is; then the blocks that are of interest. Those in mappings that came
 * later, or in small ones, are not watched. False where nothing can be traced.
 */
bool access_trace_begin(void);
void access_trace_watch(const void *block, size_t size);

/*
 * Runs the code and notes where it writes, or also where it reads. What the kernel reads or writes
 * for it in such pages fails then (EFAULT).
 */
void access_trace_run(enum trace what, void (*code)(void));

/* Whether the last run touched any of these bytes. */
bool access_trace_touched(const void *block, size_t size);
