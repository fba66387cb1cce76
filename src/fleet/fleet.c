#include "fleet/fleet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* The text becomes part of a configuration, so it must not hold what has a meaning there. */
static bool is_host(const char *host)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-";
	return *host && strspn(host, allowed) == strlen(host);
}

static int read_address(const char *text, struct error *e, struct fleet_node *node)
{
	struct http_address a = { 0 };
	uint64_t port;
	int r = http_address_parse(text, e, &a);

	if (r < 0)
		return error_wrap(e, "node %s", node->name);
	if (a.is_unix || !is_host(a.host) || text_parse_u64(a.port, 1, 65535, &port) < 0) {
		error_set(e, -EINVAL, "node %s: '%.80s' is not HOST:PORT", node->name, text);
		return error_remedy(e, "give the address of --listen, such as 10.0.0.1:8000");
	}

	bool v6 = strchr(a.host, ':');
	snprintf(node->host, sizeof(node->host), "%s%s%s", v6 ? "[" : "", a.host, v6 ? "]" : "");
	node->port = (unsigned)port;
	return 0;
}

static int check_other(const struct fleet_node *old, const struct fleet_node *node, struct error *e)
{
	if (text_eq(old->name, node->name))
		return error_set(e, -EEXIST, "node %s is there twice", node->name);
	if (text_eq(old->host, node->host) && old->port == node->port)
		return error_set(e, -EEXIST, "nodes %s and %s have the same address %s:%u",
			old->name, node->name, node->host, node->port);
	if (!text_eq(old->letters, node->letters))
		return 0;
	error_set(e, -EEXIST, "nodes %s and %s have the same letters %s in their ids", old->name,
		node->name, node->letters);
	return error_remedy(e, "give one of the two another name (here and as --node)");
}

int fleet_add(struct fleet *f, const char *name, const char *address, struct error *e)
{
	struct fleet_node node = { 0 };

	if (f->n >= LIMIT_FLEET_NODES)
		return error_set(e, -E2BIG, "a fleet has at most %d nodes", LIMIT_FLEET_NODES);
	if (node_letters(name, node.letters) < 0) {
		error_set(e, -EINVAL, "'%.70s' is not a name of a node", name);
		return error_remedy(e,
			"use four letters of a-z and 2-7, or a host name (letters, digits, '.', '_', '-')");
	}

	snprintf(node.name, sizeof(node.name), "%s", name);
	node_hex(node.letters, node.hex);
	int r = read_address(address, e, &node);
	for (size_t i = 0; r == 0 && i < f->n; i++)
		r = check_other(&f->nodes[i], &node, e);
	if (r < 0)
		return r;

	struct fleet_node *more = reallocarray(f->nodes, f->n + 1, sizeof(*more));
	if (!more)
		return error_set(e, -ENOMEM, "out of memory");
	f->nodes = more;
	f->nodes[f->n++] = node;
	return 0;
}

int fleet_add_word(struct fleet *f, const char *word, struct error *e)
{
	char name[NODE_NAME_MAX + 2];
	const char *sign = strchr(word, '=');

	if (!sign) {
		error_set(e, -EINVAL, "'%.80s' is not NAME=ADDRESS", word);
		return error_remedy(e, "name each node as its --node does: a=10.0.0.1:8000");
	}
	snprintf(name, sizeof(name), "%.*s", (int)(sign - word), word);
	return fleet_add(f, name, sign + 1, e);
}

int fleet_add_set(struct fleet *f, const char *prefix, const char *domain, unsigned port,
	unsigned count, struct error *e)
{
	char name[NODE_NAME_MAX + 2], address[HTTP_HOST_MAX + 8];
	int r = 0;

	for (unsigned i = 0; r == 0 && i < count; i++) {
		int n = snprintf(name, sizeof(name), "%s-%u", prefix, i);
		int len = snprintf(address, sizeof(address), "%s.%s:%u", name, domain, port);
		if ((size_t)n >= sizeof(name) || (size_t)len >= sizeof(address))
			return error_set(e, -EINVAL, "the name %.80s-%u.%.80s is too long", prefix,
				i, domain);
		r = fleet_add(f, name, address, e);
	}
	return r;
}

void fleet_finish(struct fleet *f)
{
	free(f->nodes);
	*f = (struct fleet){ 0 };
}
