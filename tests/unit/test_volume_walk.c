/* Walks over the files of volumes: counting, opening up, removing, whatever code left there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fds.h"
#include "session/volumes/volume_walk.h"
#include "tap.h"

static char top[] = "/tmp/glovebox-walk-XXXXXX", outside[] = "/tmp/glovebox-outside-XXXXXX";

static int open_top(void)
{
	return open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void touch(int dir, const char *name, size_t size, mode_t mode)
{
	static const char data[8192];
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
	(void)!write(fd, data, size);
	fchmod(fd, mode);
	fd_close(fd);
}

static struct volume_walk walk(enum volume_walk_kind kind, unsigned *ret_steps)
{
	struct volume_walk w;
	unsigned steps = 1;
	int dir = open_top();
	OK(volume_walk_start(&w, dir, kind) == 0);
	fd_close(dir);
	while (volume_walk_step(&w, 4))
		steps++;
	if (ret_steps)
		*ret_steps = steps;
	return w;
}

static void build(int dir)
{
	touch(dir, "secret", 8192, 0600);
	mkdirat(dir, "closed", 0700);
	int below = openat(dir, "closed", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	touch(below, "f", 1, 0);
	fchmod(below, 0);
	fd_close(below);
	(void)!symlinkat(outside, dir, "link");
	mkfifoat(dir, "fifo", 0600);
	for (int i = 0; i < 20; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%d", i);
		touch(dir, name, 0, 0600);
	}
}

static mode_t mode_of(int dir, const char *name)
{
	struct stat st = { 0 };
	fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
	return st.st_mode & 0777;
}

static void test_counting(int dir)
{
	unsigned steps;
	struct volume_walk w = walk(VOLUME_WALK_COUNT, &steps);
	OK(w.files == 25);
	OK(w.bytes >= 8192 && w.bytes < 256 * 1024);
	OK(steps > 5);
	OK(!w.too_deep);
	OK(mode_of(dir, "secret") == 0600);
}

static void test_opening(int dir)
{
	walk(VOLUME_WALK_READABLE, NULL);
	OK(mode_of(dir, "secret") == 0644);
	OK((mode_of(dir, "closed") & 0555) == 0555);
	OK(mode_of(AT_FDCWD, outside) == 0700);
}

static void test_depth(int dir)
{
	int at = dup(dir);
	for (int i = 0; i < 2 * LIMIT_VOLUME_DEPTH; i++) {
		mkdirat(at, "d", 0755);
		int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd_close(at);
		at = next;
		touch(at, "f", 1, 0644);
	}
	fd_close(at);
	/* names that a removal might want */
	for (int i = 0; i < 40; i++) {
		char name[32];
		snprintf(name, sizeof(name), ".hoisted-%d", i);
		touch(dir, name, 1, 0644);
	}
	struct volume_walk w = walk(VOLUME_WALK_COUNT, NULL);
	OK(w.too_deep);
}

static void test_removal(void)
{
	walk(VOLUME_WALK_REMOVE, NULL);
	struct volume_walk w = walk(VOLUME_WALK_COUNT, NULL);
	OK(w.files == 0);
	OK(access(outside, F_OK) == 0);
	OK(rmdir(top) == 0);
}

int main(void)
{
	OK(mkdtemp(top) && mkdtemp(outside));
	int dir = open_top();
	build(dir);
	test_counting(dir);
	test_opening(dir);
	test_depth(dir);
	test_removal();
	fd_close(dir);
	rmdir(outside);

	struct volume_walk none = { 0 };
	volume_walk_stop(&none); /* never started */
	return tap_done();
}
