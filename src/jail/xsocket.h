/*
 * The address of a session's X display: a listening socket and a cookie in the jail's own /tmp, so
 * that no other jail can name them. The holder of the listening descriptor decides when an X server
 * accepts connections on it; clients wait in its queue until then.
 */
#pragma once

#include <stdint.h>

enum { XSOCKET_COOKIE = 16, XSOCKET_FDS = 2 };

#define XSOCKET_DIR "/tmp/.X11-unix"
#define XSOCKET_AUTHORITY XSOCKET_DIR "/cookie"
#define XSOCKET_DISPLAY \
	":99" /* as programs written for coding_env expect; ":0" leads to the same socket */

/*
 * Writes the cookie in Xauthority's form, for any host and display; out holds
 * XSOCKET_AUTHORITY_BYTES.
 */
enum { XSOCKET_AUTHORITY_BYTES = 2 + 2 + 2 + 2 + 18 + 2 + XSOCKET_COOKIE };
void xsocket_authority(const uint8_t cookie[XSOCKET_COOKIE], uint8_t out[XSOCKET_AUTHORITY_BYTES]);

/*
 * Makes both in the calling process's /tmp, the socket under two names. ret_fds: [the listening
 * socket, its place as O_PATH: connecting to that reaches this socket, whatever the session does to
 * the path]. In the jail's init, as the session's user.
 */
int xsocket_make(const uint8_t cookie[XSOCKET_COOKIE], int ret_fds[XSOCKET_FDS]);
