/*
 * The files about the machine that are the same in all jails and never change: the files about its
 * processors, and files with constant content.
 */
#pragma once

/*
 * Writes them into the tree below `root`, while the host's /proc can still be read: those of /proc
 * into PROC_FILES_SHARED, which each jail mounts over its own /proc, and the list of processors
 * into /sys, where libc and lscpu look for it. Returns 0 or a negative errno.
 */
int machine_add(const char *root);
