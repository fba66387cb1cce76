/*
 * What an X server and a screen process are given to begin with: a connection to the display's
 * socket, and its cookie.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "session/display/session_display_internal.h"

int display_connect(const struct display *d)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", d->place);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;

	fd_set_nonblock(fd, 0);
	return TAKE_FD(fd);
}

int display_authority(const struct display *d)
{
	uint8_t entry[XSOCKET_AUTHORITY_BYTES];
	_cleanup_fd_ int fd = memfd_create("cookie", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	xsocket_authority(d->cookie, entry);
	int r = fd_write_full(fd, entry, sizeof(entry));
	return r < 0 ? r : TAKE_FD(fd);
}
