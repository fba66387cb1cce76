/*
 * A dialect: an API that other people's clients already speak, served beside our own on the same
 * port.
 *
 * The API knows dialects only by this table, which the daemon gives it (api_config.dialects). A
 * dialect's routes join the API's own table of addresses, so that guards, metrics, /openapi.json
 * and /docs hold for them. A dialect stands on the session table and on struct call, as the native
 * handlers do.
 */
#pragma once

#include <stdbool.h>

struct api;
struct api_config;
struct error;
struct http_exchange;
struct route;
struct session;

struct dialect {
	const char *name;
	const struct route *routes; /* the last row has no pattern */
	/* Makes the dialect's state; dialect_state() gives it back. -ENOMEM. */
	int (*create)(
		struct api *a, const struct api_config *config, struct error *e, void **ret_state);
	/*
	 * A request that is the dialect's whatever its path says, told by its headers: the route
	 * that serves it, else NULL. The route checks its own tokens (ROUTE_PUBLIC). May be NULL.
	 */
	const struct route *(*claim)(const struct http_exchange *x);
	/*
	 * The route that answers a request to an address below the dialect's own that no row of
	 * any table serves, else NULL. May be NULL.
	 */
	const struct route *(*stray)(const struct http_exchange *x);
	/* The server ends soon: streams that would stay open for ever are ended. May be NULL. */
	void (*drain)(void *state);
	/*
	 * A paused session is asked for through its ports: whether the dialect has resumed it. May
	 * be NULL.
	 */
	bool (*resume)(struct session *s);
	/*
	 * Frees the state in a later turn of the loop. No connection and no session is left by
	 * then.
	 */
	void (*destroy)(void *state);
};

enum { DIALECTS_MAX = 8 };

/* NULL when the API was made without this dialect; its routes are not served then. */
void *dialect_state(const struct api *a, const struct dialect *d);
