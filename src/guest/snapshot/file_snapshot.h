/*
 * The content of the directories that a session can write to (/workspace, /tmp, /dev/shm) as it was
 * when a copy of the guest was parked, kept in the guest's own memory: through fork, every copy has
 * the files of its time, files that did not change between two scans are shared between all copies,
 * and code that deletes the files cannot reach the saved content. It counts as the session's
 * memory, up to a maximum for all directories together; /workspace is considered first. A directory
 * that exceeds the maximum is not saved, and this is reported. The display's socket below /tmp does
 * not belong to the session, and is skipped.
 */
#pragma once

#include <stdint.h>

/* How many bytes of files may be kept; 0 for none at all. Until it is called nothing is kept. */
void file_snapshot_allow(uint64_t bytes);

/*
 * Looks at the directories and takes up what changed since the last look. Never fails: see
 * store_left().
 */
void file_snapshot_update(void);

/*
 * Why the files of /workspace, at the last look, are not all here, as a clause; NULL when they are.
 */
const char *store_problem(void);

/*
 * The same for all directories, which are named; NULL when all files are here. Valid until the next
 * call.
 */
const char *store_left(void);

/*
 * Makes the directories what they were at the last look: in place where a file is still the same
 * one, so that descriptors stay good. Returns which could not be, as store_left() does; NULL when
 * all are.
 */
const char *file_snapshot_restore(void);

/* Removes everything in them. */
void file_snapshot_wipe(void);
