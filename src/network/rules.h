/*
 * What of the network a session may reach: `none`, `loopback`, or a list of rules.
 *
 *   rule = host ":" port
 *   host = a name · "*.domain" (everything below it, not itself) · "*" (any name or public address) · an IPv4 address ·
 *          an IPv6 address in brackets · either of them with "/bits" (in the brackets or behind them)
 *   port = number · first "-" last · "*"
 *
 * A name is allowed as a name and an address as an address: a rule for a name says nothing about the address it has today, and a name
 * that leads to an address which is not public (loopback, private, link-local, metadata …) needs that address allowed as well.
 * Everything is parsed to one form (lower case, no trailing dot, IPv4 as mapped IPv6), so that comparing is comparing bytes. No I/O.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { NETWORK_NAME_MAX = 253, NETWORK_RULE_MAX = 288 };

enum network_host { NETWORK_NAME, NETWORK_BELOW, NETWORK_ANY, NETWORK_ADDRESS };

struct network_rule {
	enum network_host host;
	char name[NETWORK_NAME_MAX + 1]; /* NAME, BELOW (without "*.") */
	struct in6_addr address;         /* ADDRESS; IPv4 as ::ffff:a.b.c.d */
	uint8_t bits;                    /* ADDRESS: of the 128 that count */
	uint16_t first, last;            /* ports */
};

/* -EINVAL with what is wrong and how it is written. */
int network_rule_parse(const char *text, struct error *e, struct network_rule *ret);

/* As it would be written; buf holds NETWORK_RULE_MAX bytes and is returned. */
char *network_rule_format(const struct network_rule *r, char *buf);

/* Does the outer rule allow all that the inner one does? */
bool network_rule_covers(const struct network_rule *outer, const struct network_rule *inner);

/* One name or one address, and one port. */
bool network_rule_is_exact(const struct network_rule *r);

/*
 * A host as a client names it: an address (with or without brackets) or a name, in one form.
 * -EINVAL when it is neither.
 */
struct network_target {
	bool is_address;
	char name[NETWORK_NAME_MAX + 1];
	struct in6_addr address;
	uint16_t port;
};
int network_target_parse(const char *host, size_t len, uint16_t port, struct network_target *ret);
/* "example.org:443"; NETWORK_RULE_MAX bytes */
char *network_target_format(const struct network_target *t, char *buf);

/*
 * The kind of an address that is not public: "loopback", "private", "link-local" …; NULL for a
 * public address.
 */
const char *network_address_kind(const struct in6_addr *a);
char *network_address_format(const struct in6_addr *a, char *buf); /* INET6_ADDRSTRLEN bytes */
struct in6_addr network_address_v4(uint32_t host_order);

struct network_rules {
	struct network_rule *rule; /* owned */
	size_t n;
};

/* All texts (NULL at the end); the error names the one that is wrong. */
int network_rules_parse(char *const *texts, struct error *e, struct network_rules *ret);
void network_rules_finish(struct network_rules *r);

/* May a client ask for this at all: a name some rule has, or an address some rule has. */
bool network_rules_allow(const struct network_rules *r, const struct network_target *t);

/*
 * May a connection go to this address, to which an allowed target led: it is public, or itself
 * allowed.
 */
bool network_rules_allow_address(
	const struct network_rules *r, const struct in6_addr *a, uint16_t port);
