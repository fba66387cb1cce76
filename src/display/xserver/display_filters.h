/*
 * System call filters of a display's processes. They stand in the session's jail already, as its
 * code does; the filter takes from them what a session's code has and they do not need: programs,
 * new processes, new sockets, signals, writing to files.
 */
#pragma once

#include "display/protocol.h"
#include "jail/filter.h"

/*
 * For a film's ffmpeg; or for an X server forked from the zygote, or for a screen; with `plain` for
 * an X server that is started as a program: it reads its libraries, and has the shell run xkbcomp,
 * so that its list is longer. Owned by the caller: filter_finish().
 */
int display_filter_build(enum display_process process, bool plain, struct filter *ret);
