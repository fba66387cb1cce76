/*
 * The network of one jail: its loopback, and the sockets on it that lead outside. Called by the
 * jail's init while it still has the privileges to do so.
 */
#pragma once

#include "jail/jail.h"

/* Brings lo up. *ret_step names what failed. */
int net_up(const char **ret_step);

/*
 * Opens the sockets of `n` in the jail's network namespace, for somebody outside to accept on: a
 * socket stays in the namespace it was made in, whoever holds it. Adds the hosts to /etc/hosts.
 * ret_fds holds JAIL_LISTEN_MAX.
 */
int net_open(const struct jail_network *n, int *ret_fds, const char **ret_step);
