/* Rules of what may be reached, and what clients say to the proxy, byte by byte. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "network/network_policy.h"
#include "network/proxy_protocol.h"
#include "network/rules.h"
#include "tap.h"

/* ---- rules ---------------------------------------------------------------------- */

static int shows_as(const char *text, const char *want)
{
	struct network_rule r;
	struct error e = { 0 };
	char buf[NETWORK_RULE_MAX];
	if (network_rule_parse(text, &e, &r) < 0) {
		printf("# %s: %s\n", text, e.text);
		return want == NULL && e.remedy[0] != '\0';
	}
	if (want && text_eq(network_rule_format(&r, buf), want))
		return 1;
	printf("# %s shows as %s\n", text, network_rule_format(&r, buf));
	return 0;
}

static void writing(void)
{
	OK(shows_as("pypi.org:443", "pypi.org:443"));
	OK(shows_as("PyPI.Org.:443", "pypi.org:443"));
	OK(shows_as("*.Example.org:*", "*.example.org:*"));
	OK(shows_as("*:80-90", "*:80-90"));
	OK(shows_as("10.1.2.3:5432", "10.1.2.3:5432"));
	OK(shows_as("10.1.2.3/8:1-65535", "10.0.0.0/8:*"));
	OK(shows_as("[::1]:8080", "[::1]:8080"));
	OK(shows_as("[fd00:1::/16]:80", "[fd00::]/16:80") &&
		shows_as("[fd00:1::]/16:80", "[fd00::]/16:80"));
	OK(shows_as("[::ffff:10.0.0.1]:80", "10.0.0.1:80"));
	OK(shows_as("xn--bcher-kva.example:443", "xn--bcher-kva.example:443"));
	OK(shows_as("a_b.example:1-1", "a_b.example:1"));
}

static void wrong_rules(void)
{
	static const char *const bad[] = { "", ":", "host", "host:", ":80", "host:0", "host:65536",
		"host:90-80", "host:80-", "host:-80", "host:x", "host:80 ", " host:80", "ho st:80",
		"host..org:80", ".host:80", "-host:80", "host-:80", "host-.org:80", "*host:80",
		"*.:80", "a.*.org:80", "::1:80", "[::1:80", "[::1]80", "[::1]", "[host]:80",
		"[]:80", "10.0.0.0/33:80", "10.0.0.0/:80", "10.0.0.0/-1:80", "[fd00::/129]:80",
		"127.1:80", "2130706433:80", "0x7f000001:80", "0177.0.0.1:80",
		("b\xc3\xbc"
		 "cher.example:443"),
		"http://host:80", "user@host:80", "host:80,other:80", "10.0.0.0/8/8:80",
		"[fd00::/16]/16:80", "[::1]x:80" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		OK(shows_as(bad[i], NULL));
	char label[400];
	memset(label, 'a', sizeof(label));
	memcpy(label + 64, ".org:80", 8);
	OK(shows_as(label, NULL)); /* a label of 64 */
	memset(label, 'a', sizeof(label));
	for (int i = 40; i < 300; i += 40)
		label[i] = '.';
	memcpy(label + 300, ":80", 4);
	OK(shows_as(label, NULL)); /* a name of 300 */
}

static int covers(const char *outer, const char *inner)
{
	struct network_rule o, i;
	return network_rule_parse(outer, NULL, &o) == 0 &&
	       network_rule_parse(inner, NULL, &i) == 0 && network_rule_covers(&o, &i);
}

static void covering(void)
{
	OK(covers("example.org:443", "EXAMPLE.org.:443") &&
		!covers("example.org:443", "example.org:80"));
	OK(!covers("example.org:443", "www.example.org:443") &&
		!covers("example.org:*", "example.org.evil.net:443"));
	OK(covers("*.example.org:443", "a.b.example.org:443") &&
		!covers("*.example.org:443", "example.org:443"));
	OK(!covers("*.example.org:443", "notexample.org:443") &&
		covers("*.example.org:*", "*.sub.example.org:1-9"));
	OK(!covers("*.sub.example.org:*", "*.example.org:443") &&
		covers("*.example.org:*", "*.example.org:*"));
	OK(covers("*:*", "example.org:443") && covers("*:*", "*.example.org:443") &&
		covers("*:443", "*:443") && !covers("*:443", "*:444"));
	OK(covers("*:*", "8.8.8.8:53") && !covers("*:*", "127.0.0.1:80") &&
		!covers("*:*", "169.254.169.254:80"));
	OK(!covers("*:*", "8.0.0.0/8:53") && !covers("*:*", "[::1]:80") &&
		!covers("*:*", "[::ffff:127.0.0.1]:80"));
	OK(covers("10.0.0.0/8:*", "10.9.8.7:80") && covers("10.0.0.0/8:*", "10.9.0.0/16:80") &&
		!covers("10.0.0.0/8:*", "11.0.0.1:80"));
	OK(!covers("10.0.0.0/16:*", "10.0.0.0/8:80") && !covers("10.0.0.1:80", "example.org:80") &&
		!covers("example.org:80", "10.0.0.1:80"));
	OK(covers("[fd00::]/8:*", "[fd12::1]:80") && !covers("[::]/0:*", "127.0.0.1:80") &&
		covers("0.0.0.0/0:*", "127.0.0.1:80"));
	OK(covers("h.org:80-90", "h.org:85") && covers("h.org:80-90", "h.org:80-90") &&
		!covers("h.org:80-90", "h.org:79-85"));
}

static const char *kind(const char *address)
{
	struct network_target t;
	if (network_target_parse(address, strlen(address), 80, &t) < 0 || !t.is_address)
		return "no address";
	const char *k = network_address_kind(&t.address);
	return k ? k : "public";
}

static void kinds(void)
{
	static const char *const all[][2] = { { "8.8.8.8", "public" }, { "127.0.0.1", "loopback" },
		{ "127.255.0.9", "loopback" }, { "10.0.0.1", "private" },
		{ "172.16.0.1", "private" }, { "172.31.255.255", "private" },
		{ "172.32.0.1", "public" }, { "192.168.1.1", "private" },
		{ "169.254.169.254", "metadata" }, { "169.254.1.1", "link-local" },
		{ "100.64.0.1", "carrier-private" }, { "100.128.0.1", "public" },
		{ "0.0.0.0", "unspecified" }, { "224.0.0.1", "multicast" },
		{ "255.255.255.255", "reserved" }, { "198.18.0.1", "reserved" },
		{ "::1", "loopback" }, { "::", "reserved" }, { "fe80::1", "link-local" },
		{ "fd00:ec2::254", "private" }, { "fec0::1", "private" },
		{ "ff02::1", "multicast" }, { "2606:4700::1111", "public" },
		{ "::ffff:127.0.0.1", "loopback" }, { "64:ff9b::7f00:1", "loopback" },
		{ "64:ff9b::808:808", "public" }, { "2002:7f00:1::", "loopback" },
		{ "2001:db8::1", "reserved" }, { "2001::1", "tunnelled" },
		{ "::127.0.0.1", "reserved" }, { "4000::1", "reserved" } };
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const char *is = kind(all[i][0]);
		printf("# %s is %s\n", all[i][0], is);
		OK(text_eq(is, all[i][1]));
	}
}

static void allowing(void)
{
	char *texts[] = { (char *)"example.org:443", (char *)"10.0.0.5:80", NULL };
	struct network_rules r;
	struct network_target t;
	struct in6_addr five = network_address_v4(0x0a000005), six = network_address_v4(0x0a000006),
			out = network_address_v4(0x08080808);
	OK(network_rules_parse(texts, NULL, &r) == 0 && r.n == 2);
	OK(network_target_parse("EXAMPLE.org", 11, 443, &t) == 0 && network_rules_allow(&r, &t));
	OK(network_target_parse("example.org", 11, 80, &t) == 0 && !network_rules_allow(&r, &t));
	OK(network_target_parse("8.8.8.8", 7, 443, &t) == 0 && t.is_address &&
		!network_rules_allow(&r, &t));
	/* where a name may lead */
	OK(network_rules_allow_address(&r, &out, 443) &&
		!network_rules_allow_address(&r, &six, 80));
	OK(network_rules_allow_address(&r, &five, 80) &&
		!network_rules_allow_address(&r, &five, 443));
	OK(network_target_parse("127.1", 5, 80, &t) < 0 &&
		network_target_parse("a\0b", 3, 80, &t) < 0 &&
		network_target_parse("", 0, 80, &t) < 0);
	OK(network_target_parse("a.org", 5, 0, &t) < 0 &&
		network_target_parse("[::1]", 5, 80, &t) == 0 && t.is_address);
	network_rules_finish(&r);
}

/* ---- policies ------------------------------------------------------------------- */

static int may(const struct network_most *m, const char *asked)
{
	struct network_policy p;
	struct error e = { 0 };
	if (network_policy_parse(asked, &e, &p) < 0)
		return -1;
	int r = network_most_check(m, &p, &e);
	network_policy_finish(&p);
	return r == 0 ? 1 : text_eq(e.slug, "network_not_allowed") ? 0 : -1;
}

static void policies(void)
{
	struct network_most m;
	struct network_policy p;
	char *nothing[] = { NULL }, *lo[] = { (char *)"loopback", NULL },
	     *any[] = { (char *)"any", NULL };
	char *some[] = { (char *)"*.example.org:443", (char *)"10.0.0.0/8:*", NULL };
	OK(network_most_parse(nothing, NULL, &m) == 0 && may(&m, "none") == 1 &&
		may(&m, "loopback") == 0 && may(&m, "a.org:1") == 0);
	network_most_finish(&m);
	OK(network_most_parse(lo, NULL, &m) == 0 && may(&m, "loopback") == 1 &&
		may(&m, "a.org:1") == 0);
	network_most_finish(&m);
	OK(network_most_parse(any, NULL, &m) == 0 && may(&m, "loopback") == 1 &&
		may(&m, "127.0.0.1:1,*:*") == 1);
	network_most_finish(&m);
	OK(network_most_parse(some, NULL, &m) == 0 && may(&m, "loopback") == 1 &&
		may(&m, "www.example.org:443,10.1.1.1:80") == 1);
	OK(may(&m, "www.example.org:443,example.org:443") == 0 && may(&m, "*:443") == 0);
	network_most_finish(&m);
	OK(network_policy_parse("wide", NULL, &p) < 0 &&
		network_policy_parse("a.org:1,,b.org:2", NULL, &p) < 0);
	OK(network_policy_allow(nothing, NULL, &p) == 0 && p.net == JAIL_NET_LOOPBACK && !p.allow);
	char *many[70];
	for (int i = 0; i < 69; i++)
		many[i] = (char *)"a.org:1";
	many[69] = NULL;
	OK(network_policy_allow(many, NULL, &p) < 0);
}

static void plans(void)
{
	char *rules[] = { (char *)"a.org:443", (char *)"*.b.org:443", (char *)"a.org:80",
		(char *)"127.0.0.1:9", (char *)"a.org:443", (char *)"localhost:80",
		(char *)"c.org:1-9", (char *)"c.org:7", (char *)"ba.org:1", NULL };
	struct jail_network n;
	unsigned target[JAIL_LISTEN_MAX];
	network_plan(rules, &n, target);
	OK(n.n_listen == 6 && n.listen[0].port == JAIL_PROXY_PORT);
	OK(n.listen[1].port == 443 && n.listen[2].port == 80 &&
		!memcmp(n.listen[1].address, n.listen[2].address, 16));
	OK(n.listen[3].port == 9 && n.listen[3].address[12] == 127 && target[3] == 3 &&
		target[4] == 7 && target[5] == 8);
	OK(text_eq(n.hosts, "127.77.1.1 a.org\n127.77.1.2 c.org\n127.77.1.3 ba.org\n"));
	char *many[60], text[60][16];
	for (int i = 0; i < 59; i++) {
		snprintf(text[i], sizeof(text[i]), "h%d.org:80", i);
		many[i] = text[i];
	}
	many[59] = NULL;
	network_plan(many, &n, target);
	OK(n.n_listen == JAIL_LISTEN_MAX && target[JAIL_LISTEN_MAX - 1] == JAIL_LISTEN_MAX - 2);
}

/* ---- dialogues ------------------------------------------------------------------ */

struct said {
	enum proxy_protocol_event event;
	struct proxy_protocol d;
	struct buffer reply;
	char target[NETWORK_RULE_MAX];
};

/* All at once, or a byte at a time: it must be the same. */
static struct said say(const void *data, size_t len, size_t step)
{
	struct said s = { 0 };
	proxy_protocol_init(&s.d);
	for (size_t at = 0; at < len && s.event == DIALOGUE_MORE; at += step)
		s.event = proxy_protocol_feed(
			&s.d, (const char *)data + at, len - at < step ? len - at : step, &s.reply);
	if (s.event == DIALOGUE_ASK)
		network_target_format(&s.d.target, s.target);
	return s;
}

static void forget(struct said *s)
{
	proxy_protocol_finish(&s->d);
	buffer_finish(&s->reply);
}

static int asks(const void *data, size_t len, const char *target, const char *rest)
{
	int good = 1;
	for (int slow = 0; slow < 2; slow++) {
		struct said s = say(data, len, slow ? 1 : len);
		good &= s.event == DIALOGUE_ASK && text_eq(s.target, target);
		if (!slow && rest) /* byte by byte it stops at the head */
			good &= s.d.in.len == strlen(rest) &&
				!memcmp(s.d.in.data, rest, s.d.in.len);
		if (!good && s.event == DIALOGUE_ASK)
			printf("# asks for %s, rest %.*s\n", s.target, (int)s.d.in.len,
				s.d.in.data ? s.d.in.data : "");
		forget(&s);
	}
	return good;
}

static int refuses(const void *data, size_t len, const char *reply, size_t reply_len)
{
	struct said s = say(data, len, len);
	int good = s.event == DIALOGUE_REFUSE && s.reply.len >= reply_len &&
		   !memcmp(s.reply.data, reply, reply_len);
	if (!good)
		printf("# event %d, reply %.*s\n", s.event, (int)s.reply.len,
			s.reply.data ? s.reply.data : "");
	forget(&s);
	return good;
}

#define ASKS(bytes, target, rest) asks(bytes, sizeof(bytes) - 1, target, rest)
#define REFUSES(bytes, reply) refuses(bytes, sizeof(bytes) - 1, reply, sizeof(reply) - 1)

static void socks(void)
{
	OK(ASKS("\5\1\0\5\1\0\3\013example.org\1\273rest", "example.org:443", "rest"));
	OK(ASKS("\5\2\2\0\5\1\0\1\177\0\0\1\0\120", "127.0.0.1:80", ""));
	OK(ASKS("\5\1\0\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\120", "[::1]:80", ""));
	/* mapped: the IPv4 address */
	OK(ASKS("\5\1\0\5\1\0\4\0\0\0\0\0\0\0\0\0\0\377\377\12\0\0\1\0\120", "10.0.0.1:80", ""));
	OK(ASKS("\5\1\0\5\1\0\3\0129.9.9.9.9x\0\120", "9.9.9.9.9x:80", NULL));
	/* as a name: still the address */
	OK(ASKS("\5\1\0\5\1\0\3\011127.0.0.1\0\120", "127.0.0.1:80", ""));
	OK(REFUSES("\5\1\2", "\5\377")); /* wants a password */
	OK(REFUSES("\5\0", "\5\377"));
	OK(REFUSES("\5\1\0\5\2\0\1\177\0\0\1\0\120", "\5\0\5\7")); /* BIND */
	OK(REFUSES("\5\1\0\5\3\0\1\177\0\0\1\0\120", "\5\0\5\7")); /* UDP */
	OK(REFUSES("\5\1\0\5\1\0\2\177\0\0\1\0\120", "\5\0\5\10"));
	OK(REFUSES("\5\1\0\5\1\0\1\177\0\0\1\0\0", "\5\0\5\10")); /* port 0 */
	OK(REFUSES("\5\1\0\5\1\0\3\0\0\120", "\5\0\5\10"));       /* no name */
	OK(REFUSES("\5\1\0\5\1\0\3\3a\0b\0\120", "\5\0\5\10"));
	OK(REFUSES("\4\1\0\120\1\2\3\4\0", "HTTP/1.1 400 ")); /* SOCKS 4 */
}

static void connects(void)
{
	OK(ASKS("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n\26\3\1",
		"example.org:443", "\26\3\1"));
	OK(ASKS("CONNECT [2001:db8::1]:443 HTTP/1.0\r\n\r\n", "[2001:db8::1]:443", ""));
	/* Host does not count */
	OK(ASKS("CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: allowed.org:443\r\n\r\n", "127.0.0.1:443",
		""));
	OK(REFUSES("CONNECT example.org HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("CONNECT example.org:443@evil.org:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("CONNECT example.org:443/ HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("CONNECT example.org:443 evil.org:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("CONNECT  example.org:443 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("CONNECT example.org:443\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("CONNECT example.org:443 HTTP/2.0\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("CONNECT ::1:443 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("CONNECT example.org:443 HTTP/1.1\r\nno colon\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("CONNECT example.org:443 HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("CONNECT example.org:443 HTTP/1.1\r\nA: b\nX: y\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("CONNECT example.org:443 HTTP/1.1\r\nA b: c\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("GET https://example.org/ HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
}

static void plain(void)
{
	OK(ASKS("GET http://example.org/a?b=1 HTTP/1.1\r\nHost: evil.org\r\nAccept: */*\r\nProxy-Connection: keep-alive\r\n\r\n",
		"example.org:80",
		"GET /a?b=1 HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nConnection: close\r\n\r\n"));
	OK(ASKS("POST http://[::1]:8080 HTTP/1.0\r\ncontent-length: 2\r\nCONNECTION: keep-alive\r\n\r\nok",
		"[::1]:8080",
		"POST / HTTP/1.0\r\nHost: [::1]:8080\r\ncontent-length: 2\r\nConnection: close\r\n\r\nok"));
	OK(ASKS("GET HTTP://example.org?q HTTP/1.1\r\n\r\n", "example.org:80",
		"GET /?q HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"));
	/* a second request behind the first goes where the first one goes */
	OK(ASKS("GET http://example.org/ HTTP/1.1\r\n\r\nGET http://evil.org/ HTTP/1.1\r\n\r\n",
		"example.org:80",
		"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\nGET http://evil.org/ HTTP/1.1\r\n\r\n"));
	OK(REFUSES("GET http://user@example.org/ HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("GET http:///path HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("GET http://example.org:0/ HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("GET http://example.org\\@evil.org/ HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
	OK(REFUSES("GET http://2130706433/ HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "));
	size_t len = 80 * 1024;
	char *large = malloc(len);
	memset(large, 'a', len);
	memcpy(large, "GET http://a.org/", 17);
	OK(refuses(large, len, "HTTP/1.1 400 ", 13));
	free(large);
}

static void answers(void)
{
	struct said s = say("\5\1\0\5\1\0\3\5a.org\0\120", 15, 15);
	s.reply.len = 0;
	proxy_protocol_answer(&s.d, NETWORK_NOT_ALLOWED, "no", &s.reply);
	OK(s.reply.len == 10 && s.reply.data[1] == 2);
	forget(&s);
	s = say("CONNECT a.org:1 HTTP/1.1\r\n\r\n", 28, 28);
	proxy_protocol_answer(&s.d, NETWORK_NOT_PUBLIC, "a reason", &s.reply);
	OK(text_starts(buffer_cstr(&s.reply), "HTTP/1.1 403 a reason\r\n") &&
		strstr(s.reply.data, "\r\n\r\na reason\n"));
	forget(&s);
	s = say("GET http://a.org/ HTTP/1.1\r\n\r\n", 30, 30);
	proxy_protocol_answer(&s.d, NETWORK_ALLOWED, NULL, &s.reply);
	OK(s.reply.len == 0); /* the answer is the server's */
	forget(&s);
}

int main(void)
{
	writing();
	wrong_rules();
	covering();
	kinds();
	allowing();
	policies();
	plans();
	socks();
	connects();
	plain();
	answers();
	return tap_done();
}
