/*
 * The daemon: sessions, API and HTTP server on one loop, from the first line of the log to the last
 * process gone.
 */
#pragma once

#include "daemon/config.h"

enum {
	SERVE_OK = 0,
	SERVE_FAILED = 1, /* could not start, or had to leave in a hurry */
	SERVE_USAGE = 2   /* a setting is wrong */
};

/*
 * Serves until SIGTERM or SIGINT, then drains: new work is refused, running cells get config.drain
 * seconds. A second signal ends them at once, a third ends the program. Returns an exit code. One
 * call per process.
 */
int serve_run(const struct config *config);
