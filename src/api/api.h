/*
 * The native HTTP API: routes over the session table, answers as JSON, errors as
 * application/problem+json.
 *
 * One struct api serves one loop and one session table. It owns no sockets: the daemon makes the
 * HTTP server and gives it api_handler() with the api as userdata. Order of life: sessions_create,
 * api_create, http server; at the end api_drain, http server closed, sessions_destroy, then
 * api_destroy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"

struct api;
struct dialect;
struct packages;
struct profiles;
struct sessions;
struct http_handler;
struct http_server;

/* How the OpenEnv dialect's environments behave. */
struct openenv_config {
	/* of environments whose reset names none; NULL: the server's. Must outlive the api */
	const char *profile;
	bool rewards;   /* give the rewards of coding_env's transforms */
	double lease_s; /* a named environment waits so long for a client whose connection broke */
};

struct network_policy;

/*
 * What sessions made by MCP with one token are like, and which tools it is offered. All must
 * outlive the api.
 */
struct mcp_config {
	const char *profile;                  /* NULL: the server's */
	char *const *packages;                /* NULL at the end; or NULL */
	bool display;                         /* a screen, and the tools for it */
	const struct network_policy *network; /* NULL: the server's default */
	const char *network_text;             /* as it was written; NULL: none */
	bool open_world;                      /* that network reaches something */
	bool installs;                        /* packages on demand */
	/* the effective limits */
	double timeout_s, max_timeout_s, idle_timeout_s;
	uint64_t memory_bytes;
	double cpus;        /* 0: the server's */
	unsigned processes; /* 0: the server's */
	char *const *tools; /* names, NULL at the end; NULL: all */
};

struct layer_state;

/* All texts and lists are copied. Lists end with NULL; a NULL list is an empty one. */
struct api_config {
	uv_loop_t *loop;
	struct sessions *sessions;
	struct packages *packages;       /* or NULL: requests for packages are refused */
	const struct profiles *profiles; /* own executor profiles, or NULL; must outlive the api */
	/*
	 * Bearer tokens; with none, nobody is asked for one. Sessions belong to the token that made
	 * them and are invisible to the others.
	 */
	char *const *tokens;
	const char
		*metrics_token; /* opens /metrics of the whole server, and nothing else; or NULL */
	/*
	 * Names the Host header may carry besides the loopback names: the host part of every listen
	 * address, and names people configured. "*" stands for any name (only behind something else
	 * that checks). A wildcard address ("0.0.0.0", "::") allows every address literal, which no
	 * web page can rebind a name to.
	 */
	char *const *hosts;
	/*
	 * Origins (such as "https://console.example") whose pages may call; the daemon's own is
	 * always allowed.
	 */
	char *const *origins;
	/* what the wall is made of, for /version; must outlive the api. NULL: not told */
	const struct layer_state *layers;
	uint64_t max_upload_bytes;       /* of one file; 0: the default (API_UPLOAD_BYTES) */
	unsigned max_sessions_per_token; /* 0: only the table's own maximum counts */
	unsigned max_runs;    /* programs of batches and of trainers at once; 0: by processors */
	bool log_requests;    /* one info line per answered request */
	bool no_live_control; /* live views never take mouse and keyboard */
	const struct dialect *const *dialects; /* NULL at the end; or NULL: none */
	struct openenv_config openenv;
	/*
	 * the first one without tokens, then one for each token; a missing one: MCP is as the
	 * server is
	 */
	const struct mcp_config *mcp;
	unsigned n_mcp;
	double jupyter_timeout_s; /* of a cell over a kernel's channels; 0: as elsewhere */
};

#define API_UPLOAD_BYTES (1024ULL * 1024 * 1024)

/* -EINVAL when a token is empty or not printable ASCII, -ENOMEM. */
int api_create(const struct api_config *config, struct error *e, struct api **ret);

/*
 * Frees it in the loop's next turn, so the loop must run once more. No request may be under way any
 * more (the server is closed). NULL is fine.
 */
void api_destroy(struct api *a);

/* What to give to the HTTP server, with the api itself as userdata. */
const struct http_handler *api_handler(void);

/* The server whose connection counts /metrics shows (may be left out). */
void api_set_server(struct api *a, struct http_server *server);

/*
 * Per cent of the sessions that may still be made. Negative, and the error of /readyz, while no new
 * session can be made.
 */
int api_room(const struct api *a, struct error *e);

/*
 * From now on /readyz says 503, and new sessions, runs and cells are refused with 503 "draining";
 * what runs goes on and is answered. Idempotent.
 */
void api_drain(struct api *a);

/*
 * How the modules stand that every session may import: told by /health and /readyz. `failed`: JSON
 * text of an array of objects with name and reason, copied; NULL when none failed.
 */
void api_tell_packages(struct api *a, bool installing, const char *failed);
