/*
 * What was learnt about a template, kept in a file between starts: the allocations, by name and size, of what a first cell touches. One that is spoilt, or of
 * another kind, counts as none; one that is wrong costs what was hoped for from it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	BOOK_ENTRIES_MAX = 1 << 15,
	BOOK_SIZE_MAX = 4096, /* larger blocks have pages of their own */
};

enum book_use { BOOK_WRITTEN, BOOK_READ, BOOK_USES };

struct book_entry {
	uint64_t name; /* not 0 */
	uint32_t size; /* 1 to BOOK_SIZE_MAX */
	uint32_t use;  /* enum book_use */
};

/* Returns how many entries there are now in ret, which has room for BOOK_ENTRIES_MAX: 0 when it is no book. */
size_t book_read(int fd, struct book_entry *ret);

/* Replaces what the file holds; no entries empty it. */
int book_write(int fd, const struct book_entry *entries, size_t n);
