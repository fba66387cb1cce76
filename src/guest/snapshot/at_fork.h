/*
 * os.register_at_fork() of modules that the template imports (random, threading, logging, …).
 *
 * Their hooks must run when a guest forks, and must not when the guest itself is forked from the
 * zygote: they would write to memory that the guest should continue to share, and undo a seed. So
 * the hooks are kept in a list, behind one set of our own hooks that knows which kind of fork it
 * is.
 */
#pragma once

/*
 * In the zygote, before the template is imported: modules' hooks go to the list. -1 with a Python
 * error.
 */
int at_fork_prepare(void);

/* In the zygote, after it: os.register_at_fork is Python's own again. */
void at_fork_settle(void);

/* In the guest: from here on the hooks run. */
void at_fork_begin(void);
