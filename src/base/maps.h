/* The memory mappings of this process, read from the kernel. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
	uintptr_t start, end;
	bool writable, executable, private, of_file, stack;
};

/* Ascending. Returns how many there are of them in ret; what does not fit is left out. */
size_t maps_look(struct map *ret, size_t max);

/* Private writable memory without a file: the heap's, Python's or malloc's. */
static inline bool map_is_heap(const struct map *m)
{
	return m->writable && m->private && !m->of_file && !m->stack;
}
