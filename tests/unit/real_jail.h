/*
 * A real jailer and real jails, for whoever wants to see one without a daemon: test_jail.c and
 * bench/programs/jail_cost.c. The jailer is a child, and so are the inits of the jails it makes
 * (CLONE_PARENT): whoever uses this waits for them.
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "jail/jail.h"
#include "jail/jailer.h"

struct real_jail {
	int init, control, workspace;
	pid_t pid;
};

/*
 * Returns the socket to a new jailer, or a negative errno; *ret_hello is what it said, with the
 * reason in its text.
 */
static inline int real_jailer_start(struct jail_answer *ret_hello)
{
	int pair[2];
	int r = fd_socketpair(SOCK_SEQPACKET, pair);
	if (r < 0)
		return r;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(pair[1], JAILER_SOCKET_FD);
		for (int fd = JAILER_SOCKET_FD + 1; fd < 64; fd++)
			close(fd);
		_exit(jailer_main());
	}
	fd_close(pair[1]);
	_cleanup_fd_ int tree = -1; /* for the next jailer of a daemon */
	if (pid > 0 &&
		fd_recv(pair[0], ret_hello, sizeof(*ret_hello), &tree, 1, NULL) ==
			sizeof(*ret_hello) &&
		!ret_hello->err)
		return pair[0];
	fd_close(pair[0]);
	return -EIO;
}

/* Returns 0, or the error that *ret_answer tells in words. */
static inline int real_jail_make(int jailer, const struct jail_request *q, struct real_jail *ret,
	struct jail_answer *ret_answer)
{
	int fds[JAIL_ANSWER_FDS];
	if (fd_send(jailer, q, sizeof(*q), NULL, 0) < 0 ||
		fd_recv(jailer, ret_answer, sizeof(*ret_answer), fds, JAIL_ANSWER_FDS, NULL) !=
			sizeof(*ret_answer))
		return -EIO;
	if (!ret_answer->err)
		*ret = (struct real_jail){ fds[0], fds[1], fds[2], ret_answer->pid };
	return ret_answer->err;
}
