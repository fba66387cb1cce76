/*
 * Directories of the host that a jail sees only when its request names them.
 *
 * The tree has all of them, each as a read-only view in a folder that every init covers before any
 * code runs: a jail without a request for a directory has no path to it. A view shows one file
 * system alone, never another one that is mounted below it.
 *
 * Volumes are the subdirectories of one more directory in that folder. They are made while the
 * server runs, and a jail may write to one that it asks for in this way.
 */
#pragma once

#include <stdbool.h>

#include "jail/jail.h"

/*
 * The begin of a NAME in what jails are shown (tree.h): such a directory is for jails that ask for
 * it.
 */
enum { MOUNTS_MARK = '=' };

/* The same for the directory that contains the volumes: its subdirectories are writable. */
enum { MOUNTS_VOLUMES_MARK = '~' };

/*
 * Letters, digits and _, at most JAIL_MOUNT_NAME - 1, not the name of a directory that every jail
 * has.
 */
bool mounts_is_name(const char *name);

/* Where a jail may have it: /NAME, or one word below /mnt. */
bool mounts_is_place(const char *name, const char *at);

/* Where a jail may have a volume: one word below /mnt. */
bool mounts_is_volume_place(const char *at);

/* Adds a directory to the tree that is built at `root`. */
int mounts_prepare(const char *root, const char *name, int directory);

/* Adds the directory that contains the volumes; see MOUNTS_VOLUMES_MARK. */
int mounts_prepare_volumes(const char *root, int directory);

/* The mounts of one jail; called by its init. *ret_step names what failed. */
int mounts_add(const struct jail_mounts *m, const char **ret_step);
