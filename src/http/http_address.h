/* Where a server listens and a client connects: "host:port", "[v6]:port" or "unix:/path". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct error;

enum { HTTP_HOST_MAX = 255 };

struct http_address {
	bool is_unix;
	char host[HTTP_HOST_MAX + 1]; /* or the path of the socket; without brackets */
	char port[8];                 /* digits */
};

/* An "http://" in front and a '/' behind are allowed. -EINVAL with an example in the remedy. */
int http_address_parse(const char *text, struct error *e, struct http_address *ret);

/*
 * Calls use(fd, address) with a fresh CLOEXEC stream socket for each thing the address resolves to,
 * until one returns 0; that socket is *ret_fd. `passive` for listening. Else the error of the last
 * one.
 */
int http_address_each(const struct http_address *a, bool passive,
	int (*use)(int fd, const struct sockaddr *sa, socklen_t len, void *userdata),
	void *userdata, struct error *e, int *ret_fd);

/* "127.0.0.1:80", "[::1]:80" or "unix". */
void http_address_format(const struct sockaddr *sa, char *out, size_t size, unsigned *ret_port);
