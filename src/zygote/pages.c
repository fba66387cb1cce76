#include "zygote/pages.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define HUGE ((uintptr_t)2 << 20)

/* True for a line of /proc/self/maps that is anonymous, private, writable and not a stack. */
static bool wanted(const char *line, uintptr_t *ret_start, uintptr_t *ret_end)
{
	unsigned long start, end, inode;
	char flags[8];
	if (sscanf(line, "%lx-%lx %7s %*x %*s %lu", &start, &end, flags, &inode) != 4)
		return false;
	if (inode || flags[1] != 'w' || flags[3] != 'p' || strstr(line, "[stack]"))
		return false;
	*ret_start = (start + HUGE - 1) & ~(HUGE - 1);
	*ret_end = end & ~(HUGE - 1);
	return *ret_end > *ret_start;
}

void pages_collapse(void)
{
	/* All ranges first: collapsing changes the map that is being read. */
	enum { RANGES_MAX = 512 };
	static uintptr_t ranges[RANGES_MAX][2];
	unsigned n = 0;
	char line[512];
	_cleanup_file_ FILE *f = fopen("/proc/self/maps", "re");
	while (f && n < RANGES_MAX && fgets(line, sizeof(line), f))
		n += wanted(line, &ranges[n][0], &ranges[n][1]);
	for (unsigned i = 0; i < n; i++)
		for (uintptr_t at = ranges[i][0]; at < ranges[i][1]; at += HUGE)
			madvise((void *)at, HUGE, MADV_COLLAPSE);
}

/* ---- mappings -------------------------------------------------------------------- */

static void protect(uintptr_t start, uintptr_t end, int protection)
{
	if (end > start)
		mprotect((void *)start, end - start, protection);
}

/* Of one object: segments that are not written to and that follow one another in the file too; and what was made constant after its relocation. */
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
