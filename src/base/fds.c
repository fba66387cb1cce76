#include "base/fds.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/launcher.h"

void fd_close(int fd)
{
	int saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
}

void fd_close_clear(int *fd)
{
	fd_close(*fd);
	*fd = -1;
}

int fd_set_nonblock(int fd, int on)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int fd_set_cloexec(int fd, int on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

int fd_write_full(int fd, const void *data, size_t len)
{
	const char *p = data;
	while (len) {
		ssize_t n = write(fd, p, len);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int fd_write_waiting(int fd, const void *data, size_t len)
{
	const char *p = data;
	while (len) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}

	return 0;
}

int fd_read_full(int fd, void *data, size_t len)
{
	char *p = data;
	while (len) {
		ssize_t n = read(fd, p, len);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			return -ENODATA;
		p += n;
		len -= (size_t)n;
	}

	return 0;
}

int fd_read_file(const char *path, size_t max, char **ret_data, size_t *ret_len)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	_cleanup_free_ char *data = NULL;
	size_t len = 0, cap = 0;
	for (;;) {
		if (len == cap) {
			cap = cap ? cap * 2 : 4096;
			if (cap > max + 1)
				cap = max + 1;
			char *grown = realloc(data, cap + 1);
			if (!grown)
				return -ENOMEM;
			data = grown;
		}
		ssize_t n = read(fd, data + len, cap - len);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
	}

	data[len] = '\0';
	*ret_data = TAKE_PTR(data);
	if (ret_len)
		*ret_len = len;
	return 0;
}

static int open_resolved(int dir, const char *path, int flags, uint64_t resolve)
{
	enum { TRIES = 10000 }; /* some microseconds each */
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC), .resolve = resolve };
	for (int tries = 0;; tries++) {
		int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || tries == TRIES)
			return fd < 0 ? -errno : fd;
		sched_yield();
	}
}

int fd_open_in_root(int dir, const char *path, int flags)
{
	return open_resolved(dir, path, flags, RESOLVE_IN_ROOT);
}

int fd_open_beneath(int dir, const char *path, int flags)
{
	return open_resolved(
		dir, path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

int fd_socketpair(int type, int ret_pair[2])
{
	return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ret_pair) < 0 ? -errno : 0;
}

int fd_check_room(unsigned n)
{
	int fds[FDS_CHECKED_MAX], r = 0;
	unsigned have = 0;
	struct rlimit limit;

	assert(n <= FDS_CHECKED_MAX);
	/*
	 * The kernel assigns the lowest free number. If that number is in the lower half of the
	 * limit, many descriptors are free, except when a gap was left among used numbers.
	 */
	int lowest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	fd_close(lowest);
	if (lowest >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
		(rlim_t)lowest + n < limit.rlim_cur / 2)
		return 0;
	while (r == 0 && have < n) {
		fds[have] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
		r = fds[have] < 0 && (errno == EMFILE || errno == ENFILE) ? -errno : 0;
		have += r == 0;
	}

	while (have)
		fd_close(fds[--have]);
	return r;
}

static int send_flags(
	int sock, const void *data, size_t len, const int *fds, size_t n_fds, int flags)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * FDS_PER_MESSAGE_MAX)];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	assert(n_fds <= FDS_PER_MESSAGE_MAX);
	if (n_fds) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	for (;;) {
		ssize_t n = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
		if (n >= 0)
			return (size_t)n == len ? 0 : -EMSGSIZE;
		if (errno != EINTR)
			return -errno;
	}
}

int fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
	return send_flags(sock, data, len, fds, n_fds, 0);
}

int fd_send_now(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
	return send_flags(sock, data, len, fds, n_fds, MSG_DONTWAIT);
}

/*
 * Puts the descriptors of one control message into fds; those beyond max are closed. Returns how
 * many there were.
 */
static size_t take_rights(struct cmsghdr *c, int *fds, size_t have, size_t max)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < n; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		if (have + i < max)
			fds[have + i] = fd;
		else
			launcher_discard(fd);
	}
	return n;
}

static ssize_t recv_flags(int sock, void *data, size_t len, int *ret_fds, size_t max_fds,
	size_t *ret_n_fds, int flags, bool without)
{
	/* the kernel's: those that find no room it would close itself, in our time */
	enum { RIGHTS_MAX = 253 };
	union {
		char space[CMSG_SPACE(sizeof(int) * RIGHTS_MAX)];
		struct cmsghdr align;
	} control;
	int fds[FDS_PER_MESSAGE_MAX];
	struct iovec iov = { .iov_base = data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space) };
	ssize_t n;
	size_t have = 0;

	assert(max_fds <= FDS_PER_MESSAGE_MAX);
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			have += take_rights(c, fds, have, max_fds);
	/*
	 * The room for descriptors is as large as a message's: only a full table of ours makes the
	 * kernel cut them.
	 */
	bool no_room = msg.msg_flags & MSG_CTRUNC && have <= max_fds;
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || have > max_fds) {
		for (size_t i = 0; i < have && i < max_fds; i++)
			launcher_discard(fds[i]);
		if (!without || !no_room || msg.msg_flags & MSG_TRUNC)
			return -EMSGSIZE;
		have = 0;
	}

	for (size_t i = 0; i < max_fds; i++)
		ret_fds[i] = i < have ? fds[i] : -1;
	if (ret_n_fds)
		*ret_n_fds = have;
	return n;
}

ssize_t fd_recv(int sock, void *data, size_t len, int *ret_fds, size_t max_fds, size_t *ret_n_fds)
{
	return recv_flags(sock, data, len, ret_fds, max_fds, ret_n_fds, 0, false);
}

ssize_t fd_recv_or_drop(
	int sock, void *data, size_t len, int *ret_fds, size_t max_fds, size_t *ret_n_fds)
{
	return recv_flags(sock, data, len, ret_fds, max_fds, ret_n_fds, 0, true);
}
