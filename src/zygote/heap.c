#include "zygote/heap.h"

#include "guest/run/python.h"

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	HUGE_PAGE = 2 << 20,
	REGION = 32 << 20,
	/*
	 * Arenas of 1 MiB that are aligned to it cost Python one comparison more in every free(),
	 * up to 2 % of a loop over integers.
	 */
	FIRST_ARENA = 512 * 1024,
	CHUNK_MAX =
		64 *
		1024, /* below what malloc would map: that, freed, would change where guests' large
				  blocks come from */
	CHUNK_MIN = 24,
	/*
	 * Python's allocator since 3.10: pools of blocks of one size. Should they look different
	 * one day, nothing breaks: the filling ends at POOLS_MAX.
	 */
	POOL = 16 * 1024,
	POOL_HEAD = 48,
	POOLS_MAX = 4096,
	BLOCK_STEP = 16,
	BLOCK_MAX = 512,
	/*
	 * A guest's own arenas: so many as Python has them, where every page counts in the density
	 * of small sessions, then in huge pages.
	 */
	SMALL_ARENAS = 8,
};

/* ---- arenas --------------------------------------------------------------------- */

static PyObjectArenaAllocator usual;
static char *region; /* aligned to a huge page … */
static size_t used;  /* … and given away up to here */

/* Memory that starts at a huge page. */
static char *map_aligned(size_t size)
{
	char *p = mmap(
		NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	size_t before = -(uintptr_t)p & (HUGE_PAGE - 1);
	if (before)
		munmap(p, before);
	munmap(p + before + size, HUGE_PAGE - before);
	return p + before;
}

static void *take_arena(void *unused, size_t size)
{
	(void)unused;
	if (size > REGION - FIRST_ARENA)
		return usual.alloc(usual.ctx, size);
	if (!region || size > REGION - used) {
		if (!(region = map_aligned(REGION)))
			return NULL;
		used = FIRST_ARENA;
	}
	used += size;
	return region + used - size;
}

void heap_begin(void)
{
	PyObject_GetArenaAllocator(&usual);
	PyObjectArenaAllocator aligned = usual; /* freed as ever: by unmapping */
	aligned.alloc = take_arena;
	PyObject_SetArenaAllocator(&aligned);
}

/* ---- arenas of a guest that has grown -------------------------------------------- */

static unsigned small_arenas; /* that this guest has taken so far */
/* huge pages are mapped from here on; arenas were given away down to there */
static char *floor_of_huge, *cursor;

/* One more, below the last one, where the kernel makes one mapping of them. */
static bool map_huge(void)
{
	char *below = floor_of_huge ? floor_of_huge - HUGE_PAGE : NULL;
	char *p = below ? mmap(below, HUGE_PAGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
			: MAP_FAILED;

	if (p != MAP_FAILED && p != below) { /* something lies there */
		munmap(p, HUGE_PAGE);
		p = MAP_FAILED;
	}

	if (p == MAP_FAILED) {
		if (!(p = map_aligned(HUGE_PAGE)))
			return false;
		cursor = p + HUGE_PAGE - FIRST_ARENA;
	}

	madvise(p, HUGE_PAGE, MADV_HUGEPAGE);
	floor_of_huge = p;
	return true;
}

/*
 * A fork copies an entry of the page tables for every page, and a copy of a large heap (a
 * checkpoint, a rollback, a fork of the session) is little else. Of huge pages it has 512 times
 * fewer, and filling them takes fewer faults.
 */
static void *take_guest_arena(void *unused, size_t size)
{
	(void)unused;
	if (size > HUGE_PAGE / 2 || small_arenas < SMALL_ARENAS) {
		small_arenas++;
		return usual.alloc(usual.ctx, size);
	}
	if ((!cursor || size > (size_t)(cursor - floor_of_huge)) && !map_huge())
		return usual.alloc(usual.ctx, size);
	return cursor -= size;
}

/* ---- holes ------------------------------------------------------------------------ */

/*
 * Takes blocks of one size, for good, until a whole pool comes in one piece: those in use are full
 * then. That one is given back.
 */
static void fill_pools(size_t size)
{
	char *run[POOL / BLOCK_STEP];
	size_t n = 0, per_pool = (POOL - POOL_HEAD) / size;
	for (size_t left = POOLS_MAX * per_pool; left && n < per_pool; left--) {
		char *block = PyObject_Malloc(size);
		if (n && block != run[n - 1] + size)
			n = 0;
		if (block && (n || ((uintptr_t)block & (POOL - 1)) == POOL_HEAD))
			run[n++] = block;
	}
	while (n)
		PyObject_Free(run[--n]);
}

size_t heap_block_size(size_t size)
{
	return size > BLOCK_MAX ? size
	       : size           ? (size + BLOCK_STEP - 1) / BLOCK_STEP * BLOCK_STEP
				: BLOCK_STEP;
}

void heap_fill(size_t size)
{
	if (size <= BLOCK_MAX)
		fill_pools(size);
}

/*
 * Takes malloc's free chunks of at least this size, for good, until one has to be cut from the end
 * of the heap.
 */
static void fill_chunks(size_t size, uintptr_t heap_end)
{
	for (;;) {
		void *chunk = malloc(size);
		if (!chunk || (uintptr_t)chunk >= heap_end) {
			free(chunk);
			return;
		}
	}
}

void heap_settle(void)
{
	/* freed as ever, too: a part of a huge page is pages again */
	PyObjectArenaAllocator guests = usual;
	guests.alloc = take_guest_arena;
	PyObject_SetArenaAllocator(&usual);
	if (region && used < REGION)
		munmap(region + used, REGION - used);
	for (size_t size = BLOCK_STEP; size <= BLOCK_MAX; size += BLOCK_STEP)
		fill_pools(size);
	uintptr_t heap_end = (uintptr_t)sbrk(0) - mallinfo2().keepcost;
	for (size_t size = CHUNK_MAX; size > CHUNK_MIN;
		size -= size > 1024 ? size / 8 : 16) /* large first: no remainder stays */
		fill_chunks(size, heap_end);
	fill_chunks(CHUNK_MIN, heap_end);
	PyObject_SetArenaAllocator(&guests);
}
