/*
 * Names to addresses, in threads: the system's own getaddrinfo() blocks. A tag comes back with its
 * answer; what nobody waits for any more is thrown away by the asker. One group (a session) never
 * takes more than its share of the threads.
 */
#pragma once

#include <netinet/in.h>
#include <stdint.h>

enum { RESOLVER_THREADS = 8, RESOLVER_SHARE = 2, RESOLVER_ADDRESSES = 16 };

struct resolver;

struct resolver_answer {
	uint64_t tag;
	int err; /* of getaddrinfo(), 0 when there are addresses */
	unsigned n;
	struct in6_addr address[RESOLVER_ADDRESSES]; /* IPv4 ones mapped, in the system's order */
};

/* Starts the threads; they live as long as the process. */
int resolver_create(struct resolver **ret);
int resolver_fd(const struct resolver *r); /* readable when answers are there */

int resolver_ask(struct resolver *r, uint64_t tag, uint32_t group, const char *name);

/* 1 and *ret, or 0. */
int resolver_next(struct resolver *r, struct resolver_answer *ret);
