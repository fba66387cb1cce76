/* Trouble with a display, as HTTP. */
#pragma once

/* The status for what a screen or session/display/session_display.h called by that word. */
int display_status_of(const char *code);
