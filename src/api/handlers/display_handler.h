/* Declarations shared by the HTTP handlers of displays. */
#pragma once

#include <stdbool.h>

struct call;

/* The status for what a screen or session/display/session_display.h called by that word. */
int display_status_of(const char *code);

/*
 * Has the toolkits of an idle session paint their windows, and calls `then` in another turn of the
 * loop; an error of it is no error of the call. False when there is nothing to paint: the session
 * has no windows, or runs a cell. The call has no other work meanwhile.
 */
bool refresh_windows(struct call *c, void (*then)(struct call *c));
