/* How Xvfb is started as a zygote: the daemon's side and the library's agree on these. */
#pragma once

#define XZYGOTE_PROGRAM "/usr/bin/Xvfb"
#define XZYGOTE_LIBRARY "glovebox-xserver.so" /* beside the guest module */
#define XZYGOTE_VARIABLE "GLOVEBOX_XSERVER"   /* the number of its display */

enum {
	XZYGOTE_LISTEN_FD = 3,
	XZYGOTE_COOKIE_FD = 5,
	XZYGOTE_FIRST_DISPLAY = 1000,
	XZYGOTE_DISPLAYS = 50000
};

/* Opened by the server at its first client. */
#define XZYGOTE_COOKIE_PATH "/proc/self/fd/5"

/*
 * What every X server is started with, behind the display's name, -screen and -dpi. No TCP, no
 * abstract socket, no path of its own: clients come through the socket it is given. -noreset
 * because the last client's end must not restart it.
 */
#define XZYGOTE_ARGUMENTS                                                                     \
	"-nolock", "-nolisten", "tcp", "-nolisten", "unix", "-nolisten", "local", "-noreset", \
		"-auth", XZYGOTE_COOKIE_PATH, "-s", "0"
