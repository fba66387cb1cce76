#include "jail/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

enum { BACKLOG = 128, HOSTS_OWN_MAX = 4096 };

/* linux/ipv6.h has it, and cannot be included beside netinet/in.h. */
struct address6 {
	struct in6_addr address;
	uint32_t bits;
	int interface;
};

int net_up(const char **ret_step)
{
	struct ifreq r = { .ifr_name = "lo" };
	*ret_step = "bringing the loopback up";
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	return ioctl(fd, SIOCSIFFLAGS, &r) < 0 ? -errno : 0;
}

static bool is_v4(const struct jail_listen *l)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)l->address);
}

/*
 * An alias of lo for each: a name of its own, then a mask, or a whole class of addresses would come
 * with it.
 */
static int add_address4(const uint8_t *address, unsigned index)
{
	struct ifreq r = { 0 };
	struct sockaddr_in a = { .sin_family = AF_INET };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	snprintf(r.ifr_name, sizeof(r.ifr_name), "lo:%u", index);
	memcpy(&a.sin_addr, address, 4);
	memcpy(&r.ifr_addr, &a, sizeof(a));
	if (ioctl(fd, SIOCSIFADDR, &r) < 0)
		return errno == EEXIST ? 0 : -errno;
	a.sin_addr.s_addr = INADDR_BROADCAST;
	memcpy(&r.ifr_netmask, &a, sizeof(a));
	return ioctl(fd, SIOCSIFNETMASK, &r) < 0 ? -errno : 0;
}

static int add_address6(const uint8_t *address)
{
	struct address6 r = { .bits = 128, .interface = (int)if_nametoindex("lo") };
	_cleanup_fd_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	memcpy(&r.address, address, sizeof(r.address));
	return ioctl(fd, SIOCSIFADDR, &r) < 0 && errno != EEXIST ? -errno : 0;
}

static int add_address(const struct jail_listen *l, unsigned index)
{
	if (is_v4(l))
		return l->address[12] == 127 ? 0 : add_address4(l->address + 12, index);
	return IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)l->address) ? 0
									 : add_address6(l->address);
}

static int listen_on(const struct jail_listen *l)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(l->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(l->port) };
	bool four = is_v4(l);
	int one = 1;

	memcpy(&v4.sin_addr, l->address + 12, 4);
	memcpy(&v6.sin6_addr, l->address, 16);
	_cleanup_fd_ int fd = socket(
		four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* FREEBIND: an IPv6 address that was just given to lo is not usable for a moment. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
	if (bind(fd, four ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
		    four ? sizeof(v4) : sizeof(v6)) < 0 ||
		listen(fd, BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/*
 * The shared tree is read-only: the jail's own file, on its own tmpfs and without a name there,
 * covers the common one.
 */
static int add_hosts(const char *lines)
{
	static const char place[] = "/dev/shm/.hosts";
	_cleanup_free_ char *common = NULL;
	size_t len;

	if (!*lines)
		return 0;
	int r = fd_read_file("/etc/hosts", HOSTS_OWN_MAX, &common, &len);
	if (r < 0)
		return r;
	_cleanup_fd_ int fd = open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return -errno;
	if ((r = fd_write_full(fd, common, len)) < 0 ||
		(r = fd_write_full(fd, lines, strlen(lines))) < 0)
		return r;
	if (mount(place, "/etc/hosts", NULL, MS_BIND, NULL) < 0 ||
		mount(NULL, "/etc/hosts", NULL,
			MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
			NULL) < 0)
		return -errno;
	return unlink(place) < 0 ? -errno : 0;
}

int net_open(const struct jail_network *n, int *ret_fds, const char **ret_step)
{
	int r;
	*ret_step = "opening the way out";
	for (unsigned i = 0; i < n->n_listen && i < JAIL_LISTEN_MAX; i++) {
		if ((r = add_address(&n->listen[i], i)) < 0 || (r = listen_on(&n->listen[i])) < 0)
			return r; /* the init ends, and its descriptors with it */
		ret_fds[i] = r;
	}
	*ret_step = "naming the hosts";
	return add_hosts(n->hosts);
}
