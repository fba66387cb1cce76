/*
 * The one fork() by bare system call of processes that enter jails: guests of the zygote, processes
 * of displays. The child belongs to the caller's parent, the daemon (CLONE_PARENT), which can then
 * wait for it, and comes with its pidfd. No at-fork handler runs. The caller has one thread.
 */
#pragma once

#include <sys/types.h>

/*
 * As fork(). `cgroup`: the directory of a group of version 2 in which the child starts, or -1. -1
 * with errno on failure.
 */
pid_t clone_for_parent(int cgroup, int *ret_pidfd);
