/*
 * The sandbox of the proxy itself: the proxy talks to hostile sessions and to the network, so it
 * keeps only the privileges that this needs.
 */
#pragma once

/*
 * First, before there are threads (these hold for one only): gives up root with its capabilities,
 * and writing files.
 */
int proxy_sandbox_enter(void);

/*
 * Last, for all threads: every system call but those of relaying and resolving. Both return 0 or a
 * negative errno.
 */
int confine_calls(void);
