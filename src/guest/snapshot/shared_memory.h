/*
 * Finds memory that a parked copy would share permanently with its parent, which two sessions must
 * not do. Glovebox's own shared memory, to which no process writes any more, does not count.
 */
#pragma once

/* In a copy that has just been made. */
void shared_forget(void);

/*
 * What stands in the way of a fork, as a clause; NULL for nothing. Looked at once: a parked copy
 * maps nothing, and the list is long.
 */
const char *shared_memory(void);
