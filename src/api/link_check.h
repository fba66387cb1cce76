/* A link instead of a token (handlers/live_links.h): whether it opens the route that was called. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct call;

/* The key of a link to a live view, from the query. -EACCES with slug "link_expired". */
int link_check_live(struct call *c, const char *key, struct error *e);

/* Is this (or NULL) the Authorization header of a link for reading: "Share KEY"? */
bool link_is_share(const char *authorization);

/*
 * -EPERM with slug "read_only" for a route without ROUTE_SHARED, also on a server that asks for no
 * token: the link must not allow more there. -EACCES with slug "link_expired".
 */
int link_check_share(struct call *c, const char *authorization, struct error *e);
