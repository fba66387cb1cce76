#include "guest/snapshot/shared_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "guest/snapshot/open_files.h"

static bool maps_known; /* whether maps_shared says what memory is shared; empty for none */
static char maps_shared[HELD_WHY_MAX];

void shared_forget(void)
{
	maps_known = false;
}

/* A line of /proc/self/maps: memory that is written to and shared. */
static bool line_is_shared(const char *line)
{
	const char *flags = strchr(line, ' ');
	return flags && strlen(flags) > 4 && flags[2] == 'w' && flags[4] == 's';
}

const char *shared_memory(void)
{
	char line[512];
	if (maps_known)
		return maps_shared[0] ? maps_shared : NULL;
	maps_known = true;
	maps_shared[0] = '\0';
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && !maps_shared[0] && fgets(line, sizeof(line), f)) {
		const char *name = strchr(line, '/');
		line[strcspn(line, "\n")] = '\0';
		if (line_is_shared(line))
			snprintf(maps_shared, sizeof(maps_shared),
				"memory is shared (%.160s): let go of it (mmap, numpy.memmap, shared_memory, multiprocessing locks)",
				name ? name : "mmap");
	}

	if (f)
		fclose(f);
	return maps_shared[0] ? maps_shared : NULL;
}
