#include "sandbox/renewal.h"

#include "base/clock.h"
#include "base/log.h"
#include "sandbox/sandbox.h"

/* Guests that wait in the pool without an owner. */
static bool is_outdated(const struct sandbox *b)
{
	return sandbox_is_unowned(b) && b->state == SANDBOX_READY && !b->spare && !b->kind.set &&
	       !b->kind.template;
}

static bool somebody_waits(const struct sandbox_pool *n)
{
	const struct sandbox *b;
	TAILQ_FOREACH (b, &n->sandboxes, link)
		if ((b->state == SANDBOX_GUEST && !b->spare) || b->state == SANDBOX_STARTING ||
			b->state == SANDBOX_KILL_ALL)
			return true;
	return false;
}

void renewal_look(struct sandbox_pool *n)
{
	const struct renewal *r = &n->renewal;

	/* sessions came from it, not only ready guests */
	bool used = n->stats.forked > r->forked + n->config.ready_target;
	if (n->config.renew_s <= 0 || r->stage != RENEWAL_NONE || !n->zygote_warm || !used ||
		somebody_waits(n) ||
		clock_now_ns() - r->warm_ns < (uint64_t)(n->config.renew_s * NSEC_PER_SEC))
		return;

	log_info(
		"the zygote was renewed: sessions created from now on have another address layout and hash seed");
	n->renewal.stage = RENEWAL_ENDING;
	helper_close(&n->zygote);
}

bool renewal_ended(struct sandbox_pool *n)
{
	bool wanted = n->renewal.stage == RENEWAL_ENDING;
	/* one that dies while it starts is a failure */
	n->renewal.stage = wanted ? RENEWAL_STARTING : RENEWAL_NONE;
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
		if (!is_outdated(b))
			continue;
		n->stats.ready -= sandbox_ready_weight(b);
		sandbox_close(b);
	}
	if (renewed)
		template_renew(n);
}
