/*
 * The content of /workspace as it was when a copy of the guest was parked, kept in the guest's own memory: every copy has, through
 * fork, what the files were at its time, what did not change between two looks is shared between all of them, and code that empties
 * the disk cannot reach it. Counts as the session's memory, up to a maximum; beyond it files are left as they are, and that is told.
 */
#pragma once

#include <stdint.h>

/* How many bytes of files may be kept; 0 for none at all. Until it is called nothing is kept. */
void store_allow(uint64_t bytes);

/* Looks at /workspace and takes up what changed since the last look. Never fails: see store_problem(). */
void store_update(void);

/* Why the files of the last look are not all here, as a clause; NULL when they are. */
const char *store_problem(void);

/* Makes /workspace what it was at the last look: in place where a file is still the same one, so that descriptors stay good. */
int store_restore(void);

/* Removes everything in /workspace. */
int store_wipe(void);
