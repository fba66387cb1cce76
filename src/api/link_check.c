#include "api/link_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/routes.h"
#include "base/text.h"

#define SHARE_SCHEME "Share "

static void take_link(struct call *c, const struct live_link *link)
{
	c->owner = link->owner;
	c->by_link = true;
	c->may_control = link->control;
	c->link_expires_ns = link->expires_ns;
}

int link_check_live(struct call *c, const char *key, struct error *e)
{
	const struct live_link *link = live_links_find(&c->api->live_links, key, c->id);
	if (!link) {
		error_set(e, -EACCES, "the link to this live view has expired or is invalid");
		error_remedy(e, "Create a new link with POST …/live.");
		return error_slug(e, "link_expired");
	}
	take_link(c, link);
	return 0;
}

bool link_is_share(const char *authorization)
{
	return authorization && text_starts(authorization, SHARE_SCHEME);
}

int link_check_share(struct call *c, const char *authorization, struct error *e)
{
	if (!c->route || !(c->route->flags & ROUTE_SHARED)) {
		error_set(e, -EPERM, "the link to this session allows reading only");
		error_remedy(e, "Ask the operator of the server for a token.");
		return error_slug(e, "read_only");
	}

	/* The address of the events has no id: its query names the session. */
	char session[SESSION_ID_LEN + 1];
	if (!*c->id && http_query_param(c->x, "session", session, sizeof(session)) == 1)
		snprintf(c->id, sizeof(c->id), "%s", session);

	const struct live_link *link = live_links_find(
		&c->api->live_links, authorization + strlen(SHARE_SCHEME), c->id);
	if (!link || !link->reads) {
		error_set(e, -EACCES, "the link to this session has expired or is invalid");
		error_remedy(e, "Ask for a new link; the owner makes it with POST …/share.");
		return error_slug(e, "link_expired");
	}
	take_link(c, link);
	return 0;
}
