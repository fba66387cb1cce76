/*
 * Dialects: APIs that somebody else's clients already speak, served beside our own on the same port.
 *
 * A dialect is a table of what the API calls: its life, and what it has going. Its addresses are rows in a
 * macro (openenv_routes.h, jupyter_routes.h) that routes.c takes into the one table of addresses, so that
 * guards, figures, /openapi.json and /docs hold for them without anything of their own. It stands on the
 * session table and on struct call, as the native handlers do, and no dialect knows another.
 */
#pragma once

struct api;
struct api_config;
struct error;

enum dialect_id { DIALECT_OPENENV, DIALECT_JUPYTER, DIALECT_MCP, DIALECT_COUNT };

struct dialect {
	const char *name;
	/* Makes what the dialect keeps; it is given back by dialect_state(). -ENOMEM. */
	int (*create)(struct api *a, const struct api_config *config, struct error *e, void **ret_state);
	/* Frees it in a later turn of the loop. No connection and no session is left by then. */
	void (*destroy)(void *state);
	/* Cells that a WebSocket of the dialect waits for (those of requests are counted by the API). */
	unsigned (*in_flight)(const void *state);
};

extern const struct dialect dialect_openenv, dialect_jupyter, dialect_mcp;
extern const struct dialect *const dialects[DIALECT_COUNT];

void *dialect_state(const struct api *a, enum dialect_id id);
