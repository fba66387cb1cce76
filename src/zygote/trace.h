/*
 * Which memory a piece of code touches, block by block: pages would tell too little, because what is touched lies alone among much that is not. The
 * heap is made inaccessible, or read-only; each access to it traps, is noted, and is let through by a single step. Some 10 µs each, so that a page that
 * told nothing new for a while is left open. x86-64 only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum trace { TRACE_WRITES, TRACE_ALL };

/* Runs the code and notes where it writes, or also where it reads. What the kernel reads or writes for it in the heap fails then (EFAULT). For a process with
 * one thread. False, without having run it, where that cannot be done. */
bool trace_run(enum trace what, void (*code)(void));

/* Whether the last one touched any of these bytes. */
bool trace_touched(const void *at, size_t size);
