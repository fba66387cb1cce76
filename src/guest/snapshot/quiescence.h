/*
 * Whether the main thread is alone in the guest: no other thread, no child process. A copy is a
 * fork, which has one thread and cannot wait for its parent's children.
 *
 * A thread or process that has ended for Python may not have ended for the kernel: a joined thread
 * may still free its stack, a killed process its memory. The check waits for these for a bounded
 * time; only threads and processes that remain prevent a copy.
 */
#pragma once

#include <stdbool.h>

#include "guest/run/cell.h"
#include "guest/snapshot/open_files.h"

/*
 * With the GIL held. False, with who is there in `why`, when it is not alone and will not soon be.
 */
bool quiescence_check(const struct support *support, char why[HELD_WHY_MAX]);
