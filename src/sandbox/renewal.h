/*
 * Renewing the zygote: all guests of one zygote share its address layout and hash seed. After a
 * time (sandbox_pool_config.renew_s) a zygote that guests were made from is ended and another one
 * started. Ready guests serve new sessions until the new zygote is warm, and are then replaced.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sandbox_pool;

struct renewal {
	enum { RENEWAL_NONE, RENEWAL_ENDING, RENEWAL_STARTING } stage;
	uint64_t warm_ns; /* since when the zygote serves */
	uint64_t forked;  /* guests made before it */
};

/* called regularly: renews the zygote if it is due and no session waits for a guest */
void renewal_look(struct sandbox_pool *n);
bool renewal_ended(struct sandbox_pool *n);       /* the zygote has ended: was that wanted? */
void renewal_zygote_warm(struct sandbox_pool *n); /* another one serves */
bool renewal_under_way(const struct sandbox_pool *n);
