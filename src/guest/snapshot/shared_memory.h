/*
 * Memory that a parked copy shares with its parent for good: two sessions must not. Memory of ours, which nobody writes to any more, is not meant.
 */
#pragma once

/* In a copy that has just been made. */
void shared_forget(void);

/* What stands in the way of a fork, as a clause; NULL for nothing. Looked at once: a parked copy maps nothing, and the list is long. */
const char *shared_memory(void);
