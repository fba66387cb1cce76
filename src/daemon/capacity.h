/*
 * How many sessions this process and this machine can carry: descriptors, processes and memory are
 * looked at once, at the start, so that a server does not promise what would end in errors later.
 */
#pragma once

struct config;

/*
 * Raises the limit of open files to what the system allows: for root that is fs.nr_open, else the
 * hard limit.
 */
void capacity_raise_descriptors(void);

/* Lowers max_sessions to what can be carried, and says so. */
void capacity_settle(struct config *c);
