/* What keeps the server from taking more sessions: things of the machine, or of this process, that have run out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "session/internal.h"

enum {
	LOOK_MS = 300,          /* between two looks at the machine */
	MEMORY_LEAST = 64 << 20, /* below this any session may be the one that the kernel kills for want of memory */
	DISK_LEAST = 8 << 20,    /* of the state directory: logs, recordings and packages need it */
	INODES_LEAST = 32,
	FILE_MAX = 16 * 1024,
};

/* The number behind a word of a file, in bytes of `unit`; UINT64_MAX when it has none. An empty word: the first number. */
static uint64_t read_number(const char *path, const char *word, uint64_t unit)
{
	_cleanup_free_ char *text = NULL;
	if (fd_read_file(path, FILE_MAX, &text, NULL) < 0)
		return UINT64_MAX;
	const char *at = strstr(text, word);
	char *end = NULL;
	uint64_t n = at ? strtoull(at + strlen(word), &end, 10) : 0;
	return at && end != at + strlen(word) && n < UINT64_MAX / unit ? n * unit : UINT64_MAX;
}

/* Of the control group we are in, whose limit our sessions share: its name below `base`, as /proc/self/cgroup has it behind `key`. */
static uint64_t group_left(const char *base, const char *key, const char *limit, const char *usage, const char *cache)
{
	_cleanup_free_ char *text = NULL;
	char path[512];
	if (fd_read_file("/proc/self/cgroup", FILE_MAX, &text, NULL) < 0)
		return UINT64_MAX;
	char *at = strstr(text, key);
	if (!at)
		return UINT64_MAX;
	at += strlen(key);
	at[strcspn(at, "\n")] = '\0';
	snprintf(path, sizeof(path), "%s%s/%s", base, at, limit);
	uint64_t most = read_number(path, "", 1);
	snprintf(path, sizeof(path), "%s%s/%s", base, at, usage);
	uint64_t used = read_number(path, "", 1);
	snprintf(path, sizeof(path), "%s%s/memory.stat", base, at);
	uint64_t freed = read_number(path, cache, 1); /* the kernel takes it back when it needs it */
	if (most == UINT64_MAX || used == UINT64_MAX)
		return UINT64_MAX;
	used -= freed < used ? freed : 0;
	return used < most ? most - used : 0;
}

static void look_at_memory(char *why, size_t size)
{
	uint64_t machine = read_number("/proc/meminfo", "MemAvailable:", 1024);
	uint64_t v1 = group_left("/sys/fs/cgroup/memory", ":memory:", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ");
	uint64_t v2 = group_left("/sys/fs/cgroup", "0::", "memory.max", "memory.current", "inactive_file ");
	uint64_t group = v1 < v2 ? v1 : v2;
	if (machine < MEMORY_LEAST)
		snprintf(why, size, "the machine has %llu MB of memory left", (unsigned long long)machine >> 20);
	else if (group < MEMORY_LEAST)
		snprintf(why, size, "the server's control group has %llu MB of memory left", (unsigned long long)group >> 20);
}

static void look_at_disk(const char *dir, char *why, size_t size)
{
	struct statvfs v;
	if (!dir || statvfs(dir, &v) < 0)
		return;
	uint64_t left = (uint64_t)v.f_bavail * v.f_frsize;
	if (v.f_blocks && left < DISK_LEAST)
		snprintf(why, size, "the file system of the state directory is full (%llu kB left)", (unsigned long long)left / 1024);
	else if (v.f_files && v.f_favail < INODES_LEAST)
		snprintf(why, size, "the file system of the state directory has no inodes left");
}

const char *sessions_shortage(struct sessions *t)
{
	uint64_t now = clock_now_ns();
	if (!t->shortage.looked_ns || now - t->shortage.looked_ns > LOOK_MS * NSEC_PER_MSEC) {
		t->shortage.looked_ns = now;
		t->shortage.why[0] = '\0';
		look_at_memory(t->shortage.why, sizeof(t->shortage.why));
		if (!t->shortage.why[0])
			look_at_disk(t->config.state_dir, t->shortage.why, sizeof(t->shortage.why));
	}
	return t->shortage.why[0] ? t->shortage.why : sandbox_pool_shortage(t->pool);
}

/* Guests that are ready take what has run out no more; only room for all else is looked at for them. */
static const char *shortage_now(struct sessions *t)
{
	const char *why = sessions_shortage(t);
	if (t->shortage.why[0] || sandbox_pool_stats(t->pool)->stock_ready)
		return t->shortage.why[0] ? why : NULL;
	int r = why ? 0 : fd_check_room(NURSERY_SPARE_FDS);
	sandbox_pool_note_shortage(t->pool, r, "another session");
	return sandbox_pool_shortage(t->pool);
}

int sessions_check_shortage(struct sessions *t, struct error *e)
{
	const char *why = shortage_now(t);
	if (!why)
		return 0;
	error_set(e, -EAGAIN, "no session can be made now: %s", why);
	error_remedy(e, "Try again in a second; end sessions that are not needed, or give the server more. It goes on by itself when there is room.");
	return error_slug(e, "no_resources");
}
