/*
 * A custom system tree for sessions (`rootfs`), instead of the host's tree: made by debootstrap, or
 * copied.
 *
 * The zygote then runs inside this tree, too: it is the Python of the tree, which must have the
 * version that this program was built for, with the guest module beside it. `glovebox inside`
 * starts the zygote in the tree.
 */
#pragma once

#include "base/error.h"

/* Where the guest module lies in such a tree. */
#define ROOTFS_MODULE "glovebox-guest.so"

/* Whether sessions can run in it; else says what is missing in it. */
int rootfs_check(const char *path, struct error *e);

/*
 * The lines for tree_prepare() with those of `shown` (or NULL) behind them; NULL without memory.
 * The caller frees.
 */
char *rootfs_shown(const char *path, const char *module, const char *shown);

/*
 * `glovebox inside PROGRAM ARGUMENT…`: moves into the tree of the jailer (descriptor
 * ZYGOTE_JAILER_FD) with a /tmp of its own, and starts the program there.
 */
int rootfs_inside_main(int argc, char **argv);
