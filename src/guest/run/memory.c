#include "guest/run/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
	MEMORY_LENT = 64 << 20,
	MEMORY_ROOM = 16 << 20,     /* free for the cell after an error about memory */
	MEMORY_ROOM_MAX = 32 << 20, /* beyond the limit, however many such errors there were */
};

static uint64_t limit, own_limit, data_at_birth, resident_at_birth;
static uint64_t beyond; /* the limit: MEMORY_ROOM_MAX at most */
static bool lent, weighed;

static int set_soft(uint64_t bytes)
{
	struct rlimit r = { .rlim_cur = bytes, .rlim_max = limit + MEMORY_LENT };
	return setrlimit(RLIMIT_DATA, &r) < 0 ? -errno : 0;
}

enum { STATM_RESIDENT = 1, STATM_SHARED, STATM_DATA = 5, STATM_FIELDS };

/*
 * /proc/self/statm in bytes; zeros when it cannot be read. Without stdio, whose pages a guest would
 * copy for it.
 */
static void read_statm(uint64_t ret[STATM_FIELDS])
{
	char text[128] = "", *at = text;
	_cleanup_fd_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	for (int i = 0; i < STATM_FIELDS; i++)
		ret[i] = n > 0 ? strtoull(at, &at, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* In memory now, and no file backs it. */
static uint64_t resident(const uint64_t field[STATM_FIELDS])
{
	return field[STATM_RESIDENT] > field[STATM_SHARED]
		       ? field[STATM_RESIDENT] - field[STATM_SHARED]
		       : 0;
}

void memory_weigh(void)
{
	uint64_t field[STATM_FIELDS];
	read_statm(field);
	data_at_birth = field[STATM_DATA];
	resident_at_birth = resident(field);
	weighed = true;
}

int memory_limit(uint64_t bytes)
{
	if (!bytes)
		return 0;
	if (!weighed)
		memory_weigh();
	weighed = false; /* a limit that comes later is for a copy, which was born with more */
	/* what came from the zygote counts for the kernel, but is not the session's */
	limit = data_at_birth + bytes;
	own_limit = bytes;
	beyond = 0;
	return set_soft(limit);
}

static uint64_t data_in_use(void)
{
	uint64_t field[STATM_FIELDS];
	read_statm(field);
	return field[STATM_DATA];
}

void memory_lend(bool on)
{
	if (on && beyond && data_in_use() + MEMORY_ROOM <= limit)
		beyond = 0;
	if (limit && on != lent)
		set_soft(limit + (on ? MEMORY_LENT : beyond));
	lent = on;
}

void memory_leave_room(void)
{
	uint64_t needed = data_in_use() + MEMORY_ROOM;
	if (!limit || needed <= limit + beyond)
		return;
	beyond = needed - limit < MEMORY_ROOM_MAX ? needed - limit : MEMORY_ROOM_MAX;
	if (!lent)
		set_soft(limit + beyond);
}

void memory_reset_peak(void)
{
	_cleanup_fd_ int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		/* 5: the high-water mark only, pages are left alone */
		ssize_t w = write(fd, "5", 1);
		(void)w;
	}
}

bool memory_has_room_for_copy(void)
{
	uint64_t field[STATM_FIELDS];
	if (!own_limit)
		return true;
	read_statm(field);
	if (resident(field) <= resident_at_birth + own_limit / 2)
		return true;
	malloc_trim(0); /* what was freed counts, too, until the system has it back */
	read_statm(field);
	return resident(field) <= resident_at_birth + own_limit / 2;
}
