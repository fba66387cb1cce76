#include "api/live_links.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

const struct live_link *live_links_add(struct live_links *l, const char *session, uint64_t owner, bool control, double ttl_s)
{
	struct live_link *place = &l->link[0];
	uint64_t now = clock_now_ns();
	for (unsigned i = 1; i < LIMIT_LIVE_LINKS; i++) {
		struct live_link *k = &l->link[i];
		if (place->key[0] && (!k->key[0] || k->expires_ns < place->expires_ns))
			place = k;
	}
	*place = (struct live_link){ .owner = owner, .control = control, .expires_ns = now + (uint64_t)(ttl_s * 1e9) };
	text_random_id(place->key, LIVE_KEY_LEN);
	snprintf(place->session, sizeof(place->session), "%s", session);
	return place;
}

const struct live_link *live_links_find(const struct live_links *l, const char *key, const char *session)
{
	const struct live_link *found = NULL;
	uint64_t now = clock_now_ns();
	for (unsigned i = 0; i < LIMIT_LIVE_LINKS; i++) {
		const struct live_link *k = &l->link[i];
		if (text_eq_secret(key, strlen(key), k->key, strlen(k->key)) && k->key[0] && text_eq(k->session, session) && k->expires_ns > now)
			found = k;
	}
	return found;
}
