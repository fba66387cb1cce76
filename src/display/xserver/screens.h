/*
 * `glovebox screens`: a small process of the daemon's that forks screens into jails, and starts
 * plain X servers and ffmpeg there.
 */
#pragma once

int screens_main(void);
