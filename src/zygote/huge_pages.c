#include "zygote/huge_pages.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/maps.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define HUGE ((uintptr_t)2 << 20)

enum {
	MAPPINGS_MAX = 4096,
	/* of a huge page that is filled up, so much must be there already */
	HEAP_WORTH = 128 << 10,
	CHUNK = 32 << 10, /* below what malloc would map */
	SMALL_PAGE = 4096,
};

/* ---- what there is ----------------------------------------------------------------- */

static struct map mappings[MAPPINGS_MAX];
static size_t n_mappings;

static void look(void)
{
	n_mappings = maps_look(mappings, MAPPINGS_MAX);
}

static bool is_code(const struct map *m)
{
	return m->executable && m->private && m->of_file && !m->writable;
}

static uintptr_t up(uintptr_t at)
{
	return (at + HUGE - 1) & -HUGE;
}

static uintptr_t down(uintptr_t at)
{
	return at & -HUGE;
}

/* ---- the heap ---------------------------------------------------------------------- */

/*
 * Moves the end of malloc's memory into the next huge page. Nothing else can fill this one up: that
 * memory must be able to grow.
 */
static void fill_malloc(void)
{
	uintptr_t end = up((uintptr_t)sbrk(0));
	unsigned left = 2 * HUGE / CHUNK;
	for (char *p = NULL; left && (uintptr_t)p + CHUNK < end && (p = malloc(CHUNK)); left--)
		; /* taken for good */
}

static void fill(uintptr_t start, uintptr_t end)
{
	if (end > start) /* where it cannot, small pages remain */
		mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

/* A huge page of which a part is the heap's and the rest is nobody's: that becomes memory too. */
static void fill_up(uintptr_t block)
{
	uintptr_t end = block + HUGE, at = block, brk = (uintptr_t)sbrk(0), there = 0;
	const struct map *first = mappings, *last;

	for (; first < mappings + n_mappings && first->end <= block; first++)
		;
	for (last = first; last < mappings + n_mappings && last->start < end; last++) {
		if (!map_is_heap(last) || (last->end == brk && brk < end))
			return;
		there += (last->end < end ? last->end : end) -
			 (last->start > block ? last->start : block);
	}

	if (there < HEAP_WORTH)
		return;
	for (; first < last; at = first++->end)
		fill(at, first->start);
	fill(at, end);
}

void pages_collapse(void)
{
	fill_malloc();
	look();
	for (size_t i = 0; i < n_mappings; i++) {
		if (!map_is_heap(&mappings[i]))
			continue;
		fill_up(down(mappings[i].start));
		fill_up(down(mappings[i].end));
	}
	look();
	for (size_t i = 0; i < n_mappings; i++)
		for (uintptr_t at = up(mappings[i].start);
			map_is_heap(&mappings[i]) && at < down(mappings[i].end); at += HUGE)
			madvise((void *)at, HUGE, MADV_COLLAPSE);
}

/* ---- code -------------------------------------------------------------------------- */

/*
 * Whether half of the pages are there: warming up ran what is in them, or the kernel had it close
 * by.
 */
static bool in_use(uintptr_t start, uintptr_t end)
{
	const uint64_t present = 1ULL << 63;
	uint64_t entry;
	size_t n = 0;
	_cleanup_file_ FILE *map = fopen("/proc/self/pagemap", "re");
	if (!map || fseeko(map, (off_t)(start / SMALL_PAGE * sizeof(entry)), SEEK_SET) < 0)
		return false;
	for (uintptr_t at = start; at < end && fread(&entry, sizeof(entry), 1, map) == 1;
		at += SMALL_PAGE)
		n += (entry & present) != 0;
	return n >= (end - start) / SMALL_PAGE / 2;
}

static void copy_code(uintptr_t start, uintptr_t end)
{
	size_t size = end - start;
	char *room = mmap(
		NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return;
	char *copy = (char *)up((uintptr_t)room);
	memcpy(copy, (const void *)start, size);
	if (madvise(copy, size, MADV_COLLAPSE) == 0 &&
		mprotect(copy, size, PROT_READ | PROT_EXEC) == 0)
		mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start);
	munmap(room, size + HUGE); /* without what was moved away */
}

void pages_copy_code(void)
{
	look();
	for (size_t i = 0; i < n_mappings; i++) {
		uintptr_t start = up(mappings[i].start), end = down(mappings[i].end);
		if (is_code(&mappings[i]) && start < end && in_use(start, end))
			copy_code(start, end);
	}
}

/* ---- mappings -------------------------------------------------------------------- */

static void protect(uintptr_t start, uintptr_t end, int protection)
{
	if (end > start)
		mprotect((void *)start, end - start, protection);
}

/*
 * Of one object: segments that are not written to and that follow one another in the file too; and
 * what was made constant after its relocation.
 */
static int merge(struct dl_phdr_info *info, size_t size, void *unused)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), run = 0, run_end = 0, run_offset = 0;
	(void)size, (void)unused;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr, end = start + p->p_memsz;
		if (p->p_type == PT_GNU_RELRO)
			protect(start & -page, end & -page, PROT_READ | PROT_WRITE);
		if (p->p_type != PT_LOAD || p->p_flags & PF_W)
			continue;
		if ((start & -page) != run_end || start - p->p_offset != run_offset) {
			run = start & -page;
			run_offset = start - p->p_offset;
		} else {
			protect(run, (end + page - 1) & -page, PROT_READ | PROT_EXEC);
		}
		run_end = (end + page - 1) & -page;
	}

	return 0;
}

void pages_merge(void)
{
	dl_iterate_phdr(merge, NULL);
}
