/* The process's command line as ps and /proc/self/cmdline show it. */
#pragma once

/*
 * Overwrites the arguments the process was started with: guests must not read the host's paths
 * there. The environment block behind them is wiped as well, after libc's environ got a copy of
 * what was in it. Does nothing where the kernel does not tell where they lie.
 */
void title_set(const char *title);
