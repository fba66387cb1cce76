/* The jailer process: prepares the system tree once, then makes jails. Started by the session layer as `glovebox jailer`. */
#pragma once

/* Never returns before the daemon's socket (JAILER_SOCKET_FD) is closed; the exit code of the process. */
int jailer_main(void);
