#include "guest/snapshot/open_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "guest/run/guest.h"

enum { HELD_MAX = 1024 };

struct held {
	int fd, flags, descriptor_flags;
	off_t offset;
	char *path; /* owned; NULL when no name leads to the file any more */
};

static struct held table[HELD_MAX];
static size_t count;

/* Descriptors that were not looked at. */
static int skipped[HELD_OURS_MAX];
static size_t n_skipped;

static void forget(void)
{
	for (size_t i = 0; i < count; i++)
		free(table[i].path);
	count = 0;
}

/* Offset, flags and whether a lock lies on it, as the kernel tells. */
static bool read_info(int fd, struct held *h, bool *ret_locked)
{
	char path[64], text[2048];
	long long offset = 0;
	unsigned flags = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	_cleanup_fd_ int info = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = info < 0 ? -1 : read(info, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *at = strstr(text, "pos:"), *bits = strstr(text, "flags:");
	if (!at || !bits || sscanf(at, "pos: %lld", &offset) != 1 ||
		sscanf(bits, "flags: %o", &flags) != 1)
		return false;
	h->offset = (off_t)offset;
	h->flags = (int)flags;
	*ret_locked = strstr(text, "lock:") != NULL;
	return true;
}

/* True when it leads to the display. */
static bool describe_socket(int fd, char why[HELD_WHY_MAX])
{
	struct sockaddr_un peer = { 0 };
	socklen_t len = sizeof(peer);
	bool display = getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
		       memmem(peer.sun_path, sizeof(peer.sun_path), "X11", 3);
	snprintf(why, HELD_WHY_MAX,
		display ? "a connection to the display is open (descriptor %d): close its windows"
			: "a socket is open (descriptor %d): close it",
		fd);
	return display;
}

static bool note_file(int fd, const struct stat *st, const char *link, char why[HELD_WHY_MAX])
{
	struct held h = { .fd = fd, .descriptor_flags = fcntl(fd, F_GETFD) };
	bool locked = false;

	if (!read_info(fd, &h, &locked))
		return true; /* gone since it was listed */
	if (locked) {
		snprintf(why, HELD_WHY_MAX,
			"the file %.160s is locked (an open transaction of a database?): commit or close it",
			link);
		return false;
	}

	if (count == HELD_MAX) {
		snprintf(why, HELD_WHY_MAX, "more than %d files are open: close some", HELD_MAX);
		return false;
	}

	if (st->st_nlink && !(h.path = strdup(link)))
		return false;
	table[count++] = h;
	return true;
}

static bool note(int fd, char why[HELD_WHY_MAX])
{
	char name[64], link[PATH_MAX];
	struct stat st;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(name, link, sizeof(link) - 1);
	if (n < 0 || fstat(fd, &st) < 0)
		return true;
	link[n] = '\0';
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return note_file(fd, &st, link, why);
	if (S_ISSOCK(st.st_mode)) {
		describe_socket(fd, why);
		return false;
	}

	if (S_ISFIFO(st.st_mode)) {
		snprintf(why, HELD_WHY_MAX, "a pipe is open (descriptor %d): close it", fd);
		return false;
	}

	return true; /* devices and event counters: nothing in them is the session's */
}

bool held_display(char why[HELD_WHY_MAX])
{
	struct stat st;
	bool found = false;
	for (int fd = STDERR_FILENO + 1; !found && fd < HELD_MAX; fd++)
		found = fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && describe_socket(fd, why);
	return found;
}

bool open_files_note(const int *ours, size_t n, char why[HELD_WHY_MAX])
{
	DIR *d = opendir("/proc/self/fd");
	bool good = d != NULL && n <= HELD_OURS_MAX;
	forget();
	n_skipped = good ? n : 0;
	memcpy(skipped, ours, n_skipped * sizeof(*ours));
	snprintf(why, HELD_WHY_MAX, "its descriptors cannot be looked at");
	for (struct dirent *e; good && (e = readdir(d));) {
		int fd = e->d_name[0] == '.' ? -1 : (int)strtol(e->d_name, NULL, 10);
		bool known = fd <= STDERR_FILENO || fd == dirfd(d);
		for (size_t i = 0; i < n; i++)
			known |= ours[i] == fd;
		good = known || note(fd, why);
	}

	if (d)
		closedir(d);
	return good;
}

void open_files_release(void)
{
	for (size_t i = 0; i < count; i++)
		if (table[i].path)
			close(table[i].fd);
}

/*
 * The session that becomes of the copy must have no file of its parent's, such as a directory of a
 * volume that it may only read. Code can put one in the place of stdin, and of the sockets of its
 * event loop, whose numbers Python tells.
 */
static void replace_skipped(void)
{
	_cleanup_fd_ int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (nothing < 0)
		_exit(1);
	dup2(nothing, STDIN_FILENO);
	for (size_t i = 0; i < n_skipped; i++)
		if (skipped[i] > STDERR_FILENO && skipped[i] != GUEST_CONTROL_FD &&
			skipped[i] != nothing && fcntl(skipped[i], F_GETFD) >= 0)
			dup3(nothing, skipped[i], O_CLOEXEC);
}

void open_files_reopen(bool other_jail)
{
	if (other_jail)
		replace_skipped();
	for (size_t i = 0; i < count; i++) {
		struct held *h = &table[i];
		char own[64];
		if (other_jail && !h->path) {
			close(h->fd);
			continue;
		}
		snprintf(own, sizeof(own), "/proc/self/fd/%d", h->fd);
		int unnamed = O_TMPFILE & ~O_DIRECTORY,
		    flags = h->flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW);
		if (flags & unnamed)
			flags &= ~O_TMPFILE;
		int fd = open(h->path ? h->path : own, flags | O_CLOEXEC);
		if (fd < 0)
			continue; /* whoever uses it gets EBADF, which is the truth */
		if (h->offset)
			lseek(fd, h->offset, SEEK_SET);
		if (fd != h->fd) {
			dup3(fd, h->fd, h->descriptor_flags & FD_CLOEXEC ? O_CLOEXEC : 0);
			close(fd);
		} else if (!(h->descriptor_flags & FD_CLOEXEC)) {
			fcntl(fd, F_SETFD, 0);
		}
	}
}
