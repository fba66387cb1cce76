/*
 * The content of the directories that a session can write to (/workspace, /tmp, /dev/shm) as it was when a copy of the guest was parked, kept in the
 * guest's own memory: every copy has, through fork, what the files were at its time, what did not change between two looks is shared between all of
 * them, and code that empties the disk cannot reach it. Counts as the session's memory, up to a maximum for all together, of which /workspace has the
 * first share. A directory with more is left as it is, and that is told. The display's socket below /tmp is not the session's, and not looked at.
 */
#pragma once

#include <stdint.h>

/* How many bytes of files may be kept; 0 for none at all. Until it is called nothing is kept. */
void file_snapshot_allow(uint64_t bytes);

/* Looks at the directories and takes up what changed since the last look. Never fails: see store_left(). */
void file_snapshot_update(void);

/* Why the files of /workspace, at the last look, are not all here, as a clause; NULL when they are. */
const char *store_problem(void);

/* The same for all directories, which are named; NULL when all files are here. Valid until the next call. */
const char *store_left(void);

/*
 * Makes the directories what they were at the last look: in place where a file is still the same one, so that descriptors stay good. Returns which
 * could not be, as store_left() does; NULL when all are.
 */
const char *file_snapshot_restore(void);

/* Removes everything in them. */
void file_snapshot_wipe(void);
