/* What the files of the guests' filter share. */
#pragma once

#include "jail/filter.h"

/* Calls that send signals to processes of the jail, by their number; not to its init, and not to all of them at once. */
enum { FILTER_SIGNALS = 5 };
extern const char *const filter_signals[FILTER_SIGNALS];

/* Of a system call; negative when this libseccomp or architecture does not know it. */
int filter_number(const char *name);

/*
 * Puts the checks libseccomp cannot say in front of a program: jumps are relative, so the rest
 * stays as it is. *ret is the caller's.
 */
int filter_put_in_front(const struct filter *rest, struct filter *ret);
