#include "api/handlers/live_links.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/node_id.h"
#include "base/text.h"

/*
 * A free place or one that has expired; when the owner has as many as it may, that of its own which
 * would expire first. NULL: others have them all.
 */
static struct live_link *find_place(struct live_links *l, uint64_t owner, uint64_t now)
{
	struct live_link *empty = NULL, *oldest = NULL;
	unsigned own = 0;
	for (unsigned i = 0; i < LIMIT_LIVE_LINKS; i++) {
		struct live_link *k = &l->link[i];
		if (!k->key[0] || k->expires_ns <= now) {
			empty = empty ? empty : k;
		} else if (k->owner == owner) {
			own++;
			oldest = oldest && oldest->expires_ns <= k->expires_ns ? oldest : k;
		}
	}
	return own >= LIMIT_LIVE_LINKS_OF_ONE || !empty ? oldest : empty;
}

const struct live_link *live_links_add(
	struct live_links *l, const struct live_link *wanted, double ttl_s)
{
	uint64_t now = clock_now_ns();
	struct live_link *place = find_place(l, wanted->owner, now);
	if (!place)
		return NULL;
	*place = *wanted;
	place->expires_ns = now + (uint64_t)(ttl_s * 1e9);
	node_make_id(place->key, LIVE_KEY_LEN);
	return place;
}

const struct live_link *live_links_find(
	const struct live_links *l, const char *key, const char *session)
{
	const struct live_link *found = NULL;
	uint64_t now = clock_now_ns();
	for (unsigned i = 0; i < LIMIT_LIVE_LINKS; i++) {
		const struct live_link *k = &l->link[i];
		if (text_eq_secret(key, strlen(key), k->key, strlen(k->key)) && k->key[0] &&
			text_eq(k->session, session) && k->expires_ns > now)
			found = k;
	}
	return found;
}
