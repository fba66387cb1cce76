/*
 * Which of some blocks of memory a piece of code touches. Pages would tell too little, because what is touched lies alone among much that is not. So the
 * pages of these blocks are made inaccessible, or read-only; each access traps, is noted, and is let through by a single step. Some 10 µs each, so
 * that a page that told nothing new for a while is left open. x86-64 only; for a process with one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum trace { TRACE_WRITES, TRACE_ALL };

/* Looks at the memory there is; then the blocks that are of interest. Those in mappings that came later, or in small ones, are not watched. False where
 * nothing can be traced. */
bool access_trace_begin(void);
void access_trace_watch(const void *block, size_t size);

/* Runs the code and notes where it writes, or also where it reads. What the kernel reads or writes for it in such pages fails then (EFAULT). */
void access_trace_run(enum trace what, void (*code)(void));

/* Whether the last run touched any of these bytes. */
bool access_trace_touched(const void *block, size_t size);
