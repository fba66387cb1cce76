/*
 * The text of the files of /proc that tell about the machine, written for one session: its memory
 * and its processor time, as if the session were alone on the machine. They contain no data about
 * the machine except data that the kernel gives every process anyway (sysinfo, clocks, the number
 * of processors).
 */
#pragma once

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "jail/jail.h"

/* The files whose content changes. */
enum figures_file { FIGURES_STAT, FIGURES_MEMINFO, FIGURES_UPTIME, FIGURES_LOADAVG, FIGURES_FILES };

enum { FIGURES_CPUS_MAX = 1024, FIGURES_TEXT_MAX = 96 * (FIGURES_CPUS_MAX + 8) };

/* What a session may be told about the machine at one moment. */
struct figures_moment {
	/* of the machine: the start times of processes count from its boot */
	uint64_t uptime_ns;
	uint64_t wall_ns;       /* since the epoch */
	uint64_t machine_bytes; /* of memory */
	double loads[3];
	unsigned processes, last_pid; /* of the session */
	cpu_set_t cpus;               /* on which the session may run */
};

const char *figures_name(enum figures_file file); /* "stat" is the name below /proc */

/* Asks the kernel, and counts the processes in the caller's /proc. */
void figures_look(struct figures_moment *ret);

/* The content of the file, at most FIGURES_TEXT_MAX bytes with the NUL; returns its length. */
size_t figures_print(enum figures_file file, const struct jail_figures *f,
	const struct figures_moment *m, char *text);
