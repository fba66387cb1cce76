/*
 * Renewing the zygote: all guests of one zygote share its address layout and hash seed. After a time (sandbox_pool_config.renew_s) a zygote that guests were
 * made from is ended and another one started. Guests in stock bridge the time until it is warm, and are replaced then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sandbox_pool;

struct renewal {
	enum { RENEWAL_NONE, RENEWAL_ENDING, RENEWAL_STARTING } stage;
	uint64_t warm_ns;    /* since when the zygote serves */
	uint64_t forked;     /* guests made before it */
};

void renewal_look(struct sandbox_pool *n);        /* from time to time: is it due, and does nobody wait for a guest? */
bool renewal_ended(struct sandbox_pool *n);       /* the zygote has ended: was that wanted? */
void renewal_zygote_warm(struct sandbox_pool *n); /* another one serves */
bool renewal_under_way(const struct sandbox_pool *n);
