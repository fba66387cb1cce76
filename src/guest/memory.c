#include "guest/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { MEMORY_LENT = 64 << 20 };

static uint64_t limit;

static int set_soft(uint64_t bytes)
{
	struct rlimit r = { .rlim_cur = bytes, .rlim_max = limit + MEMORY_LENT };
	return setrlimit(RLIMIT_DATA, &r) < 0 ? -errno : 0;
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
	return set_soft(limit);
}

void memory_lend(bool on)
{
	if (limit)
		set_soft(on ? limit + MEMORY_LENT : limit);
}

void memory_reset_peak(void)
{
	_cleanup_fd_ int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t w = write(fd, "5", 1); /* 5: the high-water mark only, pages are left alone */
		(void)w;
	}
}

uint64_t memory_peak(void)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return (uint64_t)r.ru_maxrss * 1024;
}
