/* File descriptors: born CLOEXEC, closed once, sent between processes with SCM_RIGHTS. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { FDS_PER_MESSAGE_MAX = 32 };

/* Closes fd when it is not negative; errno is kept. */
void fd_close(int fd);

/* Closes *fd and sets it to -1. */
void fd_close_clear(int *fd);

int fd_set_nonblock(int fd, int on);
int fd_set_cloexec(int fd, int on);

/* Writes or reads all of it, through EINTR and short transfers. read: -ENODATA on an early end. */
int fd_write_full(int fd, const void *data, size_t len);
int fd_read_full(int fd, void *data, size_t len);

/* Writes all of it; a non-blocking descriptor that is full is waited for. 0 or a negative errno. */
int fd_write_waiting(int fd, const void *data, size_t len);

/*
 * Reads a whole small file (at most max bytes) into malloc'd, NUL-terminated memory. -EFBIG beyond
 * max.
 */
int fd_read_file(const char *path, size_t max, char **ret_data, size_t *ret_len);

/*
 * Opens a path below the directory as if that were the root: symbolic links and ".." stay in it.
 * The kernel gives up with EAGAIN whenever something is renamed or mounted anywhere on the machine
 * while it follows "..": this tries again. The descriptor (CLOEXEC) or a negative errno.
 */
int fd_open_in_root(int dir, const char *path, int flags);
/*
 * Opens a relative path below the directory. -ELOOP when a part of the path is a symbolic link
 * (O_PATH | O_NOFOLLOW opens a link that is the last part), -EXDEV when it leads out.
 */
int fd_open_beneath(int dir, const char *path, int flags);

/* A SOCK_SEQPACKET or SOCK_STREAM unix pair, CLOEXEC. */
int fd_socketpair(int type, int ret_pair[2]);

enum { FDS_CHECKED_MAX = 256 };

/* Whether this process can have so many more descriptors now: 0 or -EMFILE, -ENFILE. */
int fd_check_room(unsigned n);

/* One message with up to FDS_PER_MESSAGE_MAX descriptors; the descriptors stay the caller's. */
int fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds);

/*
 * Receives one message. Returns its length, 0 at the end, or a negative errno. Descriptors
 * (CLOEXEC) are the caller's; slots not filled are -1. A message that was cut, or brought more than
 * max_fds descriptors, is -EMSGSIZE and leaves none.
 */
ssize_t fd_recv(int sock, void *data, size_t len, int *ret_fds, size_t max_fds, size_t *ret_n_fds);

/*
 * The same; but when this process has no room for the descriptors (EMFILE), the message comes
 * without any of them.
 */
ssize_t fd_recv_or_drop(
	int sock, void *data, size_t len, int *ret_fds, size_t max_fds, size_t *ret_n_fds);

/*
 * Without ever waiting (-EAGAIN), for a socket that somebody else holds too and may have made
 * blocking.
 */
int fd_send_now(int sock, const void *data, size_t len, const int *fds, size_t n_fds);
