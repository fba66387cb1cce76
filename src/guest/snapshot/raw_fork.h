/*
 * Copies of this process by the bare system call: no at-fork handler runs. The copies are children
 * of the daemon, which is also our parent (CLONE_PARENT) and can wait for them. Each copy comes
 * with a pidfd. One thread only.
 */
#pragma once

#include <sys/types.h>

/*
 * In the zygote, by its main thread and before any filter: the guests' filter does not let them
 * ask.
 */
void raw_fork_prepare(void);

/* As fork(). *ret_pidfd is -1 when there is none: in the copy, and on failure. */
pid_t raw_fork_fork(int *ret_pidfd);

/*
 * A copy that takes our place: it goes on with our memory and our descriptors, and we end in the
 * same breath. For a process that has joined a pid namespace, where only children are: to fork
 * would be to copy the page tables, which is most of what a copy costs, a second time.
 *
 * 0 in the copy, whose own pidfd is *ret_pidfd; a negative errno when we are still there.
 */
int raw_fork_succeed(int *ret_pidfd);
