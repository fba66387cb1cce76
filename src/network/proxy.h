/*
 * The proxy: a process of its own, `glovebox proxy`, through which sessions reach what they were
 * allowed to and nothing else.
 *
 * The daemon opens an *outlet* for a session: rules, and sockets that listen inside the session's
 * network namespace (the jail's init made them, jail/net.h). The proxy accepts on them from
 * outside; the first speaks CONNECT, plain HTTP and SOCKS 5 (network/proxy_protocol.h), each
 * further one leads to one fixed target. Nobody but that session can connect to them, so where a
 * connection was accepted says whose it is. Names are resolved here; a connection goes to an
 * address that was checked. Every attempt is reported.
 */
#pragma once

#include <stdint.h>

#include "network/proxy_protocol.h"
#include "network/rules.h"

enum {
	PROXY_SOCKET_FD = 3,
	PROXY_NAME_MAX = 32,
	PROXY_DETAIL_MAX = 256,
	PROXY_MESSAGE_MAX = 40 * 1024
};

/*
 * Daemon → proxy (SEQPACKET). OPEN brings `n_listen` sockets, and as NUL-ended texts behind it: the
 * target of each but the first (an exact rule), then `n_rules` rules.
 */
enum proxy_order { PROXY_OPEN = 1, PROXY_CLOSE };
struct proxy_message {
	uint32_t order, id, n_listen, n_rules;
	char session[PROXY_NAME_MAX]; /* for error texts and titles */
};

/*
 * Proxy → daemon: one when it is decided, and for what was allowed one at the end, with the bytes.
 */
enum proxy_moment { PROXY_DECIDED = 1, PROXY_ENDED };
struct proxy_event {
	uint32_t moment, id, verdict, seconds;
	uint64_t sent, received; /* by the session; ENDED only */
	char target[NETWORK_RULE_MAX];
	char detail[PROXY_DETAIL_MAX]; /* the address it went to, or why not */
};

/* Never returns before the daemon's socket is closed; the exit code of the process. */
int proxy_main(void);
