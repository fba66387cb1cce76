/*
 * A jail: its own user, pid, mount, network, ipc, uts and cgroup namespaces, held by a tiny init
 * (pid 1, no Python), over a read-only system tree that was prepared once.
 *
 * The jailer (src/jail/jailer.c) is a small helper process of the daemon that prepares the tree and
 * makes jails on request; a guest joins a jail with jail_enter(). A jail outlives its guests: files
 * under /workspace stay when an interpreter is replaced. It ends when its init is killed, and the
 * kernel then kills all processes in it and drops its mounts.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum {
	JAIL_INNER_ID = 1000, /* uid and gid as seen inside */
	/* first of the host ids when started by root: one per live session */
	JAIL_HOST_ID = 1000000000,
	JAIL_HOST_ID_COUNT = 65536, /* of one daemon */
	JAIL_HOST_ID_BLOCKS = 4096, /* daemons */
	/* behind all blocks: of the volumes (mounts.h), each of which has an id of its own */
	JAIL_VOLUME_HOST_ID = 1300000000,
	JAIL_INODES = 65536, /* of /workspace, and of /tmp, unless asked otherwise */
	/* in an argument that a call does not have, see add_moving() in filter.c */
	JAIL_MARK = 0x6c696a67,
	JAIL_SHM_BYTES = 64 << 20, /* /dev/shm */
};

/* Of a session and its forks together; the host gives a user 128 and some ten thousands. */
#define JAIL_INOTIFY_INSTANCES "16"
#define JAIL_INOTIFY_WATCHES "8192"

/* Which programs code in a jail may start. */
enum jail_exec {
	/* those of the read-only tree: everything writable is noexec, memory files too */
	JAIL_EXEC_SYSTEM,
	JAIL_EXEC_NONE, /* none */
	JAIL_EXEC_ANY,  /* also what it wrote itself: for people who compile */
	JAIL_EXEC_COUNT
};
const char *jail_exec_name(enum jail_exec exec); /* "system", "none", "any" */

/* The network of a jail. */
enum jail_net {
	/* only unix sockets; no network interface is up, not even lo */
	JAIL_NET_NONE,
	JAIL_NET_LOOPBACK, /* a private lo: a server and its client in one session */
	/* the same, and sockets that listen on it and lead outside, by somebody outside who accepts
	 */
	JAIL_NET_ALLOW,
	JAIL_NET_COUNT
};
const char *jail_net_name(enum jail_net net); /* "none", "loopback", "allow" */

/* JAIL_NET_ALLOW: where the way out begins. Not 127.0.0.1, whose ports are the session's own. */
#define JAIL_PROXY_ADDRESS "127.77.0.1"
enum { JAIL_PROXY_PORT = 3128, JAIL_LISTEN_MAX = 25, JAIL_HOSTS_MAX = 7168 };

/*
 * A socket that is to listen in the jail. Addresses as IPv6, IPv4 ones mapped; those that lo does
 * not have are given to it.
 */
struct jail_listen {
	uint8_t address[16];
	uint16_t port, unused;
};

/* Follows a request whose net is JAIL_NET_ALLOW. */
struct jail_network {
	uint32_t n_listen;
	struct jail_listen listen[JAIL_LISTEN_MAX];
	char hosts[JAIL_HOSTS_MAX]; /* lines for /etc/hosts, NUL at the end */
};

/* A directory of the server that a jail asks for by its name, and where; see mounts.h. */
enum { JAIL_MOUNTS_MAX = 8, JAIL_MOUNT_NAME = 32, JAIL_MOUNT_PATH = 64 };
enum jail_mount_kind {
	JAIL_MOUNT_SHARED,          /* a directory that the server's settings name, read-only */
	JAIL_MOUNT_VOLUME,          /* a volume, writable */
	JAIL_MOUNT_VOLUME_READ_ONLY /* a volume, read-only */
};
struct jail_mounts {
	uint32_t n, unused;
	struct jail_mount {
		char name[JAIL_MOUNT_NAME], at[JAIL_MOUNT_PATH]; /* NUL at the end of each */
		uint32_t kind;                                   /* enum jail_mount_kind */
	} mount[2 * JAIL_MOUNTS_MAX];                            /* shared ones and volumes */
};

/*
 * One request to the jailer and its answer (SEQPACKET). The answer brings [init pidfd, init
 * control, workspace O_PATH] and then the sockets of `listen`, in its order. A request without a
 * network may bring a network namespace to use again (idle_net.h); all processes that were in it
 * must have ended.
 */
struct jail_request {
	uint32_t serial;
	uint32_t host_id; /* uid and gid on the host; ignored unless root */
	uint64_t disk_bytes;
	uint64_t inodes; /* of /workspace, and of /tmp; 0: JAIL_INODES */
	uint32_t exec;   /* enum jail_exec */
	uint32_t net;    /* enum jail_net */
	/* inside the jail whose init's pidfd comes along, for a copy of a guest from there; see
	 * jail_move() */
	uint32_t nested;
	uint32_t ping; /* no jail: are you there? The answer brings nothing */
	/*
	 * the answer brings, behind all others, a /proc of the jail that hides nothing (members.h)
	 */
	uint32_t watched;
	struct jail_mounts mounts;
};
enum { JAIL_WAIT_S = 10 }; /* for an init that is being made; longer than that is a failure */
enum { JAIL_ANSWER_FDS = 3, JAIL_ANSWER_FDS_MAX = JAIL_ANSWER_FDS + JAIL_LISTEN_MAX + 1 };

/* A nested jail's answer brings its namespaces behind the first three, in this order. */
enum {
	JAIL_NS_USER,
	JAIL_NS_MOUNT,
	JAIL_NS_NET,
	JAIL_NS_IPC,
	JAIL_NS_UTS,
	JAIL_NS_PID,
	JAIL_NAMESPACES
};
enum { JAIL_TEXT_MAX = 1024 };
struct jail_answer {
	uint32_t serial;
	int32_t err; /* negative errno; then `text` says which step failed */
	int32_t pid; /* of the init, on the host */
	char text[JAIL_TEXT_MAX];
};

/* The jailer says this once it is able to serve, or fails with the reason. serial is 0. */

/*
 * What the daemon may tell an init on its control socket: one byte each, answered by the same byte.
 */
enum {
	JAIL_SWEEP = 'S', /* kill everything in the jail but the init */
	/* followed by a cookie: make a display's socket; the answer brings the descriptors of
	 * xsocket.h */
	JAIL_DISPLAY = 'D',
	/*
	 * make a TCP socket of each family in the jail's network namespace, unconnected; the answer
	 * brings them, or none
	 */
	JAIL_SOCKETS = 'N',
	/*
	 * sent by the init when a process reads a file of /proc. The answer of the daemon is
	 * followed by struct jail_figures
	 */
	JAIL_FIGURES = 'F',
	/*
	 * Not answered, and followed by struct jail_kept: keep the socket that comes along; send
	 * what follows, with the descriptors that come along, to a kept socket; close a kept
	 * socket. See kept_sockets.h.
	 */
	JAIL_KEEP = 'K',
	JAIL_FORWARD = 'O',
	JAIL_DROP = 'X',
};

struct __attribute__((packed)) jail_kept {
	uint64_t snapshot_id;
	uint32_t len; /* of what follows; 0 unless it is forwarded */
};
enum { JAIL_FORWARD_MAX = 4096, JAIL_FORWARD_FDS = 3 + JAIL_NAMESPACES };

/* What a session may use and has used; zeros where the daemon does not know. */
struct jail_figures {
	uint64_t memory_bytes; /* its limit; 0: none */
	/* the second is a part of the first: files the kernel can drop */
	uint64_t used_bytes, cached_bytes;
	uint64_t user_ns, system_ns; /* of processor time */
};

/* The descriptors a helper process is started with, beside 0, 1, 2. */
/*
 * The second one, when it is open: the mount namespace with the tree of an earlier jailer of this
 * daemon.
 */
enum { JAILER_SOCKET_FD = 3, JAILER_TREE_FD = 4 };

/* The variable by which it learns what else to show in jails; see tree_prepare(). */
#define JAILER_SHOWN "GLOVEBOX_SHOWN"

/*
 * Moves the calling process, which was forked into the jail's pid namespace, into the rest of the
 * jail and gives up every privilege for good. The process must be single-threaded. *ret_step names
 * the step that failed. Between fork and jail: uses system calls only, allocates nothing.
 */
int jail_enter(int init_pidfd, enum jail_exec exec, enum jail_net net, const char **ret_step);

/*
 * The same in two steps, for a jail in which code may be running: between them the process is
 * undumpable, so that this code can neither read its descriptors nor write into its memory. The
 * system call filter must be loaded before jail_open(), or before the process executes a program.
 */
int jail_enter_closed(
	int init_pidfd, enum jail_exec exec, enum jail_net net, const char **ret_step);
int jail_open(const char **ret_step);

/*
 * The same for a process of our own that looks after the jail's: undumpable, and without Landlock,
 * which keeps those it holds from looking at processes it does not hold as well. Its system call
 * filter must be a narrow one.
 */
int jail_enter_beside(int init_pidfd, const char **ret_step);

/*
 * The same for a guest that is in a jail already, has no privilege and moves into one nested in its
 * own: whoever owns a user namespace may join it from its parent, and is then its master for as
 * long as it takes to join the rest. The children of the process start in the new pid namespace;
 * one of them calls jail_settle(), which gives up everything again.
 */
int jail_move(const int namespaces[JAIL_NAMESPACES], const char **ret_step);
int jail_settle(const char **ret_step);

/* Makes the next children of this process start in the jail's pid namespace. */
int jail_aim_children(int init_pidfd);
