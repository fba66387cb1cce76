#include "guest/snapshot/received_fds.h"

#include <fcntl.h>
#include <string.h>

#include "base/fds.h"
#include "guest/run/guest.h"
#include "jail/jail.h"

static int fds[FDS_PER_MESSAGE_MAX]; /* oldest first */
static size_t n_fds;

ssize_t received_fds_read(void *data, size_t len)
{
	int came[FDS_PER_MESSAGE_MAX];
	size_t n = 0;
	ssize_t r = fd_recv(GUEST_CONTROL_FD, data, len, came, FDS_PER_MESSAGE_MAX, &n);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		/* High, where code that closes what it did not open does not reach. */
		int high = n_fds < FDS_PER_MESSAGE_MAX
				   ? fcntl(came[i], F_DUPFD_CLOEXEC, GUEST_FIRST_FD)
				   : -1;
		fd_close(came[i]);
		if (high >= 0)
			fds[n_fds++] = high;
	}
	return r;
}

int received_fd_take(void)
{
	if (!n_fds)
		return -1;
	int fd = fds[0];
	memmove(fds, fds + 1, --n_fds * sizeof(fds[0]));
	return fd;
}

void received_fds_drop(void)
{
	while (n_fds)
		fd_close(received_fd_take());
}

size_t received_fds_list(int to[FDS_PER_MESSAGE_MAX])
{
	memcpy(to, fds, n_fds * sizeof(fds[0]));
	return n_fds;
}
