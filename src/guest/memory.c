#include "guest/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { MEMORY_LENT = 64 << 20 };

static uint64_t limit, own_limit, resident_at_birth;
static bool lent;

static int set_soft(uint64_t bytes)
{
	struct rlimit r = { .rlim_cur = bytes, .rlim_max = limit + MEMORY_LENT };
	return setrlimit(RLIMIT_DATA, &r) < 0 ? -errno : 0;
}

/* Pages in memory now that no file backs. */
static uint64_t resident_now(void)
{
	char text[128];
	unsigned long resident = 0, shared = 0;
	_cleanup_fd_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	if (sscanf(text, "%*u %lu %lu", &resident, &shared) != 2 || shared > resident)
		return 0;
	return (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Data pages now: what came from the zygote counts for the kernel, but is not the session's. */
static uint64_t data_now(void)
{
	unsigned long pages = 0;
	_cleanup_file_ FILE *f = fopen("/proc/self/statm", "re");
	if (!f || fscanf(f, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
		return 0;
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int memory_limit(uint64_t bytes)
{
	if (!bytes)
		return 0;
	limit = data_now() + bytes;
	own_limit = bytes;
	resident_at_birth = resident_now();
	return set_soft(limit);
}

void memory_lend(bool on)
{
	if (limit && on != lent)
		set_soft(on ? limit + MEMORY_LENT : limit);
	lent = on;
}

void memory_reset_peak(void)
{
	_cleanup_fd_ int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t w = write(fd, "5", 1); /* 5: the high-water mark only, pages are left alone */
		(void)w;
	}
}

bool memory_has_room_for_copy(void)
{
	return !own_limit || resident_now() <= resident_at_birth + own_limit / 2;
}
