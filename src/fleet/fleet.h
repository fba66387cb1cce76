/*
 * The nodes of a fleet as a router knows them: a name, the letters that the name has in ids
 * (base/node_id.h), and an address. Two nodes never have the same letters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/node_id.h"
#include "http/http_address.h"

struct fleet_node {
	char name[NODE_NAME_MAX + 1];
	char letters[NODE_LETTERS + 1];
	char hex[NODE_HEX_DIGITS + 1];
	char host[HTTP_HOST_MAX + 3]; /* an address of IPv6 has brackets */
	unsigned port;
};

struct fleet {
	struct fleet_node *nodes; /* freed by fleet_finish() */
	size_t n;
};

/*
 * Adds a node. -EINVAL for a wrong name or address, -EEXIST when another node has the name, the
 * letters or the address, -E2BIG beyond LIMIT_FLEET_NODES, -ENOMEM.
 */
int fleet_add(struct fleet *f, const char *name, const char *address, struct error *e);

/* "NAME=ADDRESS" */
int fleet_add_word(struct fleet *f, const char *word, struct error *e);

/*
 * Adds the nodes PREFIX-0, PREFIX-1, … of a StatefulSet of Kubernetes: their addresses are names in
 * the domain.
 */
int fleet_add_set(struct fleet *f, const char *prefix, const char *domain, unsigned port,
	unsigned count, struct error *e);

void fleet_finish(struct fleet *f);
