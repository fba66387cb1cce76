/*
 * Requests that are passed on to a server inside a session, HTTP and WebSocket, streamed both ways
 * (private to src/api and the dialects).
 *
 * What the server sends is hostile. Its answer is parsed strictly and written anew; headers that
 * concern one connection only, or the origin as a whole, are dropped. With PORT_BY_PATH the page
 * shares its origin with the API and the console: the browser is told to sandbox the page, cookies
 * pass in neither direction, and credentials do not reach the server.
 */
#pragma once

#include <stdbool.h>

#include "api/call.h"

enum port_form {
	PORT_BY_HOST, /* an origin of its own */
	PORT_BY_PATH, /* below an address of the API */
};

#define PORT_KEY_COOKIE "glovebox_port_key"
#define PORT_KEY_PARAMETER "glovebox_key"

struct port_request {
	unsigned port;
	enum port_form form;
	const char *target; /* that the server is asked for, with its query */
	const char *prefix; /* PORT_BY_PATH: what stands before it in the address */
	/*
	 * Authorization and X-API-Key do not pass, whatever they carry. Otherwise each of them
	 * passes unless it carries a token of this server, of whichever owner.
	 */
	bool hide_credentials;
};

/* From the `begin` of a route; returns what that returns. */
enum http_body_mode port_proxy_begin(
	struct call *c, struct session *s, const struct port_request *q);
/* The `handle` of the same route: the body is complete. */
void port_proxy_body_end(struct call *c);

/* ---- port_head.c: what passes of a head ---- */
struct http_reply;
/*
 * The header Authorization or X-API-Key carries a token of this server. *ret_owner: its owner, as
 * guard_token() counts; 0 for the operator's token, which owns no session.
 */
bool port_head_token(
	const struct call *c, const char *name, const char *value, uint64_t *ret_owner);
int port_head_request(struct call *c, const struct port_request *q, struct buffer *out);
/* Adds the headers of the answer to x. */
void port_head_answer(struct http_exchange *x, const struct http_reply *reply, enum port_form form,
	const char *prefix);
