/*
 * Pages that cells write to. Once a copy of the guest is parked it shares every page with it, and the first write to each has the kernel copy it: some
 * 150 pages and half a millisecond in the way of the smallest cell. Which pages those are is found out once, from a small cell; from then on
 * they are copied right after parking, while nobody waits.
 */
#pragma once

/* In the zygote, when all is warm: the memory that is looked at. */
void prefault_prepare(void);

/* Before the guest parks a copy, when cells were run since the last one: learns from them, unless that was done. */
void prefault_learn(void);

/* When every page is shared with a copy: copies those that were learnt. */
void prefault_copy(void);
