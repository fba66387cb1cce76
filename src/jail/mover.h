/*
 * The mover: puts the first guest of a fork into the fork's control groups, started as `glovebox
 * mover`.
 *
 * That guest is a process of the session it was forked from, and code of that session may have
 * answered in its place. So the guest never gets the files of a group. It identifies itself by a
 * pidfd, which the daemon passes on. Before the mover moves the process, it checks that the process
 * is in the fork's jail and has no privileges left. On version 1 and 2 alike, moving another
 * process waits for an RCU grace period, some milliseconds, unless another process was moved a
 * moment ago. That is why the mover is a separate process, and why it can be told in advance
 * (MOVER_PREPARE).
 */
#pragma once

#include <stdint.h>

enum mover_order {
	MOVER_PREPARE, /* something is about to be moved; there is no answer */
	/* brings [pidfd, user and pid namespace of the jail, files of the groups …] */
	MOVER_MOVE,
};

struct mover_request {
	uint32_t order, serial;
	/* that the process must have, real, effective and saved; -1 where sessions have none of
	 * their own */
	int64_t host_id;
};

struct mover_answer {
	uint32_t serial;
	int32_t err;
	char text[128]; /* with an error: what is wrong with the process, or which step failed */
};

/* Before the groups' files in a MOVER_MOVE. */
enum { MOVER_PROCESS, MOVER_USER_NS, MOVER_PID_NS, MOVER_FIXED_FDS };

/*
 * Its descriptors: the daemon's socket, and a file of a group for MOVER_PREPARE: it moves itself
 * there, again and again.
 */
enum { MOVER_SOCKET_FD = 3, MOVER_HOME_FD = 4 };

/* Never returns before the socket is closed; the exit code of the process. */
int mover_main(void);
