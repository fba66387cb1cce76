#include "network/network_policy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"

enum { HOST_NET = 0x7f4d0100 }; /* 127.77.1.0: names get the addresses from here on */

static void free_list(char **list)
{
	for (char **p = list; p && *p; p++)
		free(*p);
	free(list);
}

void network_policy_finish(struct network_policy *p)
{
	free_list(p->allow);
	*p = (struct network_policy){ 0 };
}

int network_policy_allow(char *const *rules, struct error *e, struct network_policy *ret)
{
	_cleanup_(network_policy_finish) struct network_policy p = { .given = true,
		.net = JAIL_NET_ALLOW };
	_cleanup_(network_rules_finish) struct network_rules parsed = { 0 };
	char text[NETWORK_RULE_MAX];
	int r = network_rules_parse(rules, e, &parsed);

	if (r < 0)
		return r;
	if (parsed.n > LIMIT_NETWORK_RULES) {
		error_set(e, -E2BIG, "%zu rules are more than the %d one session may have",
			parsed.n, LIMIT_NETWORK_RULES);
		return error_remedy(e, "Use wider ones: \"*.example.org:443\", \"10.0.0.0/8:*\".");
	}

	if (!(p.allow = calloc(parsed.n + 1, sizeof(*p.allow))))
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < parsed.n; i++)
		if (!(p.allow[i] = strdup(network_rule_format(&parsed.rule[i], text))))
			return error_set(e, -ENOMEM, "out of memory");
	if (!parsed.n) {
		free_list(TAKE_PTR(p.allow));
		p.net = JAIL_NET_LOOPBACK;
	}

	*ret = p;
	p = (struct network_policy){ 0 };
	return 0;
}

int network_policy_parse(const char *text, struct error *e, struct network_policy *ret)
{
	char *list[LIMIT_NETWORK_RULES + 2] = { NULL };
	_cleanup_free_ char *copy = NULL;
	size_t n = 0;

	for (int net = JAIL_NET_NONE; net <= JAIL_NET_LOOPBACK; net++) {
		if (text_eq(text, jail_net_name((enum jail_net)net))) {
			*ret = (struct network_policy){ .given = true, .net = (enum jail_net)net };
			return 0;
		}
	}

	if (!strchr(text, ':')) {
		error_set(e, -EINVAL, "'%.60s': unknown network", text);
		return error_remedy(
			e, "It is none, loopback, or rules such as pypi.org:443,*.example.org:*.");
	}

	if (!(copy = strdup(text)))
		return error_set(e, -ENOMEM, "out of memory");
	for (char *rest = copy, *one; (one = strsep(&rest, ",")) && n <= LIMIT_NETWORK_RULES;)
		list[n++] = one + strspn(one, " ");
	return network_policy_allow(list, e, ret);
}

int network_policy_copy(const struct network_policy *p, struct network_policy *ret)
{
	size_t n = 0;
	struct network_policy copy = { .given = p->given, .net = p->net };

	while (p->allow && p->allow[n])
		n++;
	if (p->allow && !(copy.allow = calloc(n + 1, sizeof(*copy.allow))))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!(copy.allow[i] = strdup(p->allow[i]))) {
			network_policy_finish(&copy);
			return -ENOMEM;
		}
	}

	*ret = copy;
	return 0;
}

/* ---- the most ------------------------------------------------------------------- */

void network_most_finish(struct network_most *m)
{
	network_rules_finish(&m->rules);
	*m = (struct network_most){ 0 };
}

int network_most_parse(char *const *list, struct error *e, struct network_most *ret)
{
	struct network_most m = { 0 };
	size_t n = 0, rules = 0;

	while (list && list[n])
		n++;
	_cleanup_free_ char **texts = calloc(n + 1, sizeof(*texts));
	if (!texts)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		if (text_eq(list[i], "any"))
			m.any = true;
		else if (text_eq(list[i], "loopback"))
			m.loopback = true;
		else if (!text_eq(list[i], "none"))
			texts[rules++] = list[i];
	}

	int r = network_rules_parse(texts, e, &m.rules);
	if (r < 0)
		return r;
	m.loopback |= m.any || rules > 0;
	*ret = m;
	return 0;
}

static int too_much(struct error *e, const char *what)
{
	error_set(e, -EACCES, "network: this server does not let sessions have %s", what);
	error_remedy(e, "Ask for less, or {allow_network}.");
	return error_slug(e, "network_not_allowed");
}

static bool covered(const struct network_most *m, const struct network_rule *asked)
{
	for (size_t i = 0; i < m->rules.n; i++)
		if (network_rule_covers(&m->rules.rule[i], asked))
			return true;
	return m->any;
}

int network_most_check(
	const struct network_most *m, const struct network_policy *p, struct error *e)
{
	struct network_rule asked;
	if (p->net == JAIL_NET_NONE)
		return 0;
	if (!m->loopback)
		return too_much(e, "a network");
	for (size_t i = 0; p->allow && p->allow[i]; i++) {
		int r = network_rule_parse(p->allow[i], e, &asked);
		if (r < 0)
			return r;
		if (!covered(m, &asked))
			return too_much(e, p->allow[i]);
	}
	return 0;
}

/* ---- inside a jail ---------------------------------------------------------------- */

static void add_listen(struct jail_network *n, const struct in6_addr *a, uint16_t port)
{
	struct jail_listen *l = &n->listen[n->n_listen++];
	memcpy(l->address, a->s6_addr, sizeof(l->address));
	l->port = port;
}

static bool listens(const struct jail_network *n, const struct in6_addr *a, uint16_t port)
{
	for (unsigned i = 0; i < n->n_listen; i++)
		if (!memcmp(n->listen[i].address, a, sizeof(*a)) && n->listen[i].port == port)
			return true;
	return false;
}

/*
 * The address a name has in the jail: that of an earlier rule for it, or the next one, with its
 * line in /etc/hosts.
 */
static bool name_address(
	struct jail_network *n, const char *name, unsigned *names, struct in6_addr *ret)
{
	char line[NETWORK_NAME_MAX + 40], address[INET6_ADDRSTRLEN], key[NETWORK_NAME_MAX + 3];
	size_t len = strlen(n->hosts);

	snprintf(key, sizeof(key), " %s\n", name);
	const char *known = strstr(n->hosts, key);
	if (known) {
		while (known > n->hosts && known[-1] != '\n')
			known--;
		unsigned last = (unsigned)strtoul(known + strlen("127.77.1."), NULL, 10);
		*ret = network_address_v4(HOST_NET + last);
		return true;
	}

	*ret = network_address_v4(HOST_NET + *names + 1);
	snprintf(line, sizeof(line), "%s%s", network_address_format(ret, address), key);
	if (len + strlen(line) >= sizeof(n->hosts))
		return false;
	memcpy(n->hosts + len, line, strlen(line) + 1);
	++*names;
	return true;
}

void network_plan(
	char *const *allow, struct jail_network *ret, unsigned ret_target[JAIL_LISTEN_MAX])
{
	struct network_rule r;
	struct in6_addr a;
	unsigned names = 0;

	memset(ret, 0, sizeof(*ret));
	inet_pton(AF_INET6, "::ffff:" JAIL_PROXY_ADDRESS, &a);
	add_listen(ret, &a, JAIL_PROXY_PORT);
	for (unsigned i = 0; allow && allow[i] && ret->n_listen < JAIL_LISTEN_MAX; i++) {
		if (network_rule_parse(allow[i], NULL, &r) < 0 || !network_rule_is_exact(&r) ||
			text_eq(r.name, "localhost"))
			continue;
		a = r.address;
		const char *kind = r.host == NETWORK_ADDRESS ? network_address_kind(&a) : NULL;
		/* lo cannot have these; there they would not be what was meant. */
		if (text_eq(kind, "multicast") || text_eq(kind, "unspecified") ||
			text_eq(kind, "link-local"))
			continue;
		if (r.host == NETWORK_NAME && !name_address(ret, r.name, &names, &a))
			continue;
		if (listens(ret, &a, r.first))
			continue;
		ret_target[ret->n_listen] = i;
		add_listen(ret, &a, r.first);
	}
}

unsigned network_loopback_ports(char *const *allow, uint16_t ret[JAIL_LISTEN_MAX])
{
	const struct in6_addr v4 = network_address_v4(INADDR_LOOPBACK), v6 = IN6ADDR_LOOPBACK_INIT;
	struct jail_network plan;
	unsigned target[JAIL_LISTEN_MAX], n = 0;

	network_plan(allow, &plan, target);
	for (unsigned i = 0; i < plan.n_listen; i++) {
		const struct jail_listen *l = &plan.listen[i];
		if (!memcmp(l->address, &v4, sizeof(v4)) || !memcmp(l->address, &v6, sizeof(v6)))
			ret[n++] = l->port;
	}
	return n;
}
