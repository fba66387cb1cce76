#include "session/network_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "network/proxy.h"
#include "network/proxy_protocol.h"
#include "session/internal.h"

static void add(struct network_record *r, const struct proxy_event *e)
{
	struct network_attempt *a = &r->attempt[r->total++ % LIMIT_NETWORK_ATTEMPTS];
	*a = (struct network_attempt){ .number = r->total,
		.wall_ns = clock_wall_ns(),
		.verdict = e->verdict,
		.open = e->verdict == NETWORK_ALLOWED };
	snprintf(a->target, sizeof(a->target), "%.*s", NETWORK_TEXT_MAX - 1, e->target);
	snprintf(a->detail, sizeof(a->detail), "%.*s", NETWORK_TEXT_MAX - 1, e->detail);
}

/* The proxy names no connection: the oldest open one to this target is taken to have ended. */
static void end(struct network_record *r, const struct proxy_event *e)
{
	struct network_attempt *oldest = NULL;
	for (unsigned i = 0; i < LIMIT_NETWORK_ATTEMPTS; i++) {
		struct network_attempt *a = &r->attempt[i];
		if (a->open && !strncmp(a->target, e->target, NETWORK_TEXT_MAX - 1) &&
			(!oldest || a->number < oldest->number))
			oldest = a;
	}

	if (!oldest)
		return;
	oldest->open = false;
	oldest->seconds = e->seconds;
	oldest->sent = e->sent;
	oldest->received = e->received;
}

void network_record_add(struct network_record **record, const struct proxy_event *e)
{
	if (!*record)
		*record = calloc(1, sizeof(**record));
	if (!*record)
		return;
	if (e->moment == PROXY_DECIDED)
		add(*record, e);
	else
		end(*record, e);
}

const struct network_attempt *network_record_get(const struct network_record *r, uint64_t number)
{
	if (!r || !number || number > r->total || r->total - number >= LIMIT_NETWORK_ATTEMPTS)
		return NULL;
	return &r->attempt[(number - 1) % LIMIT_NETWORK_ATTEMPTS];
}

const struct network_record *session_network_record(const struct session *s)
{
	return s->usage.network_record;
}
