#include "base/machine_room.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/text.h"

enum { FILE_MAX = 16 * 1024 };

/*
 * The number behind a word of a file, in bytes of `unit`; UINT64_MAX when it has none. An empty
 * word: the first number.
 */
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

/* The directory of the control group that we are in, of version 2 or of one controller of 1. */
static bool group_directory(const char *controller, char *ret, size_t size)
{
	_cleanup_free_ char *text = NULL;
	char key[32];
	if (fd_read_file("/proc/self/cgroup", FILE_MAX, &text, NULL) < 0)
		return false;

	snprintf(key, sizeof(key), ":%s:", controller);
	char *v1 = *controller ? strstr(text, key) : NULL, *v2 = strstr(text, "0::");
	char *at = *controller ? v1 : v2;
	if (!at)
		return false;
	at += *controller ? strlen(key) : strlen("0::");
	at[strcspn(at, "\n")] = '\0';
	snprintf(ret, size, "/sys/fs/cgroup%s%s%s", *controller ? "/" : "", controller, at);
	return true;
}

static uint64_t group_number(const char *directory, const char *file, const char *word)
{
	char path[600];
	snprintf(path, sizeof(path), "%s/%s", directory, file);
	return read_number(path, word, 1);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t beyond(uint64_t limit, uint64_t used)
{
	if (limit == UINT64_MAX || used == UINT64_MAX)
		return UINT64_MAX;
	return used < limit ? limit - used : 0;
}

/* ---- memory ---------------------------------------------------------------- */

struct group_files {
	const char *controller, *limit, *usage, *cache;
};
static const struct group_files group_files[] = {
	{ "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file " },
	{ "", "memory.max", "memory.current", "inactive_file " },
};

/* *ret_limit is lowered to the group's. */
static uint64_t group_memory(const struct group_files *f, uint64_t *ret_limit)
{
	char directory[512];
	if (!group_directory(f->controller, directory, sizeof(directory)))
		return UINT64_MAX;

	uint64_t most = group_number(directory, f->limit, ""),
		 used = group_number(directory, f->usage, ""),
		 freed = group_number(directory, "memory.stat", f->cache);
	*ret_limit = least(*ret_limit, most);
	/* the kernel takes back what it keeps of files when it needs it */
	if (used != UINT64_MAX && freed < used)
		used -= freed;
	return beyond(most, used);
}

static uint64_t groups_memory(uint64_t *ret_limit)
{
	uint64_t left = UINT64_MAX;
	for (size_t i = 0; i < ARRAY_LEN(group_files); i++)
		left = least(left, group_memory(&group_files[i], ret_limit));
	return left;
}

uint64_t group_memory_left(void)
{
	uint64_t limit = UINT64_MAX;
	return groups_memory(&limit);
}

uint64_t machine_memory_left(void)
{
	return read_number("/proc/meminfo", "MemAvailable:", 1024);
}

uint64_t machine_memory(void)
{
	return read_number("/proc/meminfo", "MemTotal:", 1024);
}

/* ---- processes ------------------------------------------------------------- */

static const char *const pids_controllers[] = { "pids", "" };

/* The least of the limits; *ret_left: the least of what is left. */
static uint64_t processes(uint64_t *ret_left)
{
	uint64_t limit = least(read_number("/proc/sys/kernel/pid_max", "", 1),
		read_number("/proc/sys/kernel/threads-max", "", 1));
	/* "0.00 0.01 0.05 1/234 5678": the number behind the slash counts all threads */
	uint64_t left = beyond(limit, read_number("/proc/loadavg", "/", 1));
	for (size_t i = 0; i < ARRAY_LEN(pids_controllers); i++) {
		char directory[512];
		if (!group_directory(pids_controllers[i], directory, sizeof(directory)))
			continue;
		uint64_t most = group_number(directory, "pids.max", "");
		limit = least(limit, most);
		left = least(left, beyond(most, group_number(directory, "pids.current", "")));
	}
	*ret_left = left;
	return limit;
}

uint64_t machine_processes_limit(void)
{
	uint64_t left;
	return processes(&left);
}

/* ---- descriptors ----------------------------------------------------------- */

unsigned descriptors_open(void)
{
	struct stat st;
	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
		/* since Linux 6.2; counting tens of thousands takes milliseconds */
		return (unsigned)st.st_size;
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;
	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n > 3 ? n - 3 : 0; /* ".", ".." and the directory itself */
}

void machine_room_look(struct machine_room *ret)
{
	struct rlimit files;
	*ret = (struct machine_room){ .descriptors_limit = UINT64_MAX,
		.descriptors_left = UINT64_MAX,
		.memory_limit = machine_memory() };
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		ret->descriptors_limit = files.rlim_cur;
		ret->descriptors_left = beyond(files.rlim_cur, descriptors_open());
	}
	ret->processes_limit = processes(&ret->processes_left);
	ret->memory_left = least(machine_memory_left(), groups_memory(&ret->memory_limit));
}
