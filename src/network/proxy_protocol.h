/*
 * The request that a client sends to the proxy before data is forwarded: SOCKS 5 (RFC 1928, CONNECT only, no
 * authentication), HTTP's CONNECT, or a plain HTTP request with the whole URL in it, as programs send where http_proxy is set.
 * Bytes in, a target out; no I/O.
 *
 *   feed … MORE … feed → ASK (target is known)  → the caller decides, connects → proxy_protocol_answer() → relay
 *                      → REFUSE (reply says why) → the caller sends it and closes
 *
 * All bytes behind the head belong to the one target that was asked for, so nothing a client hides in them reaches another. A plain
 * request is passed on with `Connection: close`, because the next one on the same connection could be meant for another host.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "network/rules.h"

enum proxy_protocol_event { DIALOGUE_MORE, DIALOGUE_ASK, DIALOGUE_REFUSE };

/* How an attempt to connect went; the names are in logs and metrics. */
enum network_verdict {
	NETWORK_ALLOWED,
	NETWORK_NOT_ALLOWED, /* no rule has it */
	NETWORK_NOT_PUBLIC,  /* a name that leads to an address which no rule has */
	NETWORK_UNKNOWN,     /* the name does not resolve */
	NETWORK_UNREACHABLE, /* nobody answers there */
	NETWORK_BAD_REQUEST, /* no SOCKS 5, no HTTP */
	NETWORK_VERDICT_COUNT
};
const char *network_verdict_name(enum network_verdict v); /* "allowed", "not_allowed", … */

enum proxy_protocol_state {
	DIALOGUE_FIRST,
	DIALOGUE_METHODS,
	DIALOGUE_SOCKS,
	DIALOGUE_HTTP,
	DIALOGUE_ASKED,
	DIALOGUE_OVER
};
enum proxy_protocol_kind { DIALOGUE_SOCKS5, DIALOGUE_CONNECT, DIALOGUE_PLAIN };

struct proxy_protocol {
	enum proxy_protocol_state state;
	enum proxy_protocol_kind kind;
	struct network_target target; /* after ASK */
	/* what came and is not understood yet; after ASK: what is for the target */
	struct buffer in;
};

void proxy_protocol_init(struct proxy_protocol *d);
void proxy_protocol_finish(struct proxy_protocol *d);

/*
 * Takes bytes; what is to be sent back is appended to reply. After ASK or REFUSE it must not be fed
 * again.
 */
enum proxy_protocol_event proxy_protocol_feed(
	struct proxy_protocol *d, const void *data, size_t len, struct buffer *reply);

/*
 * After ASK: tells the client. `text` says why not, for people; it may be NULL for NETWORK_ALLOWED.
 */
void proxy_protocol_answer(
	struct proxy_protocol *d, enum network_verdict v, const char *text, struct buffer *reply);
