/*
 * A helper process (jailer, zygote) with one SEQPACKET socket: started, listened to, restarted by
 * its owner when it dies. Closing is asynchronous; the memory is the owner's again in on_closed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

enum { HELPER_MESSAGE_MAX = 4096, HELPER_FDS_MAX = 32, HELPER_EXTRA = 2 };

struct helper {
	uv_poll_t socket_poll, exit_poll;
	int socket, pidfd;
	unsigned open_polls;
	bool running, closing;
	bool silent; /* what it prints is of no interest */
	/* One message; descriptors not taken (set to -1) are closed after the call. */
	void (*on_message)(struct helper *h, const void *data, size_t len, int *fds, size_t n_fds);
	void (*on_exit)(struct helper *h); /* it died by itself; call helper_close() */
	/* after helper_close(): the memory may be used again */
	void (*on_closed)(struct helper *h);
};

/*
 * Starts path with [0: /dev/null, 1 and 2: our stderr, 3: the socket, from 4 on: those of `extra`
 * up to the first that is negative]. Callbacks are set by the caller.
 */
int helper_start(struct helper *h, uv_loop_t *loop, const char *path, char *const argv[],
	char *const envp[], const int extra[HELPER_EXTRA]);

/* -EAGAIN when its queue is full. Descriptors stay the caller's. */
int helper_send(struct helper *h, const void *data, size_t len, const int *fds, size_t n_fds);

void helper_close(struct helper *h); /* kills it; idempotent */
