#include "base/hold.h"

#include <errno.h>

#include "base/limits.h"

static size_t total;

static size_t most(size_t others)
{
	size_t left = others < LIMIT_HELD_BYTES ? LIMIT_HELD_BYTES - others : 0;
	return left / 4 > HOLD_FREE_BYTES ? left / 4 : HOLD_FREE_BYTES;
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
