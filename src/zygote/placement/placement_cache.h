/*
 * The file that keeps the result of profiling a template between starts: names and sizes of the
 * allocations that a first cell uses. A damaged file, or one of another version, counts as missing;
 * a wrong one only makes placement useless.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	BOOK_ENTRIES_MAX = 1 << 15,
	BOOK_SIZE_MAX = 4096, /* larger blocks have pages of their own */
};

enum placement_cache_use { BOOK_WRITTEN, BOOK_READ, BOOK_USES };

struct placement_cache_entry {
	uint64_t name; /* not 0 */
	uint32_t size; /* 1 to BOOK_SIZE_MAX */
	uint32_t use;  /* enum placement_cache_use */
};

/*
 * Returns how many entries there are now in ret, which has room for BOOK_ENTRIES_MAX: 0 when it is
 * no book.
 */
size_t placement_cache_read(int fd, struct placement_cache_entry *ret);

/* Replaces what the file holds; no entries empty it. */
int placement_cache_write(int fd, const struct placement_cache_entry *entries, size_t n);
