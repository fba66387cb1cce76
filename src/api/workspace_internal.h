/* Declarations shared by the workspace files; private to them. */
#pragma once

#include <sys/types.h>

#include "api/workspace.h"

/*
 * As openat2() beneath the directory, without links or other mounts in the way. A descriptor, or a
 * negative errno.
 */
int workspace_open_beneath(int dir, const char *path, int flags, mode_t mode);

/* The error of the API for an errno; returns it. */
int workspace_fail(struct error *e, int err, const char *path);
