#include "jail/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "jail/figures.h"
#include "jail/proc_files.h"

enum { CPUINFO_MAX = 8 << 20 };

/*
 * What a program can ask the processor itself, or computes with. Not the rest of the host's file:
 * the microcode's version and the list of faults that the kernel works around tell which attacks
 * this machine is open to.
 */
static const char *const told[] = { "processor", "vendor_id", "cpu family", "model", "model name",
	"stepping", "cpu MHz", "cache size", "physical id", "siblings", "core id", "cpu cores",
	"fpu", "cpuid level", "wp", "flags", "bogomips", "BogoMIPS", "clflush size",
	"cache_alignment", "address sizes", "Features", "CPU implementer", "CPU architecture",
	"CPU variant", "CPU part", "CPU revision" };

static const char *const directories[] = { "sys", "sys/devices", "sys/devices/system",
	"sys/devices/system/cpu", PROC_FILES_SHARED };

/* Swapping is the host's affair, and what programs mount are these. */
static const struct {
	const char *name, *text;
} constant[] = {
	{ "filesystems", "nodev\ttmpfs\nnodev\tproc\nnodev\tdevpts\n" },
	{ "vmstat",
		"pgpgin 0\npgpgout 0\npswpin 0\npswpout 0\npgfault 0\npgmajfault 0\noom_kill 0\n" },
};

static int write_text(const char *root, const char *path, const char *text, size_t len)
{
	char at[PATH_MAX];
	snprintf(at, sizeof(at), "%s/%s", root, path);
	_cleanup_fd_ int fd = open(at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
	return fd < 0 ? -errno : fd_write_full(fd, text, len);
}

static int write_shared(const char *root, const char *name, const char *text, size_t len)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), PROC_FILES_SHARED "/%s", name);
	return write_text(root, path, text, len);
}

/* ---- processors ------------------------------------------------------------------------- */

static bool is_told(const char *line, size_t len)
{
	size_t name = strcspn(line, ":\n");
	if (name >= len)
		return true; /* an empty line */
	while (name && (line[name - 1] == '\t' || line[name - 1] == ' '))
		name--;
	for (size_t i = 0; i < ARRAY_LEN(told); i++)
		if (strlen(told[i]) == name && !memcmp(told[i], line, name))
			return true;
	return false;
}

/* The blocks of those processors on which jails run, and of each the lines that are told. */
static int filter_cpuinfo(const char *text, const cpu_set_t *cpus, struct buffer *ret)
{
	bool ours = true;
	unsigned id;
	int r = 0;
	while (r == 0 && *text) {
		size_t len = strcspn(text, "\n") + 1;
		if (sscanf(text, "processor : %u", &id) == 1)
			ours = id < CPU_SETSIZE && CPU_ISSET(id, cpus);
		if (ours && is_told(text, len))
			r = buffer_append(ret, text, len);
		text += len;
	}
	return r;
}

static int add_cpuinfo(const char *root, const cpu_set_t *cpus)
{
	_cleanup_free_ char *host = NULL;
	_cleanup_(buffer_finish) struct buffer ours = { 0 };
	int r = fd_read_file("/proc/cpuinfo", CPUINFO_MAX, &host, NULL);
	if (r < 0)
		return r;
	r = filter_cpuinfo(host, cpus, &ours);
	return r < 0 ? r : write_shared(root, "cpuinfo", ours.data, ours.len);
}

/* As "0-3,8", the way the kernel writes it. */
static size_t list_cpus(const cpu_set_t *cpus, char *text, size_t size)
{
	size_t len = 0;
	for (unsigned i = 0, last; i < CPU_SETSIZE && len < size; i = last + 1) {
		last = i;
		if (!CPU_ISSET(i, cpus))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
			last++;
		len += (size_t)snprintf(text + len, size - len, last > i ? "%s%u-%u" : "%s%u",
			len ? "," : "", i, last);
	}
	len += len < size ? (size_t)snprintf(text + len, size - len, "\n") : 0;
	return len < size ? len : size - 1;
}

static int add_cpu_lists(const char *root, const cpu_set_t *cpus)
{
	static const char *const names[] = { "online", "possible", "present" };
	char text[4096], path[PATH_MAX];
	size_t len = list_cpus(cpus, text, sizeof(text));
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "sys/devices/system/cpu/%s", names[i]);
		r = write_text(root, path, text, len);
	}
	return r;
}

/*
 * Which processors share a core: what lscpu, psutil and loky count cores by. Missing files are left
 * out.
 */
static int add_topology(const char *root, unsigned cpu)
{
	static const char *const names[] = { "core_id", "physical_package_id", "thread_siblings",
		"thread_siblings_list", "core_siblings", "core_siblings_list", "core_cpus",
		"core_cpus_list", "package_cpus", "package_cpus_list" };
	char place[64], path[PATH_MAX];

	snprintf(place, sizeof(place), "sys/devices/system/cpu/cpu%u", cpu);
	snprintf(path, sizeof(path), "%s/%s", root, place);
	int r = mkdir(path, 0755) < 0 ? -errno : 0;
	snprintf(path, sizeof(path), "%s/%s/topology", root, place);
	if (r == 0)
		r = mkdir(path, 0755) < 0 ? -errno : 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(names); i++) {
		_cleanup_free_ char *text = NULL;
		size_t len;
		snprintf(path, sizeof(path), "/%s/topology/%s", place, names[i]);
		if (fd_read_file(path, 4096, &text, &len) == 0)
			r = write_text(root, path, text, len);
	}

	return r;
}

/* ---- all --------------------------------------------------------------------------------- */

int machine_add(const char *root)
{
	char path[PATH_MAX];
	cpu_set_t cpus;
	int r = sched_getaffinity(0, sizeof(cpus), &cpus) < 0 ? -errno : 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(directories); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, directories[i]);
		r = mkdir(path, 0755) < 0 ? -errno : 0;
	}

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(constant); i++)
		r = write_shared(
			root, constant[i].name, constant[i].text, strlen(constant[i].text));
	if (r == 0)
		r = add_cpuinfo(root, &cpus);
	if (r == 0)
		r = add_cpu_lists(root, &cpus);
	for (unsigned i = 0; r == 0 && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &cpus))
			r = add_topology(root, i);
	return r;
}
