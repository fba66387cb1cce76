#include "sandbox/renewal.h"

#include "base/clock.h"
#include "base/log.h"
#include "sandbox/sandbox.h"

/* Guests that wait, and nobody has taken. */
static bool is_old_stock(const struct sandbox *b)
{
	return sandbox_is_stock(b) && b->state == SANDBOX_READY && !b->spare && !b->kind.set && !b->kind.template;
}

static bool somebody_waits(const struct sandbox_pool *n)
{
	const struct sandbox *b;
	TAILQ_FOREACH(b, &n->sandboxes, link)
		if ((b->state == SANDBOX_GUEST && !b->spare) || b->state == SANDBOX_STARTING || b->state == SANDBOX_SWEEP)
			return true;
	return false;
}

void renewal_look(struct sandbox_pool *n)
{
	const struct renewal *r = &n->renewal;
	bool used = n->stats.forked > r->forked + n->config.stock; /* not only the stock came from it */
	if (n->config.renew_s <= 0 || r->stage != RENEWAL_NONE || !n->zygote_warm || !used || somebody_waits(n) ||
		clock_now_ns() - r->warm_ns < (uint64_t)(n->config.renew_s * NSEC_PER_SEC))
		return;
	log_info("the zygote is renewed: sessions made from now on have another address layout and hash seed");
	n->renewal.stage = RENEWAL_ENDING;
	helper_close(&n->zygote);
}

bool renewal_ended(struct sandbox_pool *n)
{
	bool wanted = n->renewal.stage == RENEWAL_ENDING;
	n->renewal.stage = wanted ? RENEWAL_STARTING : RENEWAL_NONE; /* one that dies while it starts is a failure */
	return wanted;
}

bool renewal_under_way(const struct sandbox_pool *n)
{
	return n->renewal.stage != RENEWAL_NONE;
}

void renewal_zygote_warm(struct sandbox_pool *n)
{
	bool renewed = n->renewal.stage == RENEWAL_STARTING;
	n->renewal = (struct renewal){ .warm_ns = clock_now_ns(), .forked = n->stats.forked };
	for (struct sandbox *b = TAILQ_FIRST(&n->sandboxes), *next; renewed && b; b = next) {
		next = TAILQ_NEXT(b, link);
		if (!is_old_stock(b))
			continue;
		n->stats.stock_ready--;
		sandbox_close(b);
	}
}
