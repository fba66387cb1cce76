#include "session/cells/cell_history.h"

#include <stdlib.h>

/* What all histories may have while the daemon is short of memory for requests and output. */
enum { SHORT_BYTES = 32 * 1024 * 1024 };

void cell_store_init(struct cell_store *t)
{
	*t = (struct cell_store){ 0 };
	LIST_INIT(&t->shares);
}

static struct cell_share *share_of(struct cell_store *t, uint64_t owner)
{
	struct cell_share *s;
	LIST_FOREACH(s, &t->shares, link)
	if (s->owner == owner)
		return s;

	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->owner = owner;
	TAILQ_INIT(&s->by_age);
	LIST_INSERT_HEAD(&t->shares, s, link);
	return s;
}

void cell_history_init(struct cell_history *h, struct cell_store *t, uint64_t owner)
{
	*h = (struct cell_history){ .store = t, .share = share_of(t, owner) };
	TAILQ_INIT(&h->records);
	if (h->share)
		h->share->histories++;
}

static void drop(struct cell_record *r)
{
	struct cell_history *h = r->history;
	TAILQ_REMOVE(&h->records, r, link);
	TAILQ_REMOVE(&h->share->by_age, r, by_age);
	h->n--;
	h->bytes -= r->bytes;
	h->share->bytes -= r->bytes;
	h->store->bytes -= r->bytes;
	h->dropped++;
	if (h->running == r)
		h->running = NULL;
	if (h->held.bytes > h->bytes)
		hold_set(&h->held, h->bytes);
	cell_record_destroy(r);
}

void cell_history_finish(struct cell_history *h)
{
	struct cell_record *r;
	while (h->share && (r = TAILQ_FIRST(&h->records)))
		drop(r);
	if (h->share && !--h->share->histories) {
		LIST_REMOVE(h->share, link);
		free(h->share);
	}
	h->share = NULL;
	h->store = NULL;
}

static struct cell_share *largest_share(const struct cell_store *t)
{
	struct cell_share *s, *found = LIST_FIRST(&t->shares);
	LIST_FOREACH(s, &t->shares, link)
	if (s->bytes > found->bytes)
		found = s;
	return found;
}

/* The newest record of a session stays while there is memory: it is within LIMIT_RECORD_BYTES. */
static void keep_limits(struct cell_history *h)
{
	struct cell_store *t = h->store;
	while (h->n > 1 && (h->n > LIMIT_RECORDS || h->bytes > LIMIT_HISTORY_BYTES))
		drop(TAILQ_FIRST(&h->records));
	while (h->n && hold_set(&h->held, h->bytes) < 0)
		drop(TAILQ_FIRST(&h->records));

	/* one owner with much to keep takes nothing from the others */
	while (t->bytes > (hold_is_short() ? SHORT_BYTES : LIMIT_ALL_HISTORY_BYTES))
		drop(TAILQ_FIRST(&largest_share(t)->by_age));
}

void cell_history_add(struct cell_history *h, struct cell_record *r)
{
	if (!r || !h->share) {
		cell_record_destroy(r);
		return;
	}

	r->history = h;
	r->number = ++h->last;
	TAILQ_INSERT_TAIL(&h->records, r, link);
	TAILQ_INSERT_TAIL(&h->share->by_age, r, by_age);
	h->n++;
	h->bytes += r->bytes;
	h->share->bytes += r->bytes;
	h->store->bytes += r->bytes;
	if (r->running)
		h->running = r;
	keep_limits(h);
}

void cell_history_end(struct cell_history *h, const struct observation *o)
{
	struct cell_record *r = h->running;
	if (!r)
		return;

	size_t before = r->bytes;
	cell_record_finish(r, o);
	h->running = NULL;
	h->bytes += r->bytes - before;
	h->share->bytes += r->bytes - before;
	h->store->bytes += r->bytes - before;
	keep_limits(h);
}

const struct cell_record *cell_history_next(const struct cell_history *h, uint64_t after)
{
	const struct cell_record *r;
	if (after && after >= h->last)
		return NULL;
	TAILQ_FOREACH (r, &h->records, link)
		if (r->number > after)
			return r;
	return NULL;
}

const struct cell_record *cell_history_find(const struct cell_history *h, uint64_t number)
{
	const struct cell_record *r = number ? cell_history_next(h, number - 1) : NULL;
	return r && r->number == number ? r : NULL;
}
