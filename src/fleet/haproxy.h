/*
 * The configuration of HAProxy for a fleet. The template has lines of HAProxy with @name@ in the
 * place of a value:
 *
 *	@each@ LINE        the line once for each node
 *	@nodes@ … @end@    these lines once for each node
 *	@if:NAME@ LINE     the line when NAME holds
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "fleet/fleet.h"

struct haproxy_settings {
	const char *bind;       /* address of the router: ":8080", "10.0.0.1:443" */
	const char *tls;        /* file with certificate and key, or NULL */
	const char *nameserver; /* ADDRESS:PORT, or NULL: that of /etc/resolv.conf */
	bool dns;               /* addresses of nodes are names that change what they mean */
	bool agent;             /* nodes tell how much room they have */
	unsigned agent_port;    /* 0: the port behind that of the node */
};

/*
 * Appends the configuration. -EINVAL for settings that cannot stand in it, -ENOMEM. The fleet has a
 * node.
 */
int haproxy_write(const struct fleet *f, const struct haproxy_settings *s, struct error *e,
	struct buffer *out);
