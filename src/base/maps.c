#include "base/maps.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

size_t maps_look(struct map *ret, size_t max)
{
	unsigned long start, end, inode;
	char line[512], flags[8];
	size_t n = 0;
	_cleanup_file_ FILE *f = fopen("/proc/self/maps", "re");

	while (f && n < max && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %7s %*x %*s %lu", &start, &end, flags, &inode) != 4)
			continue; /* the rest of a long path */
		ret[n++] = (struct map){ .start = start,
			.end = end,
			.writable = flags[1] == 'w',
			.executable = flags[2] == 'x',
			.private = flags[3] == 'p',
			.of_file = inode != 0,
			.stack = strstr(line, "[stack]") != NULL };
	}

	return n;
}
