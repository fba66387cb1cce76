/*
 * Sockets that a jail's init keeps for the daemon: the parked copies of the jail's guests wait for
 * orders on them. The daemon would need one descriptor for each copy; instead it sends orders
 * through the init (JAIL_KEEP, JAIL_FORWARD, JAIL_DROP in jail.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jail/jail.h"

/*
 * Handles one of the three orders, whose first byte was read, with the descriptors that came along:
 * all of them are closed or kept. False when the daemon is gone.
 */
bool kept_sockets_obey(int control, char order, int *fds, size_t n_fds);
