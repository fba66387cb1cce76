/*
 * One connection through the proxy: a client in a jail, its target outside, and the bytes between them.
 *
 *   TALKING (the client says where to) → RESOLVING → CONNECTING → RELAYING → freed
 *                                    ↘ refused: SAYING_NO (the reason is sent, the rest swallowed) → freed
 *
 * A side that takes nothing stops the reading of the other: at most one read is kept per direction. All on one epoll; a link that
 * is over is freed after the turn, since events of the same turn may still point to it.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "network/proxy_protocol.h"
#include "network/proxy_resolver.h"
#include "network/rules.h"

/* What an epoll event points to. */
enum source_kind { SOURCE_ORDERS, SOURCE_RESOLVER, SOURCE_LISTENER, SOURCE_CLIENT, SOURCE_TARGET };
struct source {
	enum source_kind kind;
	void *of;
};

/* A session's way out. */
struct outlet;
struct listener {
	struct source source;
	struct outlet *outlet;
	int fd;
	bool fixed; /* leads to `target`, nothing is asked */
	struct network_target target;
};
struct outlet {
	TAILQ_ENTRY(outlet) link;
	uint32_t id;
	struct network_rules rules;
	struct listener *listener;
	unsigned n_listen, links;
	bool paused; /* nothing is accepted: too many connections */
};

enum proxy_conn_state {
	LINK_TALKING,
	LINK_RESOLVING,
	LINK_CONNECTING,
	LINK_RELAYING,
	LINK_SAYING_NO,
	LINK_OVER
};

struct proxy_conn_side {
	struct source source;
	int fd;
	uint32_t watched;  /* epoll events asked for */
	struct buffer out; /* on its way to this side */
	bool ended;        /* it will send nothing more */
	bool told;         /* it was told that nothing more comes */
};

struct proxy_conn {
	TAILQ_ENTRY(proxy_conn) link;
	struct outlet *outlet; /* NULL once that is closed */
	struct proxy *proxy;
	uint64_t tag;
	enum proxy_conn_state state;
	struct proxy_conn_side client, target;
	struct proxy_protocol dialogue;
	bool fixed;
	struct in6_addr address[RESOLVER_ADDRESSES]; /* those that may be tried */
	unsigned n_addresses, next_address;
	uint64_t began_s, deadline_s;
	uint64_t sent, received;
};
TAILQ_HEAD(proxy_conn_list, proxy_conn);
TAILQ_HEAD(outlet_list, outlet);

struct proxy {
	int epoll;
	struct resolver *resolver;
	struct outlet_list outlets;
	struct proxy_conn_list links;
	unsigned n_links;
	uint64_t next_tag, now_s;
	bool over; /* some link is to be freed */
};

/* A connection was accepted; takes the descriptor over. */
void proxy_conn_start(struct proxy *p, struct listener *l, int fd);
void proxy_conn_on_event(struct proxy_conn *l, const struct source *s, uint32_t events);
void proxy_conn_on_resolved(struct proxy_conn *l, const struct resolver_answer *a);
void proxy_conn_end(struct proxy_conn *l); /* now; freed by proxy_conn_free_over() */
void proxy_conn_sweep(struct proxy *p);    /* ends what took too long */
void proxy_conn_free_over(struct proxy *p);

/* proxy.c: tells the daemon. */
struct proxy_event;
void proxy_report(const struct proxy_event *e);
