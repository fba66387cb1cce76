/*
 * The system tree that every jail of this daemon shares: read-only, without set-uid bits, with
 * nothing of the host's own data.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum { TREE_SHOWN_MAX = 16, TREE_MODULE = '+' };

/*
 * Builds the tree in a mount namespace of the caller's own and makes it the root; the old root is
 * detached. The caller already sits in a private mount namespace in which it may mount. `shown`
 * (may be NULL) names directories of the host's that jails see as well, read-only: a line "HOST
 * DIRECTORY<tab>NAME" each, which becomes /NAME. Four kinds of lines are special: with an empty
 * NAME the directory holds the system that jails see instead of the host's, a NAME that begins with
 * MOUNTS_MARK (mounts.h) is for jails that ask for it, MOUNTS_VOLUMES_MARK is the directory of the
 * volumes, and a NAME that begins with TREE_MODULE is a file, copied to /run/REST.
 */
int tree_prepare(const char *shown, struct error *e);

/* Makes a mount read-only and nosuid, with these flags besides. */
int tree_remount_read_only(const char *at, unsigned long more);

/*
 * The mounts a single jail adds: /workspace, /tmp, /dev/shm, and /dev/pts with at most
 * TREE_TERMINALS pseudo-terminals (the machine has some thousands for all). Called by its init.
 * *ret_step names what failed. /proc is mounted after them: proc_files.h.
 */
#define TREE_TERMINALS "32"
int tree_add_private(unsigned long long disk_bytes, unsigned long long inodes, bool noexec,
	const char **ret_step);
