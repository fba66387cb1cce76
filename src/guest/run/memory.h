/*
 * The guest's own view of its memory: the limit that Python can survive (a MemoryError), and the
 * peak of a cell.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Looks at what the process was born with, for the next memory_limit(), which has no time for it
 * then.
 */
void memory_weigh(void);

/* Lets the process use `bytes` of data beyond what it was born with; 0 for no limit. */
int memory_limit(uint64_t bytes);

/*
 * The limit is a little higher while a cell is compiled and while its error is reported: both must
 * work when nothing is left.
 */
void memory_lend(bool on);

/*
 * After an error about memory: when the session's variables keep what ran out, the limit is a
 * little higher from now on, so that the next cells can look at them and delete some. It is what it
 * was at the first cell that finds enough memory free.
 */
void memory_leave_room(void);

void memory_reset_peak(void);

/*
 * True while a copy of the process fits beside it: what was written since its birth is at most half
 * of its limit.
 */
bool memory_has_room_for_copy(void);
