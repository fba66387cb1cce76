#include "http/http_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"

static int bad_address(struct error *e, const char *text, const char *why)
{
	error_set(e, -EINVAL, "'%.200s' is not an address: %s", text, why);
	error_slug(e, "bad_address");
	error_remedy(e, "write host:port, [ipv6]:port or unix:/path, such as 127.0.0.1:8000");
	return -EINVAL;
}

static int parse_unix(const char *text, const char *path, struct error *e, struct http_address *a)
{
	if (path[0] != '/')
		return bad_address(e, text, "the path of the socket must start with '/'");
	if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return bad_address(e, text, "the path of the socket is too long");
	a->is_unix = true;
	snprintf(a->host, sizeof(a->host), "%s", path);
	return 0;
}

int http_address_parse(const char *text, struct error *e, struct http_address *ret)
{
	struct http_address a = { 0 };
	const char *host = text;
	uint64_t port;

	if (text_starts(text, "unix:")) {
		int r = parse_unix(text, text + 5, e, &a);
		if (r == 0)
			*ret = a;
		return r;
	}

	if (text_starts(host, "http://"))
		host += 7;
	else if (strstr(host, "://"))
		return bad_address(e, text, "only plain HTTP is supported");
	const char *colon = strrchr(host, ':');
	if (!colon)
		return bad_address(e, text, "the port is missing");
	size_t len = (size_t)(colon - host);
	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	} else if (memchr(host, ':', len)) {
		return bad_address(e, text, "an IPv6 address must be in brackets");
	}

	if (!len || len > HTTP_HOST_MAX)
		return bad_address(e, text, "the host is missing or too long");
	memcpy(a.host, host, len);
	size_t digits = strspn(colon + 1, "0123456789");
	const char *rest = colon + 1 + digits;
	if (digits && *rest == '/' && rest[1])
		return bad_address(e, text, "nothing may stand behind the port");
	if (!digits || digits > 5 || (*rest && !text_eq(rest, "/")))
		return bad_address(e, text, "the port is not a number");
	memcpy(a.port, colon + 1, digits);
	if (text_parse_u64(a.port, 0, 65535, &port) < 0)
		return bad_address(e, text, "the port is beyond 65535");
	*ret = a;
	return 0;
}

static int try_one(int family, const struct sockaddr *sa, socklen_t len,
	int (*use)(int fd, const struct sockaddr *sa, socklen_t len, void *userdata),
	void *userdata, int *ret_fd)
{
	_cleanup_fd_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int r = use(fd, sa, len, userdata);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

static int each_unix(const struct http_address *a,
	int (*use)(int fd, const struct sockaddr *sa, socklen_t len, void *userdata),
	void *userdata, int *ret_fd)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	snprintf(un.sun_path, sizeof(un.sun_path), "%.107s", a->host);
	return try_one(AF_UNIX, (struct sockaddr *)&un, sizeof(un), use, userdata, ret_fd);
}

int http_address_each(const struct http_address *a, bool passive,
	int (*use)(int fd, const struct sockaddr *sa, socklen_t len, void *userdata),
	void *userdata, struct error *e, int *ret_fd)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0) };
	struct addrinfo *list = NULL;
	int r = -EADDRNOTAVAIL;

	if (a->is_unix) {
		r = each_unix(a, use, userdata, ret_fd);
		return r < 0 ? error_set_errno(e, r, "unix:%s", a->host) : 0;
	}

	int g = getaddrinfo(a->host, a->port, &hints, &list);
	if (g)
		return error_set(e, -EADDRNOTAVAIL, "%s: %s", a->host, gai_strerror(g));
	for (const struct addrinfo *i = list; i && r != 0; i = i->ai_next)
		r = try_one(i->ai_family, i->ai_addr, i->ai_addrlen, use, userdata, ret_fd);
	freeaddrinfo(list);
	return r < 0 ? error_set_errno(e, r, "%s:%s", a->host, a->port) : 0;
}

void http_address_format(const struct sockaddr *sa, char *out, size_t size, unsigned *ret_port)
{
	char host[INET6_ADDRSTRLEN] = "?";
	unsigned port = 0;

	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
		port = ntohs(in->sin_port);
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(out, size, "%s:%u", host, port);
	} else if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
		port = ntohs(in6->sin6_port);
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(out, size, "[%s]:%u", host, port);
	} else {
		snprintf(out, size, "unix");
	}

	if (ret_port)
		*ret_port = port;
}
