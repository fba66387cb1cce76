/* Sets of packages on a session's sys.path. */
#pragma once

#include <stddef.h>

/*
 * Puts the directory before those of the system's packages, behind the standard library: it may
 * replace what the system has, but not Python's own modules. Subprocesses find it, too
 * (PYTHONPATH).
 */
void packages_add(const char *path, size_t len);

/* In the zygote: puts _use_packages(path) into the module _glovebox. -1 with a Python error. */
int packages_prepare(void);
