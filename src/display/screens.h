/* `glovebox screens`: a small process of the daemon's that forks screens into jails, and starts plain X servers there. */
#pragma once

int screens_main(void);
