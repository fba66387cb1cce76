/*
 * Links to live views, and to whole sessions for reading: a key that opens one session to whoever
 * has it, for a while, and nothing else. A browser cannot send a token by itself, and a spectator
 * should have none. Looking is all a link allows, unless it was made with control.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "session/session.h"

enum { LIVE_KEY_LEN = 32 };

struct live_link {
	char key[LIVE_KEY_LEN + 1]; /* empty: the place is free */
	char session[SESSION_ID_LEN + 1];
	uint64_t owner; /* of the session: who made it */
	uint64_t expires_ns;
	bool control;
	bool reads; /* opens the routes with ROUTE_SHARED: cells, files, … */
};

struct live_links {
	struct live_link link[LIMIT_LIVE_LINKS];
};

/*
 * Makes one. When the owner has LIMIT_LIVE_LINKS_OF_ONE, that of its own which would expire first
 * goes; nobody else's ever does. NULL: all places are taken.
 */
const struct live_link *live_links_add(struct live_links *l, const struct live_link *wanted,
	double ttl_s); /* of `wanted`: session, owner, control, reads */

/*
 * The link of this key, when it is for this session and has not expired; else NULL. Takes as long
 * for a key that is nearly right.
 */
const struct live_link *live_links_find(
	const struct live_links *l, const char *key, const char *session);
