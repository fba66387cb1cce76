/*
 * A jail: its own user, pid, mount, network, ipc, uts and cgroup namespaces, held by a tiny init (pid 1, no Python), over a
 * read-only system tree that was prepared once.
 *
 * The jailer (src/jail/jailer.c) is a small process of the daemon's that prepares the tree and makes jails on request; a guest
 * joins one with jail_enter(). A jail outlives its guests: files under /workspace stay when an interpreter is replaced. It ends
 * when its init is killed, and the kernel then kills all that lives in it and drops its mounts.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum {
	JAIL_INNER_ID = 1000,       /* uid and gid as seen inside */
	JAIL_HOST_ID = 1000000000,  /* first of the host ids when started by root: one per live session */
	JAIL_HOST_ID_COUNT = 65536,
	JAIL_INODES = 65536,        /* of /workspace, and of /tmp */
	JAIL_SHM_BYTES = 64 << 20,  /* /dev/shm */
};

/* Which programs code in a jail may start. */
enum jail_exec {
	JAIL_EXEC_SYSTEM, /* those of the read-only tree: everything writable is noexec, memory files too */
	JAIL_EXEC_NONE,   /* none */
	JAIL_EXEC_ANY,    /* also what it wrote itself: for people who compile */
	JAIL_EXEC_COUNT
};
const char *jail_exec_name(enum jail_exec exec); /* "system", "none", "any" */

/* One request to the jailer and its answer (SEQPACKET). The answer brings [init pidfd, init control, workspace O_PATH]. */
struct jail_request {
	uint32_t serial;
	uint32_t host_id; /* uid and gid on the host; ignored unless root */
	uint64_t disk_bytes;
	uint32_t exec; /* enum jail_exec */
	uint32_t unused;
};
enum { JAIL_TEXT_MAX = 1024 };
struct jail_answer {
	uint32_t serial;
	int32_t err; /* negative errno; then `text` says which step failed */
	int32_t pid; /* of the init, on the host */
	char text[JAIL_TEXT_MAX];
};

/* The jailer says this once it is able to serve, or fails with the reason. serial is 0. */

/* What the daemon may tell an init on its control socket: one byte each, answered by the same byte. */
enum { JAIL_SWEEP = 'S' }; /* kill everything in the jail but the init */

/* The descriptors a helper process is started with, beside 0, 1, 2. */
enum { JAILER_SOCKET_FD = 3 };

/* The variable by which it learns what else to show in jails; see tree_prepare(). */
#define JAILER_SHOWN "GLOVEBOX_SHOWN"

/*
 * Moves the calling process, which was forked into the jail's pid namespace, into the rest of the jail and gives up every
 * privilege for good. The process must be single-threaded. *ret_step names the step that failed.
 * Between fork and jail: uses system calls only, allocates nothing.
 */
int jail_enter(int init_pidfd, enum jail_exec exec, const char **ret_step);

/* Makes the next children of this process start in the jail's pid namespace. */
int jail_aim_children(int init_pidfd);
