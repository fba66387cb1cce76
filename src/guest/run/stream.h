/*
 * sys.stdout and sys.stderr of a guest: text streams in C over descriptors 1 and 2.
 *
 * Writes are collected in a buffer, because one write(2) per print() would take ten times as long
 * as the print() itself. The buffer is written when it is full, on flush(), before anything else
 * could write to the same descriptor (fork, exec, subprocess, os.system), at the end of a cell,
 * when the process dies by os._exit or a fatal signal, and otherwise a few milliseconds after its
 * first byte by a timer signal, so that a reader sees `print("x"); time.sleep(60)` at once. Order
 * within a descriptor is therefore the order of writing.
 */
#pragma once

#include <stdbool.h>

#include "guest/run/python.h"

/*
 * In the zygote, once: makes the types and hooks, and sys.stdout and sys.stderr of them. -1 with a
 * Python error.
 */
int stream_prepare(void);

/* In the guest: the timer of this process, without which every write goes out at once. */
void stream_start(void);

/* Writes out what both hold. Safe in a signal handler. */
void stream_flush_all(void);

/*
 * Between a call with true and one with false, the timer's signal does not come: whatever is written goes out at once. For code that waits
 * for a signal, whatever signal it is. With the GIL held; calls nest.
 */
void stream_hold_nothing(bool on);
