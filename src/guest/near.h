/* What a first cell touches, brought into the CPU's caches while its client still reads that it has a session. After a pause nothing of it is there. */
#pragma once

#include <stddef.h>

/* In the zygote: there will be at most n blocks; the blocks. */
void near_prepare(size_t n);
void near_add(const void *block, size_t size);

/* In a guest. Some 0.1 ms, in which nothing is written to. */
void near_fetch(void);
