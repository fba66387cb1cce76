#include "jail/idle_net.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/fds.h"

static int home = -1; /* the jailer's own; inits close it with all else */

int idle_net_prepare(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return home < 0 ? -errno : 0;
}

/*
 * The kernel counts the sockets of all families in the namespace this process is in. A socket can
 * outlive the processes: one that was sent to itself stays, with its name, until the kernel looks
 * for such circles. What cannot be read counts as not clean.
 */
static bool has_no_sockets(void)
{
	static const char none[] = "sockets: used 0\n";
	char text[sizeof(none) - 1];
	int fd = open("/proc/self/net/sockstat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	fd_close(fd);
	return n == (ssize_t)sizeof(text) && !memcmp(text, none, sizeof(text));
}

int idle_net_enter(int net)
{
	if (net >= 0 && setns(net, CLONE_NEWNET) == 0 && has_no_sockets())
		return 0;
	return unshare(CLONE_NEWNET) < 0 ? -errno : 0;
}

void idle_net_leave(void)
{
	/* else the sockets of its next jails would be made in this one */
	if (setns(home, CLONE_NEWNET) < 0)
		_exit(1);
}
