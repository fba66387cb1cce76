/*
 * The descriptors a session holds when a copy of its guest is made. A copy shares them with the
 * guest, offsets and locks too, so descriptors of files are noted, closed in the parked copy, and
 * opened again in the guest that is made from it; other descriptors prevent the copy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { HELD_WHY_MAX = 256, HELD_OURS_MAX = 40 };

/*
 * Notes all descriptors above 2 but those that `ours` names (n of them, at most HELD_OURS_MAX). False, with the reason in
 * `why`, when one of them cannot be carried over: a pipe, a socket, a lock.
 */
bool open_files_note(const int *ours, size_t n, char why[HELD_WHY_MAX]);

/* Is one of them a connection to the display? Then `why` says so. */
bool held_display(char why[HELD_WHY_MAX]);

/* In the parked copy: lets go of the files. */
void open_files_release(void);

/*
 * In the live guest made from it: opens them again, where they were. In another jail, files without
 * a name are not its own: it loses them. There stdin and the descriptors that `ours` named, but for
 * the control socket, become /dev/null.
 */
void open_files_reopen(bool other_jail);
