/* What the files of cgroup.h share; not for others. */
#pragma once

#include "jail/cgroup/cgroup.h"

enum { CPU_PERIOD_US = 100000, GROUPS_TEXT_MAX = 16384 };

struct cgroup_ops {
	const char *kind;
	const char *const *controllers; /* one home directory each; NULL at the end */
	/*
	 * Makes the daemon's home below the mounted tree; `self` is the text of /proc/self/cgroup.
	 */
	int (*make_home)(struct cgroup_home *h, const char *mount, const char *self);
	/*
	 * Enables limits in the groups below this group; NULL if nothing needs to be done for that.
	 */
	int (*allow_children)(struct cgroup_home *h, const char *name);
	/* Writes the limits that are set, and "no limit" where they are not. */
	int (*set_limits)(
		struct cgroup_home *h, const char *name, const struct cgroup_limits *limits);
	/* Opens what a process needs to join the group. */
	int (*open_join_fds)(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret);
	/* Reads the group's figures; what the kernel does not tell stays as it is. */
	void (*usage)(struct cgroup_home *h, const char *name, struct cgroup_usage *ret);
	/* cgroup_reset(); NULL where counters cannot be set back */
	bool (*reset)(struct cgroup_home *h, const char *name, uint64_t *ret_memory);
	unsigned processes; /* the hierarchy that bounds their number */
	/* the file with the memory in use, in the first hierarchy; NULL for none */
	const char *memory;
	/* the file that bounds memory in sockets, there; NULL where the limit on memory does */
	const char *sockets;
	/* the file with the ids of all threads, in that of the processes; NULL for none */
	const char *threads;
};

extern const struct cgroup_ops cgroup_v1, cgroup_v2;

/* cgroup_home.c */
/*
 * The name of our own group in the hierarchy of `controller` ("" for version 2), from the text of
 * /proc/self/cgroup.
 */
bool cgroup_own_group(const char *text, const char *controller, char *ret, size_t size);
/*
 * Makes the home of hierarchy i in this directory, after removing the homes that dead daemons left.
 */
int cgroup_make_home_in(struct cgroup_home *h, unsigned i, const char *parent);

/* A file of a group: the descriptor (CLOEXEC) or a negative errno. */
int cgroup_open_file(int dir, const char *name, const char *file, int flags);
int cgroup_write_text(int dir, const char *name, const char *file, const char *text);
int cgroup_write_u64(int dir, const char *name, const char *file, uint64_t value);
/* that text for 0 */
int cgroup_write_or(
	int dir, const char *name, const char *file, uint64_t value, const char *no_limit);

/* Indexes of the homes in version 1's hierarchies. */
enum { CGROUP_V1_MEMORY, CGROUP_V1_PIDS, CGROUP_V1_CPU, CGROUP_V1_CPUACCT };

/*
 * The number behind `key ` in a file of lines, or the file's first number when key is NULL; 0 when
 * there is none.
 */
uint64_t cgroup_read_number(int dir, const char *name, const char *file, const char *key);
/* The same, or a negative errno when it is not there. */
int cgroup_find_number(int dir, const char *name, const char *file, const char *key, uint64_t *ret);
