/*
 * Addresses of servers inside sessions: <port>-<id>.<host>, an origin for each, and …/ports/{port}/
 * below the API (private to src/api and the dialects). The id is the session's without "s_", so
 * that the name fits DNS.
 *
 * Who may use the first: anybody when the server has no tokens and the session does not ask for
 * keys (the id is a secret of 130 bits); else whoever has the key of the session's ports, as a
 * header, a cookie or once in the query, or a token of the session's owner.
 */
#pragma once

#include <stdbool.h>

#include "api/call.h"
#include "api/ports/port_proxy.h"
#include "base/sha256.h"

/* The route of requests whose Host is such an address, else NULL. */
const struct route *port_host_claim(const struct http_exchange *x);

/* The secret of the keys, which are not stored. -EIO. */
int port_keys_init(struct api *a, struct error *e);

/* The key of the session's ports. */
void port_key(const struct api *a, const char *session_id, char ret[SHA256_HEX + 1]);
bool port_key_fits(const struct api *a, const char *session_id, const char *given);

/*
 * What stands behind "<port>-<id>." for this client; "" when it calls the server by an address that
 * no name leads to.
 */
enum { PORT_DOMAIN_BYTES = 264 };
const char *port_domain(const struct call *c, char ret[PORT_DOMAIN_BYTES]);

/* ---- the native routes ---- */
void handle_port_list(struct call *c);
enum http_body_mode begin_port(struct call *c);
