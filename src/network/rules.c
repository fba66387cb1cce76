#include "network/rules.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { LABEL_MAX = 63, V4_BITS = 96 };

static const uint8_t v4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static bool is_v4(const struct in6_addr *a)
{
	return !memcmp(a->s6_addr, v4_prefix, sizeof(v4_prefix));
}

struct in6_addr network_address_v4(uint32_t host_order)
{
	struct in6_addr a = { 0 };
	uint32_t wire = htonl(host_order);
	memcpy(a.s6_addr, v4_prefix, sizeof(v4_prefix));
	memcpy(a.s6_addr + 12, &wire, 4);
	return a;
}

static uint32_t v4_of(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool same_bits(const struct in6_addr *a, const struct in6_addr *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;
	if (memcmp(a->s6_addr, b->s6_addr, whole))
		return false;
	return !rest || !((a->s6_addr[whole] ^ b->s6_addr[whole]) >> (8 - rest));
}

char *network_address_format(const struct in6_addr *a, char *buf)
{
	if (is_v4(a))
		inet_ntop(AF_INET, a->s6_addr + 12, buf, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, a, buf, INET6_ADDRSTRLEN);
	return buf;
}

/* ---- kinds of addresses ----------------------------------------------------- */

/* The registries' special purpose ranges (IANA), first match first. */
static const struct {
	uint32_t address;
	unsigned bits;
	const char *kind;
} v4_kinds[] = { { 0x00000000, 8, "unspecified" }, { 0x7f000000, 8, "loopback" },
	{ 0x0a000000, 8, "private" }, { 0xac100000, 12, "private" }, { 0xc0a80000, 16, "private" },
	{ 0xa9fea9fe, 32, "metadata" }, { 0x646464c8, 32, "metadata" },
	{ 0xa9fe0000, 16, "link-local" }, { 0x64400000, 10, "carrier-private" },
	{ 0xc0000000, 24, "reserved" }, { 0xc0000200, 24, "reserved" },
	{ 0xc6336400, 24, "reserved" }, { 0xcb007100, 24, "reserved" },
	{ 0xc0586300, 24, "reserved" }, { 0xc6120000, 15, "reserved" },
	{ 0xe0000000, 4, "multicast" }, { 0xf0000000, 4, "reserved" } };

static const char *v4_kind(uint32_t address)
{
	for (size_t i = 0; i < ARRAY_LEN(v4_kinds); i++)
		if ((address ^ v4_kinds[i].address) >> (32 - v4_kinds[i].bits) == 0)
			return v4_kinds[i].kind;
	return NULL;
}

static const struct {
	uint8_t start[4];
	unsigned bits;
	const char *kind;
} v6_kinds[] = { { { 0xfe, 0x80 }, 10, "link-local" }, { { 0xfe, 0xc0 }, 10, "private" },
	{ { 0xfc }, 7, "private" }, { { 0xff }, 8, "multicast" },
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, "reserved" },
	{ { 0x20, 0x01, 0x00, 0x00 }, 32, "tunnelled" },
	{ { 0x20, 0x01, 0x00, 0x00 }, 23, "reserved" } };

const char *network_address_kind(const struct in6_addr *a)
{
	static const struct in6_addr nat64 = { .s6_addr = { 0, 0x64, 0xff, 0x9b } };
	static const struct in6_addr six_to_four = { .s6_addr = { 0x20, 0x02 } };

	if (is_v4(a))
		return v4_kind(v4_of(a->s6_addr + 12));
	if (IN6_IS_ADDR_LOOPBACK(a))
		return "loopback";
	/* Ways in which IPv6 carries an IPv4 address: as public as that one. */
	if (same_bits(a, &nat64, 96))
		return v4_kind(v4_of(a->s6_addr + 12));
	if (same_bits(a, &six_to_four, 16))
		return v4_kind(v4_of(a->s6_addr + 2));
	for (size_t i = 0; i < ARRAY_LEN(v6_kinds); i++) {
		struct in6_addr start = { 0 };
		memcpy(start.s6_addr, v6_kinds[i].start, sizeof(v6_kinds[i].start));
		if (same_bits(a, &start, v6_kinds[i].bits))
			return v6_kinds[i].kind;
	}

	/* 2000::/3 is all that was given out */
	return (a->s6_addr[0] & 0xe0) == 0x20 ? NULL : "reserved";
}

/* ---- parsing ---------------------------------------------------------------- */

/*
 * In lower case and without the last dot. Names whose last label is a number are how some programs
 * write addresses: no.
 */
static bool take_name(const char *s, size_t len, char *out)
{
	size_t label = 0, n = 0, label_start = 0;
	if (len && s[len - 1] == '.')
		len--;
	if (!len || len > NETWORK_NAME_MAX)
		return false;
	for (; n < len; n++) {
		unsigned char c = (unsigned char)s[n];
		if (c == '.') {
			if (!label || s[n - 1] == '-')
				return false;
			label = 0;
			label_start = n + 1;
		} else if (!(isalnum(c) || c == '_' || (c == '-' && label)) ||
			   ++label > LABEL_MAX || c > 127) {
			return false;
		}
		out[n] = (char)tolower(c);
	}

	out[n] = '\0';
	const char *last = out + label_start;
	return label && out[n - 1] != '-' && strspn(last, "0123456789") != label &&
	       !text_starts(last, "0x");
}

static bool take_address(const char *s, size_t len, struct in6_addr *out)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr v4;
	if (len >= sizeof(text))
		return false;
	memcpy(text, s, len);
	text[len] = '\0';
	if (strlen(text) != len)
		return false;
	if (inet_pton(AF_INET, text, &v4) == 1) {
		*out = network_address_v4(ntohl(v4.s_addr));
		return true;
	}
	return inet_pton(AF_INET6, text, out) == 1;
}

static int wrong(struct error *e, const char *text, const char *why)
{
	error_set(e, -EINVAL, "\"%.120s\" %s", text, why);
	error_remedy(e,
		"Write HOST:PORT, as in \"pypi.org:443\", \"*.example.org:443\", \"10.0.0.5:5432\", \"10.0.0.0/8:80-90\", \"[::1]:8080\" "
		"or \"example.org:*\".");
	return error_slug(e, "invalid_network_rule");
}

static int parse_ports(const char *text, const char *port, struct error *e, struct network_rule *r)
{
	uint64_t first, last;
	char number[8];

	if (text_eq(port, "*")) {
		r->first = 1;
		r->last = 65535;
		return 0;
	}

	const char *dash = strchr(port, '-');
	size_t len = dash ? (size_t)(dash - port) : strlen(port);
	if (!len || len >= sizeof(number))
		return wrong(e, text, "has no port between 1 and 65535");
	memcpy(number, port, len);
	number[len] = '\0';
	if (text_parse_u64(number, 1, 65535, &first) < 0 ||
		text_parse_u64(dash ? dash + 1 : number, 1, 65535, &last) < 0)
		return wrong(e, text, "has no port between 1 and 65535");
	if (first > last)
		return wrong(e, text, "has a range of ports that ends before it begins");
	r->first = (uint16_t)first;
	r->last = (uint16_t)last;
	return 0;
}

/* "10.0.0.0/8", "fd00::/8": without brackets. */
static int parse_address(
	const char *text, const char *s, size_t len, struct error *e, struct network_rule *r)
{
	const char *slash = memchr(s, '/', len);
	size_t address_len = slash ? (size_t)(slash - s) : len;
	uint64_t bits;
	char number[4] = "";

	if (!take_address(s, address_len, &r->address))
		return 0;
	unsigned most = memchr(s, ':', address_len) ? 128 : 32;
	if (slash) {
		size_t n = len - address_len - 1;
		if (n >= sizeof(number))
			return wrong(e, text, "has too many bits for this kind of address");
		memcpy(number, slash + 1, n);
		if (text_parse_u64(number, 0, most, &bits) < 0)
			return wrong(e, text, "has too many bits for this kind of address");
	} else {
		bits = most;
	}

	r->host = NETWORK_ADDRESS;
	r->bits = (uint8_t)(most == 32 ? bits + V4_BITS : bits);
	/* what does not count is zero, so that equal rules look equal */
	for (unsigned i = r->bits; i < 128; i++)
		r->address.s6_addr[i / 8] &= (uint8_t) ~(0x80U >> i % 8);
	return 1;
}

static int parse_host(
	const char *text, const char *s, size_t len, struct error *e, struct network_rule *r)
{
	char inner[64];
	if (len == 1 && *s == '*') {
		r->host = NETWORK_ANY;
		return 0;
	}

	if (len > 2 && s[0] == '*' && s[1] == '.') {
		r->host = NETWORK_BELOW;
		return take_name(s + 2, len - 2, r->name)
			       ? 0
			       : wrong(e, text, "has no domain after the star");
	}

	if (*s == '[') { /* [address], [address/bits] or [address]/bits */
		const char *close = memchr(s, ']', len);
		if (!close || len > sizeof(inner))
			return wrong(e, text, "has no IPv6 address in its brackets");
		size_t n = (size_t)(close - s) - 1, behind = len - n - 2;
		memcpy(inner, s + 1, n);
		memcpy(inner + n, close + 1, behind);
		int found = behind && close[1] != '/'
				    ? 0
				    : parse_address(text, inner, n + behind, e, r);
		return found ? found < 0 ? found : 0
			     : wrong(e, text, "has no IPv6 address in its brackets");
	}

	int found = parse_address(text, s, len, e, r);
	if (found)
		return found < 0 ? found : 0;
	r->host = NETWORK_NAME;
	return take_name(s, len, r->name)
		       ? 0
		       : wrong(e, text,
				 "has no host name or address (names in ASCII, xn--… for others)");
}

int network_rule_parse(const char *text, struct error *e, struct network_rule *ret)
{
	struct network_rule r;
	memset(&r, 0, sizeof(r)); /* all of it: rules are compared as bytes */
	const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
	if (strlen(text) >= NETWORK_RULE_MAX)
		return wrong(e, text, "is too long for a host and a port");
	if (!colon || colon == text || (bracket && colon < bracket))
		return wrong(e, text, "has no port");
	if (*text != '[' && memchr(text, ':', (size_t)(colon - text)))
		return wrong(e, text, "is an IPv6 address without brackets, or no address");
	int err = parse_host(text, text, (size_t)(colon - text), e, &r);
	if (err == 0)
		err = parse_ports(text, colon + 1, e, &r);
	if (err == 0)
		*ret = r;
	return err;
}

int network_target_parse(const char *host, size_t len, uint16_t port, struct network_target *ret)
{
	struct network_target t = { .port = port };
	if (!port)
		return -EINVAL;
	if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
		t.is_address = true;
		if (!memchr(host, ':', len) || !take_address(host + 1, len - 2, &t.address))
			return -EINVAL;
	} else if (take_address(host, len, &t.address)) {
		t.is_address = true;
	} else if (!take_name(host, len, t.name)) {
		return -EINVAL;
	}

	*ret = t;
	return 0;
}

/* ---- writing ---------------------------------------------------------------- */

static void format_address(const struct in6_addr *a, unsigned bits, char *buf, size_t size)
{
	char text[INET6_ADDRSTRLEN], mask[8] = "";
	bool v4 = is_v4(a) && bits >= V4_BITS;
	unsigned shown = v4 ? bits - V4_BITS : bits;
	network_address_format(a, text);
	if (shown != (v4 ? 32U : 128U))
		snprintf(mask, sizeof(mask), "/%u", shown);
	snprintf(buf, size, v4 ? "%s%s" : "[%s]%s", text, mask);
}

char *network_rule_format(const struct network_rule *r, char *buf)
{
	char host[NETWORK_NAME_MAX + 3] = "*", port[16] = "*";
	if (r->host == NETWORK_ADDRESS)
		format_address(&r->address, r->bits, host, sizeof(host));
	else if (r->host != NETWORK_ANY)
		snprintf(host, sizeof(host), "%s%s", r->host == NETWORK_BELOW ? "*." : "", r->name);
	if (r->first == r->last)
		snprintf(port, sizeof(port), "%u", r->first);
	else if (r->first != 1 || r->last != 65535)
		snprintf(port, sizeof(port), "%u-%u", r->first, r->last);
	snprintf(buf, NETWORK_RULE_MAX, "%s:%s", host, port);
	return buf;
}

char *network_target_format(const struct network_target *t, char *buf)
{
	char host[NETWORK_NAME_MAX + 3];
	if (t->is_address)
		format_address(&t->address, 128, host, sizeof(host));
	else
		snprintf(host, sizeof(host), "%s", t->name);
	snprintf(buf, NETWORK_RULE_MAX, "%s:%u", host, t->port);
	return buf;
}

/* ---- comparing -------------------------------------------------------------- */

/* Is the name below the domain? */
static bool is_below(const char *name, const char *domain)
{
	size_t n = strlen(name), d = strlen(domain);
	return n > d + 1 && name[n - d - 1] == '.' && !memcmp(name + n - d, domain, d);
}

static bool host_covers(const struct network_rule *outer, const struct network_rule *inner)
{
	switch (outer->host) {
	/* of addresses the public ones, and of ranges none: some of it may not be */
	case NETWORK_ANY:
		return inner->host != NETWORK_ADDRESS ||
		       (inner->bits == 128 && !network_address_kind(&inner->address));
	case NETWORK_NAME:
		return inner->host == NETWORK_NAME && text_eq(inner->name, outer->name);
	case NETWORK_BELOW:
		return (inner->host == NETWORK_BELOW && text_eq(inner->name, outer->name)) ||
		       ((inner->host == NETWORK_NAME || inner->host == NETWORK_BELOW) &&
			       is_below(inner->name, outer->name));
	case NETWORK_ADDRESS:
		/*
		 * A range of IPv6 that is wide enough to hold the mapped addresses is not meant to
		 * open IPv4.
		 */
		return inner->host == NETWORK_ADDRESS && inner->bits >= outer->bits &&
		       (outer->bits >= V4_BITS || !is_v4(&inner->address)) &&
		       same_bits(&inner->address, &outer->address, outer->bits);
	}

	return false;
}

bool network_rule_covers(const struct network_rule *outer, const struct network_rule *inner)
{
	return outer->first <= inner->first && outer->last >= inner->last &&
	       host_covers(outer, inner);
}

bool network_rule_is_exact(const struct network_rule *r)
{
	return r->first == r->last &&
	       (r->host == NETWORK_NAME || (r->host == NETWORK_ADDRESS && r->bits == 128));
}

static struct network_rule rule_of(const struct network_target *t)
{
	struct network_rule r = { .host = t->is_address ? NETWORK_ADDRESS : NETWORK_NAME,
		.bits = 128,
		.first = t->port,
		.last = t->port };
	r.address = t->address;
	memcpy(r.name, t->name, sizeof(r.name));
	return r;
}

bool network_rules_allow(const struct network_rules *rules, const struct network_target *t)
{
	struct network_rule asked = rule_of(t);
	for (size_t i = 0; i < rules->n; i++)
		if (network_rule_covers(&rules->rule[i], &asked))
			return true;
	return false;
}

bool network_rules_allow_address(
	const struct network_rules *rules, const struct in6_addr *a, uint16_t port)
{
	struct network_target t = { .is_address = true, .address = *a, .port = port };
	return !network_address_kind(a) || network_rules_allow(rules, &t);
}

int network_rules_parse(char *const *texts, struct error *e, struct network_rules *ret)
{
	struct network_rules r = { 0 };
	size_t n = 0;

	while (texts && texts[n])
		n++;
	if (!(r.rule = calloc(n + 1, sizeof(*r.rule))))
		return error_set(e, -ENOMEM, "out of memory");
	for (; r.n < n; r.n++) {
		int err = network_rule_parse(texts[r.n], e, &r.rule[r.n]);
		if (err < 0) {
			network_rules_finish(&r);
			return err;
		}
	}

	*ret = r;
	return 0;
}

void network_rules_finish(struct network_rules *r)
{
	free(r->rule);
	*r = (struct network_rules){ 0 };
}
