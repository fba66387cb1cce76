/*
 * The processes of one jail, seen from outside through a /proc of the jail's pid namespace that
 * hides no process. On machines without control groups this module replaces them: it lists the
 * processes of a session, measures their usage, and kills them.
 *
 * A process cannot leave its pid namespace, nor make itself invisible in this /proc, which no code
 * of a session can reach. Numbers are those of the namespace. Processes of nested namespaces are
 * not members.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* More than a session's resource limit allows; beyond it the rest is not looked at. */
enum { MEMBERS_MAX = 8192 };

struct member {
	pid_t pid;
	pid_t leader;    /* of its session (setsid) */
	char state;      /* as in stat: 'Z' for one that has ended */
	uint64_t cpu_ns; /* its own, and that of children it has waited for */
	uint64_t start;  /* when it was made; with the number it tells processes apart */
	/* in memory now, without files; pages that it shares with others count in full */
	uint64_t bytes;
	uint64_t shmem;   /* of these, memory that was made to be shared */
	uint64_t unnamed; /* see members_add_unnamed() */
};

/*
 * All but the init, whose CPU time (with that of the orphans it reaped) is added to
 * *ret_init_cpu_ns. *ret is the caller's to free.
 */
int members_read(int proc, struct member **ret, size_t *ret_n, uint64_t *ret_init_cpu_ns);

/* The same for one process of the machine, by its number there. -ESRCH when it is gone. */
int members_read_host(pid_t pid, struct member *ret);

/* Files that were counted. Beyond the maximum they are counted again. */
enum { MEMBERS_FILES_MAX = 1024 };
struct members_files {
	uint64_t inodes[MEMBERS_FILES_MAX];
	size_t n;
};

/*
 * Adds to `m` the bytes of files in memory without a name (memfd_create) that it has open, were not
 * counted yet, and are not in its memory anyway.
 */
void members_add_unnamed(int proc, struct member *m, struct members_files *counted);

/*
 * The bytes of a member, with its part of pages that others have too; those of `m` when it hides
 * them. Takes milliseconds for a large process.
 */
uint64_t members_share(int proc, const struct member *m);

/*
 * The number that a process of the machine has in the pid namespace `depth` levels below ours; 0
 * when it is not in there.
 */
pid_t members_number(pid_t pid, unsigned depth);

/*
 * Whether the process of the machine is in the namespace of `proc`, `depth` levels below ours, or
 * in one that is nested in it.
 */
bool members_have(int proc, unsigned depth, pid_t pid);

int members_signal(int proc, pid_t member, int sig);

/* Those that stay when the others are killed, by their numbers in the namespace. */
struct members_spared {
	const pid_t *pids;
	size_t n_pids;
	const pid_t *leaders; /* with all that is in their session */
	size_t n_leaders;
};

/*
 * Kills all but those spared (NULL: none). All are stopped first: one that is stopped makes no
 * others, and takes up its place among those that the session may have, so that a fork bomb runs
 * out of places. `nested`: there are namespaces nested in this one.
 */
void members_kill_others(int proc, const struct members_spared *spared, bool nested);
