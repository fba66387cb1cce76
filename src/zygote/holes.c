#include "zygote/holes.h"

#include "guest/python.h"

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	LARGEST = 1 << 20,        /* of malloc's free chunks; larger ones are few */
	SMALLEST = 24,            /* what malloc hands out at least */
	POOL_BYTES = 16 * 1024,   /* of Python's allocator since 3.10: blocks of one size side by side */
	POOL_HEAD = 48,
	BLOCK_STEP = 16,
	BLOCK_MAX = 512,          /* larger ones come from malloc */
	POOLS_MAX = 4096,         /* per size, should the pools look different from what is said above */
};

/*
 * Chunks below malloc's top are holes. From large to small, so that no remainder stays. Asking for a large one first also sorts
 * what was freed lately, which else the first large request of every guest would do, writing into all of it.
 */
static void fill_malloc(void)
{
	uintptr_t top = (uintptr_t)sbrk(0) - mallinfo2().keepcost;
	for (size_t size = LARGEST; size >= SMALLEST; size = size > 1024 ? size - size / 8 : size - 16) {
		for (;;) {
			void *p = malloc(size);
			if (!p || (uintptr_t)p >= top) {
				free(p);
				break;
			}
		}
		if (size < SMALLEST + 16)
			break;
	}
}

/* Takes blocks of one size until a whole pool comes in one piece: the half-used ones are full then. Gives that pool back. */
static void fill_pools(size_t size)
{
	enum { BLOCKS_MAX = POOL_BYTES / BLOCK_STEP };
	void *run[BLOCKS_MAX];
	size_t per_pool = (POOL_BYTES - POOL_HEAD) / size, n = 0;
	for (size_t tried = 0; n < per_pool && tried < (size_t)POOLS_MAX * per_pool; tried++) {
		char *p = PyObject_Malloc(size);
		if (!p)
			break;
		if (n && p != (char *)run[n - 1] + size)
			n = 0;
		if (n || ((uintptr_t)p & (POOL_BYTES - 1)) == POOL_HEAD)
			run[n++] = p;
	}
	while (n)
		PyObject_Free(run[--n]);
}

void holes_fill(void)
{
	for (size_t size = BLOCK_STEP; size <= BLOCK_MAX; size += BLOCK_STEP)
		fill_pools(size);
	fill_malloc();
}
