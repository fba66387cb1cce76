/*
 * Control groups: memory, processes and CPU of a session with all it starts, and what it used.
 *
 * One home per daemon (`glovebox-PID` below the daemon's own group), one group per sandbox in it.
 * Version 2, version 1 and none at all are variants behind one ops table; which one a machine has
 * is found at start and shown by `glovebox doctor`. A process joins its group itself, right after
 * it was cloned: attaching another process takes milliseconds on version 1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "jail/jail.h"

enum { CGROUP_CONTROLLERS_MAX = 4, CGROUP_NAME_MAX = 32, CGROUP_SOCKET_BYTES = 64 << 20 };

/* 0 stands for no limit. */
struct cgroup_limits {
	uint64_t memory_bytes;
	unsigned processes;
	double cpus; /* 0.5 is half a processor */
};

struct cgroup_usage {
	uint64_t cpu_ns;
	/* since the group was made; 0 where the kernel cannot tell */
	uint64_t memory_peak_bytes;
	uint64_t oom_kills;
	uint64_t process_refusals; /* forks that the limit of processes refused */
};

struct cgroup_ops;

struct cgroup_home {
	const struct cgroup_ops *ops;
	int dirs[CGROUP_CONTROLLERS_MAX]; /* the home in each hierarchy, in the ops' order */
	char parents[CGROUP_CONTROLLERS_MAX][256];
	char name[CGROUP_NAME_MAX];
};

/*
 * What a process needs to join: descriptors to write "0" to, or (into) one directory for
 * CLONE_INTO_CGROUP.
 */
struct cgroup_join_fds {
	int fds[CGROUP_CONTROLLERS_MAX];
	unsigned n;
	int into; /* 1: fds[0] is the directory */
};

/*
 * Finds what the machine has below `mount` (/sys/fs/cgroup) and makes the home. Never fails:
 * without usable groups the variant is "none", and *why says what is missing.
 */
void cgroup_home_init(struct cgroup_home *h, const char *mount, struct error *why);
void cgroup_home_finish(struct cgroup_home *h);            /* removes it; its groups must be gone */
const char *cgroup_home_kind(const struct cgroup_home *h); /* "v2", "v1" or "none" */

int cgroup_make(struct cgroup_home *h, const char *name, const struct cgroup_limits *limits);
/*
 * A group that holds others, named FAMILY/NAME, and no processes. Its limits hold for all of them
 * together.
 */
int cgroup_make_family(struct cgroup_home *h, const char *name);
/* the file by which one joins the home itself; a descriptor or a negative errno */
int cgroup_home_procs(const struct cgroup_home *h);
int cgroup_set_limits(struct cgroup_home *h, const char *name, const struct cgroup_limits *limits);
/* that limit alone */
int cgroup_set_processes(struct cgroup_home *h, const char *name, unsigned processes);
/*
 * What lies in TCP and UDP sockets is memory of the kernel's, of which the whole machine has one
 * pool. Version 2 counts it as the group's; version 1 only in groups that were told how much it may
 * be, before the first socket is made.
 */
int cgroup_bound_sockets(struct cgroup_home *h, const char *name);
int cgroup_join_fds_open(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret);
/*
 * Opens the files to which a trusted process writes the number of a process that is to join the
 * group. A process with these files can also join the group itself, so they are never passed to
 * code of a session.
 */
int cgroup_join_open(struct cgroup_home *h, const char *name, struct cgroup_join_fds *ret);
void cgroup_join_fds_close(struct cgroup_join_fds *t);
/* that it uses now; 0 when that cannot be told */
uint64_t cgroup_memory(struct cgroup_home *h, const char *name);
int cgroup_usage_read(struct cgroup_home *h, const char *name, struct cgroup_usage *ret);
/*
 * Memory and processor time of the group, for its files of /proc. Leaves memory_bytes as it is;
 * zeros without groups.
 */
void cgroup_figures_read(struct cgroup_home *h, const char *name, struct jail_figures *ret);

/* Processes that stay when the others are killed. */
struct cgroup_spared {
	const pid_t *pids;
	size_t n_pids;
	/*
	 * leaders of sessions (setsid), with all that is in their session: a process cannot join
	 * another one's
	 */
	const pid_t *leaders;
	size_t n_leaders;
};

/*
 * Kills every process of the group but those spared (NULL: none). Against processes that fork while
 * they are killed, no new ones can be made meanwhile; `limits` are what holds after. -ENOTSUP
 * without groups.
 */
int cgroup_kill_others(struct cgroup_home *h, const char *name, const struct cgroup_limits *limits,
	const struct cgroup_spared *spared);

/* Kills all processes in the group, once: for a group that is about to be removed. */
void cgroup_kill_all(const struct cgroup_home *h, const char *name);

/* Whether these are all threads of the group. Also false if this cannot be determined. */
bool cgroup_holds_only(struct cgroup_home *h, const char *name, const pid_t *those, size_t n);

/* Whether the process is in the group. Always true without control groups. */
bool cgroup_holds(const struct cgroup_home *h, const char *name, pid_t pid);

/*
 * Makes a group that was used like a new one, but for its limits: false when a process is in it,
 * when a counter cannot be set back to 0, or when something of it cannot be read; remove it then.
 * *ret_memory is what is still charged to it (files that the kernel keeps in memory), at most
 * CGROUP_REST_BYTES.
 */
enum { CGROUP_REST_BYTES = 4 << 20 };
bool cgroup_reset(struct cgroup_home *h, const char *name, uint64_t *ret_memory);

/* -EBUSY while something still lives in it. */
int cgroup_remove(struct cgroup_home *h, const char *name);
