/*
 * Network namespaces of jails without a network. Making and destroying one takes a fifth of the CPU
 * time of a one-shot run, and a jail without a network leaves nothing in its namespace: code in it
 * has no capability over the namespace (it belongs to the jailer's user namespace, not to the
 * jail's) and may make unix sockets only. So a namespace is used again when nobody is left in it.
 */
#pragma once

/* In the jailer, once: leaves the host's network for an empty one of its own. */
int idle_net_prepare(void);

/*
 * Until idle_net_leave(), children of the jailer start in a network namespace that no other process
 * is in: in `net` (a descriptor; -1 for none) when no socket of it is left, else in a new one. The
 * caller knows that no process of the former jail is left.
 */
int idle_net_enter(int net);

/* Back to the jailer's own; a jailer that cannot go back ends. */
void idle_net_leave(void);
