#include "zygote/proctitle.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Fields 48 to 51 of /proc/self/stat: where arguments and environment start and end. */
static int find(uintptr_t at[4])
{
	_cleanup_free_ char *text = NULL;
	if (fd_read_file("/proc/self/stat", 8192, &text, NULL) < 0)
		return -1;
	char *p = strrchr(text, ')'); /* the name may hold spaces */
	unsigned long v[4];
	for (int field = 2; p && field < 48; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, "%lu %lu %lu %lu", &v[0], &v[1], &v[2], &v[3]) != 4)
		return -1;
	for (int i = 0; i < 4; i++)
		at[i] = v[i];
	return at[0] && at[1] > at[0] && at[3] >= at[2] ? 0 : -1;
}

/*
 * libc's environ points into the block that is about to be wiped: programs that guests start would
 * find neither PATH nor LANG. The copies are environ's from then on.
 */
static int move_environment(const uintptr_t at[4])
{
	for (char **e = environ; e && *e; e++) {
		if ((uintptr_t)*e < at[2] || (uintptr_t)*e >= at[3])
			continue;
		char *copy = strdup(*e);
		if (!copy)
			return -1;
		*e = copy;
	}
	return 0;
}

void title_set(const char *title)
{
	static uintptr_t at[4];
	if ((!at[0] && find(at) < 0) || move_environment(at) < 0)
		return;
	size_t room = at[1] - at[0], len = strlen(title);
	memset((void *)at[0], 0, room);
	memcpy((void *)at[0], title, len < room ? len : room - 1);
	memset((void *)at[2], 0, at[3] - at[2]);
}
