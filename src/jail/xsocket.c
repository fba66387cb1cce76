#include "jail/xsocket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

static const char path[] = XSOCKET_DIR "/X99", other_path[] = XSOCKET_DIR "/X0";

enum { BACKLOG = 128 };

void xsocket_authority(const uint8_t cookie[XSOCKET_COOKIE], uint8_t out[XSOCKET_AUTHORITY_BYTES])
{
	/* FamilyWild, no address, no number; lengths are big-endian. */
	static const uint8_t head[] = { 0xff, 0xff, 0, 0, 0, 0, 0, 18 };
	static const char name[] = "MIT-MAGIC-COOKIE-1";
	memcpy(out, head, sizeof(head));
	memcpy(out + sizeof(head), name, 18);
	out[sizeof(head) + 18] = 0;
	out[sizeof(head) + 19] = XSOCKET_COOKIE;
	memcpy(out + sizeof(head) + 20, cookie, XSOCKET_COOKIE);
}

static int write_authority(const uint8_t cookie[XSOCKET_COOKIE])
{
	uint8_t entry[XSOCKET_AUTHORITY_BYTES];
	/*
	 * Nonblocking: code of the session may have put a FIFO there, which would hold up the init.
	 */
	_cleanup_fd_ int fd = open(XSOCKET_AUTHORITY,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	xsocket_authority(cookie, entry);
	return fd_write_full(fd, entry, sizeof(entry));
}

int xsocket_make(const uint8_t cookie[XSOCKET_COOKIE], int ret_fds[XSOCKET_FDS])
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	memcpy(address.sun_path, path, sizeof(path));
	if (mkdir(XSOCKET_DIR, 0700) < 0 && errno != EEXIST)
		return -errno;
	int r = write_authority(cookie);
	if (r < 0)
		return r;
	_cleanup_fd_ int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listening < 0)
		return -errno;
	unlink(path);
	if (bind(listening, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(listening, BACKLOG) < 0)
		return -errno;
	unlink(other_path);
	if (symlinkat("X99", AT_FDCWD, other_path) < 0)
		return -errno;
	int place = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0)
		return -errno;
	ret_fds[0] = TAKE_FD(listening);
	ret_fds[1] = place;
	return 0;
}
