/* The text of a session's files about the machine. */
#include <stdio.h>
#include <stdlib.h>

#include "jail/figures.h"
#include "tap.h"

static char text[FIGURES_TEXT_MAX];

static struct figures_moment moment(void)
{
	struct figures_moment m = { .uptime_ns = 1000 * 1000000000ULL,
		.wall_ns = 1700001000 * 1000000000ULL,
		.machine_bytes = 8ULL << 30,
		.loads = { 0.5, 1.25, 12 },
		.processes = 3,
		.last_pid = 17 };
	CPU_ZERO(&m.cpus);
	CPU_SET(0, &m.cpus);
	CPU_SET(5, &m.cpus);
	return m;
}

static const char *print(enum figures_file file, const struct jail_figures *f)
{
	struct figures_moment m = moment();
	size_t len = figures_print(file, f, &m, text);
	return len == strlen(text) ? text : "another length";
}

static void processor_time(void)
{
	struct jail_figures f = { .user_ns = 20 * 1000000000ULL, .system_ns = 4 * 1000000000ULL };
	const char *stat = print(FIGURES_STAT, &f);
	OK(!strncmp(stat,
		"cpu  2000 0 400 197600 0 0 0 0 0 0\ncpu0 1000 0 200 98800 0 0 0 0 0 0\ncpu5 1000 0 200 98800",
		88));
	OK(strstr(stat, "\nbtime 1700000000\n") && strstr(stat, "\nprocesses 3\n"));
	OK_STR(print(FIGURES_UPTIME, &f), "1000.00 1976.00\n");
	OK_STR(print(FIGURES_LOADAVG, &f), "0.50 1.25 12.00 1/3 17\n");
	f.user_ns = UINT64_MAX / 4; /* more than there was: no idle time, not a huge one */
	OK(strstr(print(FIGURES_UPTIME, &f), " 0.00\n"));
}

static void memory(void)
{
	struct jail_figures f = {
		.memory_bytes = 100 << 20, .used_bytes = 40 << 20, .cached_bytes = 10 << 20
	};
	const char *info = print(FIGURES_MEMINFO, &f);
	OK(!strncmp(info,
		"MemTotal:         102400 kB\nMemFree:           61440 kB\nMemAvailable:      71680 kB\n",
		84));
	OK(strstr(info, "\nCached:            10240 kB\n") &&
		strstr(info, "\nSwapTotal:             0 kB\n"));
	f.memory_bytes = 0; /* no limit: the machine's */
	OK(strstr(print(FIGURES_MEMINFO, &f), "MemTotal:        8388608 kB\n"));
	f.memory_bytes = 64ULL << 30;
	OK(strstr(print(FIGURES_MEMINFO, &f), "MemTotal:        8388608 kB\n"));
	f = (struct jail_figures){
		.memory_bytes = 1 << 20, .used_bytes = 9 << 20, .cached_bytes = 12 << 20
	};
	OK(strstr(print(FIGURES_MEMINFO, &f),
		"MemFree:               0 kB\nMemAvailable:       1024 kB\n"));
}

static void looking(void)
{
	struct figures_moment m;
	figures_look(&m);
	OK(m.uptime_ns && m.wall_ns > m.uptime_ns && m.machine_bytes > 1 << 20 && m.processes &&
		m.last_pid && CPU_COUNT(&m.cpus) > 0);
}

int main(void)
{
	processor_time();
	memory();
	looking();
	return tap_done();
}
