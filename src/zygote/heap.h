/*
 * The layout of the warm heap, which all guests share.
 *
 * A fork copies page tables, and huge pages (huge_pages.h) have few; so Python's arenas, 1 MiB
 * each, lie side by side in a few large regions while the template is imported. And a heap from
 * which much was freed is full of holes: a guest would put its new objects into them, each into
 * another page that it then has to copy. They are filled before the first fork, so that a guest's
 * own objects lie side by side.
 */
#pragma once

#include <stddef.h>

/* From here on until heap_settle(), arenas come from such regions. */
void heap_begin(void);

/* How large a block Python's allocator makes of this. */
size_t heap_block_size(size_t size);

/* The blocks of this size that come next lie side by side. */
void heap_fill(size_t size);

/*
 * No hole is left between what is alive. From here on, in guests, the first arenas are Python's
 * own, which are small; those of a heap that has grown lie in huge pages again, because it may be
 * copied itself (src/guest/snapshot/guest_snapshot.h).
 */
void heap_settle(void);
