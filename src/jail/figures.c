#include "jail/figures.h"

#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/clock.h"

/* The unit of processor time in /proc, whatever the kernel's own is. */
enum { TICKS_PER_S = 100 };

/* Columns of a line of meminfo between its colon and its unit, with the name. */
enum { MEMINFO_WIDTH = 23 };

static uint64_t ticks(uint64_t ns)
{
	return ns / (NSEC_PER_SEC / TICKS_PER_S);
}

const char *figures_name(enum figures_file file)
{
	static const char *const names[FIGURES_FILES] = { "stat", "meminfo", "uptime", "loadavg" };
	return names[file];
}

static void count_processes(struct figures_moment *m)
{
	DIR *d = opendir("/proc");
	for (struct dirent *e; d && (e = readdir(d));) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		unsigned pid = (unsigned)strtoul(e->d_name, NULL, 10);
		m->processes++;
		m->last_pid = pid > m->last_pid ? pid : m->last_pid;
	}
	if (d)
		closedir(d);
}

void figures_look(struct figures_moment *ret)
{
	struct timespec up = { 0 };
	struct sysinfo s = { 0 };
	*ret = (struct figures_moment){ .wall_ns = clock_wall_ns() };
	clock_gettime(CLOCK_BOOTTIME, &up);
	sysinfo(&s);
	ret->uptime_ns = (uint64_t)up.tv_sec * NSEC_PER_SEC + (uint64_t)up.tv_nsec;
	ret->machine_bytes = (uint64_t)s.totalram * s.mem_unit;
	for (int i = 0; i < 3; i++)
		ret->loads[i] = (double)s.loads[i] / (1 << SI_LOAD_SHIFT);
	sched_getaffinity(0, sizeof(ret->cpus), &ret->cpus);
	count_processes(ret);
}

/* ---- the files ---------------------------------------------------------------------- */

struct text {
	char *at;
	size_t len;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(t->at + t->len, FIGURES_TEXT_MAX - t->len, format, args);
	va_end(args);
	if (n > 0 && t->len + (size_t)n < FIGURES_TEXT_MAX)
		t->len += (size_t)n;
}

static uint64_t idle_ticks(const struct figures_moment *m, uint64_t used)
{
	uint64_t all = ticks(m->uptime_ns) * (uint64_t)CPU_COUNT(&m->cpus);
	return all > used ? all - used : 0;
}

/* Processor time is counted per group, not per processor: each gets an equal part. */
static void print_stat(struct text *t, const struct jail_figures *f, const struct figures_moment *m)
{
	uint64_t user = ticks(f->user_ns), kernel = ticks(f->system_ns),
		 idle = idle_ticks(m, user + kernel);
	uint64_t n = (uint64_t)CPU_COUNT(&m->cpus);
	add(t, "cpu  %llu 0 %llu %llu 0 0 0 0 0 0\n", (unsigned long long)user,
		(unsigned long long)kernel, (unsigned long long)idle);
	for (unsigned i = 0; n && i < FIGURES_CPUS_MAX; i++)
		if (CPU_ISSET(i, &m->cpus))
			add(t, "cpu%u %llu 0 %llu %llu 0 0 0 0 0 0\n", i,
				(unsigned long long)(user / n), (unsigned long long)(kernel / n),
				(unsigned long long)(idle / n));
	add(t, "intr 0\nctxt 0\nbtime %llu\nprocesses %u\nprocs_running 1\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
		(unsigned long long)((m->wall_ns - m->uptime_ns) / NSEC_PER_SEC), m->processes);
}

static void print_meminfo(
	struct text *t, const struct jail_figures *f, const struct figures_moment *m)
{
	uint64_t total = f->memory_bytes && f->memory_bytes < m->machine_bytes ? f->memory_bytes
									       : m->machine_bytes;
	uint64_t held = f->used_bytes < total ? f->used_bytes : total;
	uint64_t cached = f->cached_bytes < held ? f->cached_bytes : held;
	const struct {
		const char *name;
		uint64_t bytes;

	} lines[] = {
		{ "MemTotal", total },
		{ "MemFree", total - held },
		{ "MemAvailable", total - held + cached },
		{ "Buffers", 0 },
		{ "Cached", cached },
		{ "SwapCached", 0 },
		{ "Active", held - cached },
		{ "Inactive", cached },
		{ "SwapTotal", 0 },
		{ "SwapFree", 0 },
		{ "Dirty", 0 },
		{ "Writeback", 0 },
		{ "AnonPages", held - cached },
		{ "Mapped", 0 },
		{ "Shmem", 0 },
		{ "Slab", 0 },
		{ "SReclaimable", 0 },
		{ "SUnreclaim", 0 },
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		add(t, "%s:%*llu kB\n", lines[i].name, MEMINFO_WIDTH - (int)strlen(lines[i].name),
			(unsigned long long)(lines[i].bytes / 1024));
}

static void print_uptime(
	struct text *t, const struct jail_figures *f, const struct figures_moment *m)
{
	uint64_t up = ticks(m->uptime_ns), idle = idle_ticks(m, ticks(f->user_ns + f->system_ns));
	add(t, "%llu.%02llu %llu.%02llu\n", (unsigned long long)(up / TICKS_PER_S),
		(unsigned long long)(up % TICKS_PER_S), (unsigned long long)(idle / TICKS_PER_S),
		(unsigned long long)(idle % TICKS_PER_S));
}

static void print_loadavg(
	struct text *t, const struct jail_figures *f, const struct figures_moment *m)
{
	(void)f;
	add(t, "%.2f %.2f %.2f 1/%u %u\n", m->loads[0], m->loads[1], m->loads[2], m->processes,
		m->last_pid);
}

size_t figures_print(enum figures_file file, const struct jail_figures *f,
	const struct figures_moment *m, char *text)
{
	static void (*const print[FIGURES_FILES])(
		struct text *, const struct jail_figures *, const struct figures_moment *) = {
		[FIGURES_STAT] = print_stat,
		[FIGURES_MEMINFO] = print_meminfo,
		[FIGURES_UPTIME] = print_uptime,
		[FIGURES_LOADAVG] = print_loadavg,
	};
	struct text t = { .at = text };
	print[file](&t, f, m);
	return t.len;
}
