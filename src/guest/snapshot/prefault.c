#include "guest/snapshot/prefault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/maps.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum {
	MAPS_MAX = 4096,
	RANGES_MAX = 512,
	PAGES_MAX = 512, /* cells that write to more tell little about the next one */
	/* tried, to find a small cell; a look takes as long as a fifth of a copy */
	LESSONS_MAX = 8,
	ENTRIES = 2048, /* of the page map, read at once */
};

/* What an entry of the page map says. */
static const uint64_t present = 1ULL << 63, of_file = 1ULL << 61, alone = 1ULL << 56;

static struct {
	uintptr_t start, end;
} ranges[RANGES_MAX]; /* the zygote's writable memory, which all guests have: ascending */
static size_t n_ranges;
static uintptr_t pages[PAGES_MAX]; /* learnt; ascending */
static size_t n_pages;
static unsigned lessons;
static bool shared; /* with a copy, since cells were run */
static uintptr_t page_size;

void prefault_prepare(void)
{
	static struct map maps[MAPS_MAX];
	size_t n = maps_look(maps, MAPS_MAX);
	page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	for (size_t i = 0; i < n && n_ranges < RANGES_MAX; i++) {
		if (!maps[i].writable || !maps[i].private)
			continue;
		ranges[n_ranges].start = maps[i].start;
		ranges[n_ranges++].end = maps[i].end;
	}
}

/* ---- learning ---------------------------------------------------------------------- */

/*
 * Adds the pages of a range that are the guest's alone. False when there are too many, or one
 * cannot look.
 */
static bool look_at(int map, uintptr_t start, uintptr_t end, size_t *n)
{
	uint64_t entries[ENTRIES];
	for (uintptr_t at = start; at < end;) {
		size_t want = (end - at) / page_size < ENTRIES ? (end - at) / page_size : ENTRIES;
		ssize_t got = pread(map, entries, want * sizeof(*entries),
			(off_t)(at / page_size * sizeof(*entries)));
		if (got <= 0)
			return false;
		for (size_t i = 0; i < (size_t)got / sizeof(*entries); i++, at += page_size) {
			if ((entries[i] & (present | of_file | alone)) != (present | alone))
				continue;
			if (*n == PAGES_MAX)
				return false;
			pages[(*n)++] = at;
		}
	}

	return true;
}

void prefault_learn(void)
{
	size_t n = 0;
	if (!shared || n_pages || lessons == LESSONS_MAX)
		return;
	shared = false;
	lessons++;
	_cleanup_fd_ int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; map >= 0 && i < n_ranges; i++)
		if (!look_at(map, ranges[i].start, ranges[i].end, &n))
			return;
	n_pages = n;
}

/* ---- copying ----------------------------------------------------------------------- */

/*
 * Is it still memory of ours? To write to a file that was mapped there since would change the
 * file's time.
 */
static bool is_ours(int map, uintptr_t page)
{
	uint64_t entry;
	return pread(map, &entry, sizeof(entry), (off_t)(page / page_size * sizeof(entry))) ==
		       sizeof(entry) &&
	       (entry & (present | of_file)) == present;
}

void prefault_copy(void)
{
	shared = true;
	_cleanup_fd_ int map = n_pages ? open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC) : -1;
	for (size_t i = 0, n; map >= 0 && i < n_pages; i += n) {
		for (n = 1; i + n < n_pages && pages[i + n] == pages[i] + n * page_size; n++)
			;
		if (is_ours(map, pages[i]) &&
			madvise((void *)pages[i], n * page_size, MADV_POPULATE_WRITE) < 0 &&
			errno == EINVAL)
			/* the kernel does not support it, or the mapping is no longer writable */
			n_pages = 0;
	}
}
