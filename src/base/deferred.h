/*
 * Work that nobody waits for, such as freeing large memory: done in slices, so that one thread can
 * serve others in between.
 *
 * Whoever owns the thread's loop says with deferred_set_wake() how it learns that there is work,
 * and then calls deferred_run() in each turn until nothing is left. Without such an owner (tests,
 * the command line) the work is done at once. One list for the process, which has one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct deferred {
	STAILQ_ENTRY(deferred) link;
	/*
	 * A slice of the work: a small part of a millisecond. False: it is done, and the struct is
	 * gone.
	 */
	bool (*step)(struct deferred *d);
};

/* Takes the work, which is on the heap. */
void deferred_add(struct deferred *d);

/* Works for about so long. True: there is more. */
bool deferred_run(uint64_t ns);

/*
 * Who is told that there is work. NULL: nobody from now on; what is left is done in this call.
 */
void deferred_set_wake(void (*wake)(void *userdata), void *userdata);

/*
 * Gives back the pages of memory that is about to be freed and whose content nobody reads again, a
 * slice at a time. *at is how far it came, 0 at first. False: the rest is small enough for free().
 */
bool deferred_drop_pages(void *memory, size_t len, size_t *at);

/*
 * free() for memory that may be large: the kernel takes some milliseconds to take back tens of
 * megabytes. NULL is fine.
 */
void deferred_free(void *memory, size_t len);
