/* What the files of cgroup.h share; not for others. */
#pragma once

#include "jail/cgroup.h"

struct cgroup_ops {
	const char *kind;
	const char *const *controllers; /* one home directory each; NULL at the end */
	/* Writes the limits that are set, and "no limit" where they are not. */
	int (*set_limits)(struct cgroup_home *h, const char *name, const struct cgroup_limits *limits);
	int (*ticket)(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret);
	void (*usage)(struct cgroup_home *h, const char *name, struct cgroup_usage *ret);
	void (*reset_peak)(struct cgroup_home *h, const char *name);
	unsigned processes; /* the hierarchy that bounds their number */
	const char *memory; /* the file with the memory in use, in the first hierarchy; NULL for none */
	const char *sockets; /* the file that bounds memory in sockets, there; NULL where the limit on memory does */
	const char *threads; /* the file with the ids of all threads, in that of the processes; NULL for none */
};

/* A file of a group: the descriptor (CLOEXEC) or a negative errno. */
int cgroup_open_file(int dir, const char *name, const char *file, int flags);
int cgroup_write_text(int dir, const char *name, const char *file, const char *text);
int cgroup_write_u64(int dir, const char *name, const char *file, uint64_t value);
int cgroup_write_or(int dir, const char *name, const char *file, uint64_t value, const char *no_limit); /* that text for 0 */

/* Indexes of the homes in version 1's hierarchies. */
enum { CGROUP_V1_MEMORY, CGROUP_V1_PIDS, CGROUP_V1_CPU, CGROUP_V1_CPUACCT };

/* The number behind `key ` in a file of lines, or the file's first number when key is NULL; 0 when there is none. */
uint64_t cgroup_read_number(int dir, const char *name, const char *file, const char *key);
