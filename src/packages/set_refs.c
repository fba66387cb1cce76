/* Sets that are in use, and what is known about those that were. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "packages/packages_internal.h"

enum {
	HOLDS_KNOWN_MAX = 1024, /* sets of which is remembered that they are whole */
	CHECK_AGAIN_S = 60,     /* then a set that nobody has is looked at again */
};

static struct packages_hold *hold_find(struct packages *p, const char *set)
{
	struct packages_hold *h;
	TAILQ_FOREACH (h, &p->holds, link)
		if (text_eq(h->id, set))
			return h;
	return NULL;
}

void hold_drop(struct packages_hold *h)
{
	TAILQ_REMOVE(&h->packages->holds, h, link);
	h->packages->n_holds--;
	fd_close(h->fd);
	free(h);
}

static struct packages_hold *hold_new(struct packages *p, const char *set)
{
	struct packages_hold *h;
	if (p->n_holds >= HOLDS_KNOWN_MAX) /* forget one that nobody has */
		TAILQ_FOREACH (h, &p->holds, link)
			if (!h->refs) {
				hold_drop(h);
				break;
			}
	if (!(h = calloc(1, sizeof(*h))))
		return NULL;
	h->packages = p;
	h->fd = -1;
	snprintf(h->id, sizeof(h->id), "%s", set);
	TAILQ_INSERT_TAIL(&p->holds, h, link);
	p->n_holds++;
	return h;
}

/*
 * Takes the lock. A set that was not looked at for a while is compared with its list; a damaged one
 * is removed: then it is not there.
 */
static int acquire(struct packages *p, struct packages_hold *h)
{
	_cleanup_free_ char *record = NULL;
	struct error why = { 0 };
	uint64_t now = clock_now_ns();
	size_t len;
	int r = store_set_hold(p->store, h->id, &h->fd, &record, &len);

	if (r == 0 && (!h->checked_ns || now - h->checked_ns > CHECK_AGAIN_S * NSEC_PER_SEC))
		r = store_check(p->store, h->id, false, &why);
	if (r < 0) {
		fd_close_clear(&h->fd);
		if (why.err == -EUCLEAN && store_remove(p->store, h->id, NULL) == 0)
			p->stats.repaired++;
		return r;
	}

	h->checked_ns = now;
	store_set_used(p->store, h->id);
	return 0;
}

struct packages_hold *packages_hold(struct packages *p, const char *set)
{
	struct packages_hold *h = hold_find(p, set);
	if (!h && !(h = hold_new(p, set)))
		return NULL;
	if (!h->refs && acquire(p, h) < 0) {
		hold_drop(h);
		return NULL;
	}
	h->refs++;
	return h;
}

void packages_retain(void *hold)
{
	struct packages_hold *h = hold;
	h->refs++;
}

/* What is known about the set stays; the lock is given back. */
void packages_release(void *hold)
{
	struct packages_hold *h = hold;
	if (h && --h->refs == 0)
		fd_close_clear(&h->fd);
}

void packages_give_template(struct packages_hold *h)
{
	h->template = true;
}
