#include "jail/proc_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/text.h"

enum {
	/* after a file was opened: no process makes the init and the daemon work more often than
	 * that */
	AGAIN_MS = 20,
	KEPT_OPEN_MS = 1000, /* at most, while it stays open */
	PATIENCE_MS = 500,   /* with the daemon, whose event loop may be busy */
};

static const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

/* Those of the shared tree. */
static const char *const shared[] = { "cpuinfo", "filesystems", "vmstat" };

static char text[FIGURES_TEXT_MAX];

/* ---- mounting ------------------------------------------------------------------------- */

/*
 * A file of the jail's own /dev/shm, without a name there once it is mounted. Read-only: the code
 * of the session has the id of its owner.
 */
static int add_changing(enum figures_file file, int *ret_fd)
{
	char place[64], at[64];
	snprintf(place, sizeof(place), "/dev/shm/%s", figures_name(file));
	snprintf(at, sizeof(at), "/proc/%s", figures_name(file));
	int fd = open(place, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return -errno;
	if (mount(place, at, NULL, MS_BIND, NULL) < 0 ||
		mount(NULL, at, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | flags, NULL) < 0 ||
		unlink(place) < 0) {
		int r = -errno;
		fd_close(fd);
		return r;
	}

	*ret_fd = fd;
	return 0;
}

/* The mount of the shared tree is read-only, and so is this one of a part of it. */
static int add_shared(const char *name)
{
	char from[64], at[64];
	snprintf(from, sizeof(from), PROC_FILES_SHARED "/%s", name);
	snprintf(at, sizeof(at), "/proc/%s", name);
	if (mount(from, at, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

int proc_files_open_unhidden(int *ret, const char **ret_step)
{
	*ret_step = "opening the daemon's /proc of the jail";
	if (mount("proc", "/proc", "proc", flags, "subset=pid") < 0)
		return -errno;
	/*
	 * The session's own /proc covers it. Code cannot take that away: it has neither the
	 * privilege nor the system call.
	 */
	int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

int proc_files_mount(int ret_fds[FIGURES_FILES], const char **ret_step)
{
	int r = 0;
	*ret_step = "mounting /proc";
	if (mount("proc", "/proc", "proc", flags, "hidepid=invisible") < 0)
		return -errno;

	*ret_step = "adding the session's own files to /proc";
	for (int i = 0; r == 0 && i < FIGURES_FILES; i++)
		r = add_changing((enum figures_file)i, &ret_fds[i]);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(shared); i++)
		r = add_shared(shared[i]);
	if (r < 0)
		return r;

	/*
	 * Only processes are left, and what is mounted: no kernel-wide files to read or write.
	 * Kernels before 5.8 lack it and are refused.
	 */
	*ret_step = "reducing /proc to processes";
	return mount(NULL, "/proc", NULL, MS_REMOUNT | flags, "subset=pid,hidepid=invisible") < 0
		       ? -errno
		       : 0;
}

/* ---- serving --------------------------------------------------------------------------- */

/* A write that fails leaves the figures before: the session has filled its /dev/shm. */
static void write_file(int fd, enum figures_file file, const struct jail_figures *f,
	const struct figures_moment *m)
{
	size_t len = figures_print(file, f, m, text);
	int r = pwrite(fd, text, len, 0) == (ssize_t)len ? ftruncate(fd, (off_t)len) : -1;
	(void)r;
}

static void look_again_in(struct proc_files *p, unsigned ms)
{
	p->due_ns = clock_now_ns() + ms * NSEC_PER_MSEC;
}

/*
 * The daemon answers with the figures of the session's control group. Without it the last ones do.
 */
static void ask(struct proc_files *p)
{
	char byte = JAIL_FIGURES;
	if (p->asked)
		return;
	p->asked = send(p->control, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
	look_again_in(p, p->asked ? PATIENCE_MS : 0);
}

/* True when a process has the file open. */
static bool take_lease(struct proc_files *p, int i)
{
	if (!p->leased[i])
		p->leased[i] = fcntl(p->fds[i], F_SETLEASE, F_WRLCK) == 0;
	return !p->leased[i] && errno == EAGAIN;
}

void proc_files_start(struct proc_files *p)
{
	struct figures_moment now;
	figures_look(&now);
	p->wait_ms = AGAIN_MS;
	for (int i = 0; i < FIGURES_FILES; i++) {
		/* which takes its room in /dev/shm before the session does */
		write_file(p->fds[i], (enum figures_file)i, &p->last, &now);
		if (take_lease(p, i))
			look_again_in(p, p->wait_ms);
	}
}

/* Another than the lease that was taken: it is being broken. */
static bool is_waited_for(const struct proc_files *p, int i)
{
	return p->leased[i] && fcntl(p->fds[i], F_GETLEASE) != F_WRLCK;
}

void proc_files_opened(struct proc_files *p)
{
	for (int i = 0; i < FIGURES_FILES; i++)
		if (is_waited_for(p, i))
			ask(p);
}

static void renew(struct proc_files *p)
{
	struct figures_moment now;
	figures_look(&now);
	for (int i = 0; i < FIGURES_FILES; i++) {
		bool waited_for = is_waited_for(p, i);
		if (waited_for || !p->leased[i])
			write_file(p->fds[i], (enum figures_file)i, &p->last, &now);
		if (waited_for && fcntl(p->fds[i], F_SETLEASE, F_UNLCK) == 0)
			p->leased[i] = false;
	}
	p->asked = false;
}

void proc_files_answered(struct proc_files *p, const struct jail_figures *f)
{
	p->last = *f;
	if (!p->asked)
		return; /* too late: those who waited have the figures before these */
	renew(p);
	look_again_in(p, p->wait_ms);
}

int proc_files_wait_ms(const struct proc_files *p)
{
	if (!p->due_ns)
		return -1;
	uint64_t now = clock_now_ns();
	return now >= p->due_ns ? 0 : (int)((p->due_ns - now) / NSEC_PER_MSEC) + 1;
}

void proc_files_tick(struct proc_files *p)
{
	bool kept_open = false;
	if (!p->due_ns || clock_now_ns() < p->due_ns)
		return;
	if (p->asked) { /* the daemon did not answer in time */
		renew(p);
		look_again_in(p, p->wait_ms);
		return;
	}

	p->due_ns = 0;
	for (int i = 0; i < FIGURES_FILES; i++)
		kept_open |= take_lease(p, i);
	if (!kept_open) {
		p->wait_ms = AGAIN_MS;
	} else if (p->wait_ms >= KEPT_OPEN_MS) {
		ask(p);
	} else {
		p->wait_ms *= 2;
		look_again_in(p, p->wait_ms);
	}
}
