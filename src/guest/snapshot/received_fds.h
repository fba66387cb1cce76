/* Descriptors that came along on the control socket and wait for their frame. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/fds.h"

/* read(2) of the control socket that keeps the descriptors. */
ssize_t received_fds_read(void *data, size_t len);

int received_fd_take(void); /* the oldest one, the caller's now; -1: there is none */
void received_fds_drop(void);
size_t received_fds_list(int to[FDS_PER_MESSAGE_MAX]); /* how many; they stay */
