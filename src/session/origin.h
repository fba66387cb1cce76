/* Where the interpreter of a session comes from, and what it is told before its first cell. */
#pragma once

#include <stdbool.h>

#include "session/session.h"

struct snapshot;

struct session_origin {
	char template[40]; /* the name of the template */
	bool template_warm;
	bool ready;                    /* the sandbox was ready when the session took it */
	char from[SESSION_ID_LEN + 1]; /* the session it was forked from; "" for none */
	struct session *fork_of;       /* while the fork is being made: the session it comes from */
	bool fork_ready;               /* counted as ready by that fork */
	unsigned retries;              /* sandboxes in a row that failed to start */
	uint64_t failing_ns;           /* since when */
	struct session *context_of;    /* the session whose context it is; NULL for none */
	char context_cwd[LIMIT_PATH_BYTES + 1];
};

struct session_setup {
	bool sent;             /* SETUP, to the present interpreter */
	bool clear_workspace;  /* the next SETUP empties /workspace */
	bool packages_changed; /* the report about packages is told with the next answer */
};

/* What a new session starts from: a snapshot, or the jail of a session whose context it is. */
struct fork_source {
	struct snapshot *snapshot;
	bool reseed; /* random numbers of its own */
	struct session *beside;
};

/* ---- session_create.c ---- */

/* As session_create(); `from` is NULL, or the snapshot that a fork starts from. */
int session_create_from(struct sessions *t, struct session_params *params,
	const struct fork_source *from, struct error *e, struct session **ret);

/* session_sandbox.c: takes a sandbox for the session, by its parameters. */
int session_take_sandbox(struct session *s, const struct fork_source *from, bool *ret_ready);

/* Ends the parts of a session that is in no table; it is freed when its handles are closed. */
void session_release(struct session *s);

/* ---- setup.c ---- */

void session_send_setup(struct session *s);
/* Adds one set of packages to the interpreter's sys.path. */
void session_send_path(struct session *s, const struct session_package *p);
/* Sends all sets again: a snapshot may be older than some of them. */
void session_send_paths(struct session *s);

/* ---- guest_frames.c ---- */

void session_guest_frame(struct session *s, const struct wire_frame *f);

/* ---- guest_events.c ---- */

extern const struct sandbox_events session_events; /* what guests tell their sessions */
void session_guest_ready(struct session *s);
void session_guest_exit(struct session *s, const struct process_exit *end, bool broken);
void session_guest_failed(struct session *s, const char *text);
/*
 * Ends the running cell, whose interpreter died; `rolled_back` when another one goes on from before
 * the cell.
 */
void session_end_with_guest(struct session *s, bool rolled_back);

/* ---- network_setup.c ---- */

/* Variables that lead to the proxy, NULL at the end; NULL without one. */
const char *const *session_network_environment(const struct session *s);
bool session_network_setup(const struct session *s, struct buffer *frame); /* its part of SETUP */
void session_network_event(struct session *s, const struct proxy_event *e);

/* ---- session_mounts.c ---- */

struct sessions_config;
/* That the server has them all, and each at a place that it may have. */
int session_mounts_check(const struct sessions_config *c, char *const *asked, struct error *e);
void session_mounts_fill(char *const *asked, struct jail_mounts *ret);

/* ---- params.c ---- */

/* For a fork: without name, display, seed and packages. */
int session_params_copy(const struct session_params *p, struct session_params *ret);
/* Lists of words that end with NULL. */
char **session_words_copy(const char *const *list);
void session_words_free(char **list);
