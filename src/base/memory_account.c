#include "base/memory_account.h"

#include <errno.h>

#include "base/limits.h"

/*
 * Holders of large amounts share three quarters of the limit. The last quarter is reserved for
 * holders of small amounts, so that they can continue when the others use their whole share.
 */
static const size_t for_much = LIMIT_HELD_BYTES - LIMIT_HELD_BYTES / 4;

static size_t total;

static size_t most(size_t others)
{
	size_t left = others < LIMIT_HELD_BYTES ? LIMIT_HELD_BYTES - others : 0;
	size_t share = others < for_much ? (for_much - others) / 4 : 0;
	size_t little = left < HOLD_FREE_BYTES ? left : HOLD_FREE_BYTES;
	return share > little ? share : little;
}

int hold_set(struct hold *h, size_t bytes)
{
	size_t others = total - h->bytes;
	if (bytes > h->bytes && bytes > most(others))
		return -ENOBUFS;
	total = others + bytes;
	h->bytes = bytes;
	return 0;
}

size_t hold_total(void)
{
	return total;
}

bool hold_is_short(void)
{
	return total > LIMIT_HELD_BYTES / 2;
}

bool hold_is_full(void)
{
	return total > LIMIT_HELD_BYTES - LIMIT_HELD_BYTES / 16;
}
