#include "zygote/placement/placement_cache.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fds.h"

struct head {
	char kind[8];
	uint64_t n, sum;
};

static const char kind[8] = "gbbook1";

static uint64_t sum_of(const struct placement_cache_entry *entries, size_t n)
{
	uint64_t sum = n;
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ entries[i].name ^ (uint64_t)entries[i].size << 32 ^ entries[i].use) *
		      0x9e3779b97f4a7c15ULL;
	return sum;
}

size_t placement_cache_read(int fd, struct placement_cache_entry *ret)
{
	struct head head;
	if (lseek(fd, 0, SEEK_SET) < 0 || fd_read_full(fd, &head, sizeof(head)) < 0 ||
		memcmp(head.kind, kind, sizeof(kind)) != 0)
		return 0;
	if (head.n > BOOK_ENTRIES_MAX || fd_read_full(fd, ret, head.n * sizeof(*ret)) < 0 ||
		head.sum != sum_of(ret, head.n))
		return 0;
	for (size_t i = 0; i < head.n; i++)
		if (!ret[i].name || !ret[i].size || ret[i].size > BOOK_SIZE_MAX ||
			ret[i].use >= BOOK_USES)
			return 0;
	return head.n;
}

int placement_cache_write(int fd, const struct placement_cache_entry *entries, size_t n)
{
	struct head head = { .n = n, .sum = sum_of(entries, n) };
	memcpy(head.kind, kind, sizeof(kind));
	if (lseek(fd, 0, SEEK_SET) < 0 || ftruncate(fd, 0) < 0)
		return -errno;
	int r = n ? fd_write_full(fd, &head, sizeof(head)) : 0;
	return r < 0 || !n ? r : fd_write_full(fd, entries, n * sizeof(*entries));
}
