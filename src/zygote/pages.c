#include "zygote/pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

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
