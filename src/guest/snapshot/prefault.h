/*
 * Pages that cells write to. A parked copy shares every page with the guest, and the kernel copies
 * each page at the first write to it: some 150 pages, which delay the smallest cell by half a
 * millisecond. These pages are determined once, from a small cell; from then on they are copied
 * right after parking, while no client waits.
 */
#pragma once

/* In the zygote, when all is warm: the memory that is looked at. */
void prefault_prepare(void);

/*
 * Before the guest parks a copy, when cells were run since the last one: learns from them, unless
 * that was done.
 */
void prefault_learn(void);

/* When every page is shared with a copy: copies those that were learnt. */
void prefault_copy(void);
