/* What a zygote learnt, kept in a file: read as it was written, and nothing else taken for it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"
#include "zygote/placement/placement_cache.h"

static struct placement_cache_entry got[BOOK_ENTRIES_MAX];

static int file(void)
{
	return memfd_create("book", MFD_CLOEXEC);
}

static void write_and_read(void)
{
	static struct placement_cache_entry some[BOOK_ENTRIES_MAX];
	int fd = file();
	for (size_t i = 0; i < BOOK_ENTRIES_MAX; i++)
		some[i] = (struct placement_cache_entry){ (i + 1) * 0x123456789abcdefULL,
			(uint32_t)(i % BOOK_SIZE_MAX + 1), i % BOOK_USES };
	OK(placement_cache_read(fd, got) == 0);
	OK(placement_cache_write(fd, some, BOOK_ENTRIES_MAX) == 0);
	OK(placement_cache_read(fd, got) == BOOK_ENTRIES_MAX);
	OK(memcmp(some, got, sizeof(some)) == 0);
	OK(placement_cache_write(fd, some + 5, 3) == 0); /* shorter than before */
	OK(placement_cache_read(fd, got) == 3);
	OK(memcmp(some + 5, got, 3 * sizeof(some[0])) == 0);
	OK(placement_cache_write(fd, NULL, 0) == 0);
	OK(lseek(fd, 0, SEEK_END) == 0);
	OK(placement_cache_read(fd, got) == 0);
	close(fd);
}

/* Every byte counts, and so does their number. */
static void spoilt(void)
{
	const struct placement_cache_entry some[] = { { 1, 16, BOOK_WRITTEN },
		{ 2, BOOK_SIZE_MAX, BOOK_READ } };
	int fd = file();
	placement_cache_write(fd, some, 2);
	off_t size = lseek(fd, 0, SEEK_END);
	char *bytes = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned taken = 0;
	for (off_t at = 0; at < size; at++) {
		bytes[at] ^= 0x10;
		taken += placement_cache_read(fd, got) != 0;
		bytes[at] ^= 0x10;
	}
	OK(taken == 0);
	OK(placement_cache_read(fd, got) == 2);
	OK(ftruncate(fd, size - 1) == 0 && placement_cache_read(fd, got) == 0);
	munmap(bytes, (size_t)size);
	close(fd);
}

static void impossible(void)
{
	const struct placement_cache_entry wrong[] = { { 0, 16, BOOK_WRITTEN },
		{ 1, 0, BOOK_WRITTEN }, { 1, BOOK_SIZE_MAX + 1, BOOK_WRITTEN },
		{ 1, 16, BOOK_USES } };
	for (int i = 0; i < 4; i++) {
		int fd = file();
		placement_cache_write(fd, &wrong[i], 1);
		OK(placement_cache_read(fd, got) == 0);
		close(fd);
	}
	OK(placement_cache_read(-1, got) == 0);
}

int main(void)
{
	write_and_read();
	spoilt();
	impossible();
	return tap_done();
}
