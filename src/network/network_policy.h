/*
 * The network that a session requests, the network that a server allows, and the jail's settings
 * for it.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "jail/jail.h"
#include "network/rules.h"

/* A session's network. All zero: not asked for, the server's default. */
struct network_policy {
	bool given;
	enum jail_net net;
	char **allow; /* JAIL_NET_ALLOW: rules as texts, NULL at the end; else NULL */
};

/* "none", "loopback", or rules separated by commas. */
int network_policy_parse(const char *text, struct error *e, struct network_policy *ret);

/*
 * From a list of rules; they are checked and written in one form. An empty list is loopback:
 * nothing else is reached.
 */
int network_policy_allow(char *const *rules, struct error *e, struct network_policy *ret);
int network_policy_copy(const struct network_policy *p, struct network_policy *ret);
void network_policy_finish(struct network_policy *p);

/* The most that may be asked for. All zero: nothing. */
struct network_most {
	bool any, loopback;
	struct network_rules rules;
};

/* From a list of "none", "loopback", "any" and rules (NULL at the end). */
int network_most_parse(char *const *list, struct error *e, struct network_most *ret);
void network_most_finish(struct network_most *m);

/* -EACCES (slug "network_not_allowed"), with what is too much. */
int network_most_check(
	const struct network_most *m, const struct network_policy *p, struct error *e);

/*
 * The way out of a jail for these rules: the proxy's own socket first; then, so that programs that
 * know nothing of proxies work as well, a socket for each rule that names one host and one port, to
 * which /etc/hosts (for a name) or lo (for an address) leads. ret_target gets for each of those the
 * index of its rule; ret_target[0] is unused. Rules beyond the room are reached through the proxy
 * only.
 */
void network_plan(
	char *const *allow, struct jail_network *ret, unsigned ret_target[JAIL_LISTEN_MAX]);

/*
 * The ports of 127.0.0.1 and ::1 of the jail on which the way out listens, for rules that name a
 * server of the machine's own loopback. Returns how many.
 */
unsigned network_loopback_ports(char *const *allow, uint16_t ret[JAIL_LISTEN_MAX]);
