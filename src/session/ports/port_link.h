/*
 * A connection from the daemon to a server inside a session: to 127.0.0.1, or else ::1, of the
 * session's own network namespace. It needs no network beyond the loopback of the session and can
 * reach nothing else. Bytes pass as they are; whatever the server sends is hostile.
 *
 * Life: session_port_open() → on_open → on_data … → on_end. Closing has one path,
 * port_link_close(); after it, and after on_end, no callback comes and the memory is freed by
 * itself. Callbacks may call port_link_close().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session/session.h"

struct port_link;

struct port_link_events {
	void (*on_open)(void *owner);
	void (*on_data)(void *owner, const char *data, size_t len);
	/* what waited to be written went out, after port_link_write() had returned 1 */
	void (*on_drained)(void *owner);
	/*
	 * Last. 0: the server has closed it; -ECONNREFUSED: nobody listens; -ETIMEDOUT; -ESHUTDOWN:
	 * the session ended; or what the kernel says.
	 */
	void (*on_end)(void *owner, int err);
};

/*
 * Asks for one; on_open or on_end follows, never before this returns. -EBUSY (slugs
 * "session_paused", "too_many_connections"), -ENOTCONN ("no_loopback"), -EPERM ("port_leads_out": a
 * rule of the session's network has taken the port), -EAGAIN ("starting"), -ESHUTDOWN, -ENOMEM.
 */
int session_port_open(struct session *s, unsigned port, const struct port_link_events *events,
	void *owner, struct error *e, struct port_link **ret);

/* Also before on_open. 0: go on; 1: much waits, stop until on_drained; -ENOBUFS: too much waits. */
int port_link_write(struct port_link *l, const void *data, size_t len);
void port_link_hold(struct port_link *l, bool hold); /* its data is not read meanwhile */
void port_link_close(struct port_link *l);           /* NULL is fine */

/*
 * Ports that servers of the session listen on, in order, without those that lead out; at most
 * `max`. Returns how many.
 */
size_t session_ports(const struct session *s, uint16_t *ret, size_t max);

/* ---- of the session layer ---- */
void ports_end(struct session *s); /* the session ends */
bool ports_attended(const struct session *s);
