/*
 * The network of a sandbox: E2B's lists in the words of Glovebox's rules.
 *
 * E2B allows what is not denied; Glovebox allows what is named. So allowOut becomes the rules,
 * denyOut without allowOut means that nothing outside is reached, and true for
 * allow_internet_access, which E2B's Python SDK sends with every request, asks for nothing: the
 * sandbox has the server's default network.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/e2b/e2b_control.h"

enum { RULE_BYTES = 300 };

/* ---- rules -------------------------------------------------------------------------- */

static bool is_everything(const char *target)
{
	return text_eq(target, "0.0.0.0/0") || text_eq(target, "::/0");
}

/* An address, a range or a name of E2B's as a rule for all ports. */
static int write_rule(const char *target, char rule[RULE_BYTES])
{
	const char *slash = strchr(target, '/');
	int address = slash ? (int)(slash - target) : (int)strlen(target), n;
	if (is_everything(target))
		n = snprintf(rule, RULE_BYTES, "*:*");
	else if (memchr(target, ':', (size_t)address)) /* of IPv6 */
		n = snprintf(rule, RULE_BYTES, "[%.*s]%s:*", address, target, slash ? slash : "");
	else
		n = snprintf(rule, RULE_BYTES, "%s:*", target);
	return n < RULE_BYTES ? 0 : -ENAMETOOLONG;
}

static int allow_policy(const json_t *targets, struct network_policy *ret, struct error *e)
{
	size_t n = json_array_size(targets), i;
	char *rules[LIMIT_NETWORK_RULES + 1] = { 0 }, text[RULE_BYTES];
	json_t *v;
	int r = 0;
	if (n > LIMIT_NETWORK_RULES)
		return error_set(e, -EINVAL,
			"network.allowOut: at most %d destinations are possible",
			LIMIT_NETWORK_RULES);

	json_array_foreach((json_t *)(uintptr_t)targets, i, v)
	{
		if (r == 0 && (!json_is_string(v) || write_rule(json_string_value(v), text) < 0))
			r = error_set(e, -EINVAL,
				"network.allowOut: addresses, ranges and host names are possible");
		if (r == 0 && !(rules[i] = strdup(text)))
			r = error_set(e, -ENOMEM, "out of memory");
	}

	if (r == 0)
		r = network_policy_allow(rules, e, ret);
	for (i = 0; i < n; i++)
		free(rules[i]);
	return r;
}

/* ---- requests ----------------------------------------------------------------------- */

/* What no rule of Glovebox can express. */
static const char *unserved(const json_t *network)
{
	if (json_object_size(json_object_get(network, "rules")))
		return "network.rules is not served: requests of a sandbox are not changed on their way. Give the sandbox the headers' values with envs";
	if (json_is_object(json_object_get(network, "egressProxy")))
		return "network.egressProxy is not served. Allow the proxy's own address with allowOut, and use it from code in the sandbox";
	if (json_array_size(json_object_get(network, "httpsPorts")))
		return "network.httpsPorts is not served: a server in the sandbox is reached by plain HTTP. Let it listen without TLS";
	return NULL;
}

/* `network` has the lists; `internet` is what was said of all destinations, or NULL. */
static int read_policy(
	const json_t *network, const json_t *internet, struct network_policy *ret, struct error *e)
{
	const json_t *allow = json_object_get(network, "allowOut"),
		     *deny = json_object_get(network, "denyOut");
	const char *no = unserved(network);
	if (no) {
		error_set(e, -ENOSYS, "%s", no);
		return error_slug(e, "e2b_unserved");
	}

	if (json_array_size(allow))
		return allow_policy(allow, ret, e);
	if (json_array_size(deny) || json_is_false(internet))
		*ret = (struct network_policy){ .given = true, .net = JAIL_NET_LOOPBACK };
	return 0;
}

int e2b_network(const json_t *body, struct network_policy *ret, struct error *e)
{
	return read_policy(json_object_get(body, "network"),
		json_object_get(body, "allow_internet_access"), ret, e);
}

static bool same_rules(const struct network_policy *a, const struct network_policy *b)
{
	size_t i = 0;
	if ((a->net == JAIL_NET_ALLOW) != (b->net == JAIL_NET_ALLOW))
		return false;
	if (a->net != JAIL_NET_ALLOW)
		return true;
	while (a->allow[i] && b->allow[i] && text_eq(a->allow[i], b->allow[i]))
		i++;
	return !a->allow[i] && !b->allow[i];
}

void e2b_update_network(struct call *c)
{
	_cleanup_json_ json_t *body = e2b_body(c);
	struct session *s = body ? e2b_named(c) : NULL;
	_cleanup_(network_policy_finish) struct network_policy wanted = { 0 };
	struct session_info i;
	struct error e = { 0 };
	if (!s)
		return;
	if (read_policy(body, json_object_get(body, "allow_internet_access"), &wanted, &e) < 0) {
		e2b_fail(c, &e);
		return;
	}

	session_info(s, &i);
	if (wanted.given && same_rules(&wanted, i.network))
		call_respond_as(c, 204, NULL, NULL); /* it is so already */
	else
		e2b_error(c, 501,
			"Glovebox does not change the network of a running sandbox. Create a sandbox with network.allowOut, or with allowInternetAccess: false");
}

/* ---- answers ------------------------------------------------------------------------ */

void e2b_keep_network(json_t *kept, const json_t *body)
{
	json_t *network = json_object_get(body, "network"),
	       *internet = json_object_get(body, "allow_internet_access");
	if (json_is_object(network))
		json_object_set(kept, E2B_KEY_NETWORK, network);
	if (json_is_boolean(internet))
		json_object_set(kept, E2B_KEY_INTERNET, internet);
}

void e2b_put_network(struct json_writer *w, const struct session_info *i, const json_t *kept)
{
	const json_t *network = json_object_get(kept, E2B_KEY_NETWORK);
	char *text = network ? json_dumps(network, JSON_COMPACT) : NULL;
	if (text)
		json_field_raw(w, "network", text, strlen(text));
	free(text);
	if (json_object_get(kept, E2B_KEY_INTERNET))
		json_field_bool(w, "allowInternetAccess", i->network->net == JAIL_NET_ALLOW);
}
