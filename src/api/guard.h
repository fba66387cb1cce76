/*
 * Who may call: the Host a request names, the page it comes from, the token it carries.
 *
 * A daemon on localhost is reachable from every web page its user opens. Three things keep such a
 * page out: it cannot send our Host (a rebound name keeps its own), it cannot hide its Origin, and
 * it does not know the token.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct guard {
	/* private */
	char **hosts, **origins, **tokens;
	bool any_host, any_literal;
};

/*
 * Copies the lists (NULL at the end, or NULL). -EINVAL for an empty or unprintable token; finish
 * also after failure.
 */
int guard_init(struct guard *g, char *const *hosts, char *const *origins, char *const *tokens,
	struct error *e);
void guard_finish(struct guard *g);

/* How many tokens there are; 0: everybody may call. */
size_t guard_count(const struct guard *g);

/* The Host header (with or without a port). -EPERM with slug "host_not_allowed". */
int guard_host(const struct guard *g, const char *host, struct error *e);

/*
 * The Origin and Sec-Fetch-Site headers (NULL when absent), given the Host header. -EPERM with slug
 * "origin_not_allowed". *ret_foreign: the page is not our own but one of the allowed origins, and
 * needs to be told so.
 */
int guard_origin(const struct guard *g, const char *host, const char *origin,
	const char *fetch_site, struct error *e, bool *ret_foreign);

/*
 * The Authorization header (NULL when absent). *ret_owner: which token it was, from 1; 0 when none
 * are asked for. -EACCES with slug "unauthorized". Takes the same time for every wrong token of one
 * length.
 */
int guard_token(
	const struct guard *g, const char *authorization, struct error *e, uint64_t *ret_owner);

/*
 * A text for the owner of guard_token() that is the same after every start, in whatever order the
 * tokens are named, and from which nobody can tell the token. ret has GUARD_CLIENT_LEN + 1 bytes.
 */
enum { GUARD_CLIENT_LEN = 64 };
void guard_client(const struct guard *g, uint64_t owner, char *ret);
