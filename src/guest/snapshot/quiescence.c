#include "guest/snapshot/quiescence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
	/* looks, a millisecond apart or more: what is on its way out may wait for a CPU */
	PATIENCE = 2000,
	/* looks in a row at which all slept: they wait for something, and not for the end */
	QUIET = 4,
	EXITING = 0x4, /* PF_EXITING of the kernel's */
	CHILD_NAME = 32,
};

static uint64_t stayed; /* which threads were found to stay, the last time: not waited for again */

static void rest(void)
{
	Py_BEGIN_ALLOW_THREADS;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 1000000 }, NULL);
	Py_END_ALLOW_THREADS;
}

/* The text of a small file of /proc, under `dir`. */
static bool read_text(int dir, const char *name, const char *file, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "%.32s/%s", name, file);
	_cleanup_fd_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The state of a process, as ps shows it, and its flags; 'X' if the process no longer exists. */
static char state_of(int dir, const char *name, unsigned *ret_flags)
{
	char text[1024], state = 'X';
	*ret_flags = 0;
	/* its name may hold anything */
	const char *at = read_text(dir, name, "stat", text, sizeof(text)) ? strrchr(text, ')')
									  : NULL;
	if (!at || sscanf(at, ") %c %*d %*d %*d %*d %*d %u", &state, ret_flags) != 2)
		return 'X';
	return state;
}

/* ---- threads --------------------------------------------------------------------- */

/* The links of a directory count what is in it: one per thread, and two of its own. */
static unsigned others(void)
{
	struct stat st = { 0 };
	return stat("/proc/self/task", &st) == 0 && st.st_nlink >= 3 ? (unsigned)st.st_nlink - 3
								     : 1;
}

/*
 * A thread that runs Python, or is about to, has a state of its own there, until it has nothing
 * more to do.
 */
static bool python_has_threads(void)
{
	return PyThreadState_Next(PyInterpreterState_ThreadHead(PyInterpreterState_Get())) != NULL;
}

/* Whether all others sleep, as threads that wait for work do. */
static bool all_sleep(uint64_t *ret_who)
{
	DIR *d = opendir("/proc/self/task");
	bool asleep = d != NULL;
	*ret_who = 0;
	for (struct dirent *e; d && (e = readdir(d));) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
		unsigned flags;
		if (tid <= 0 || tid == getpid())
			continue;
		*ret_who = *ret_who * 31 + (uint64_t)tid;
		asleep = asleep && state_of(dirfd(d), e->d_name, &flags) == 'S' &&
			 !(flags & EXITING);
	}

	if (d)
		closedir(d);
	return asleep;
}

/* Waits for threads that end. False when some stay: those Python knows, and those of libraries. */
static bool threads_end(void)
{
	unsigned quiet = 0;
	uint64_t who = 0;
	for (unsigned look = 0; others(); look++) {
		if (python_has_threads())
			return false;
		quiet = all_sleep(&who) ? quiet + 1 : 0;
		if (who == stayed || quiet == QUIET || look == PATIENCE) {
			stayed = who;
			return !others();
		}
		rest();
	}
	return true;
}

/* Which threads they are, as far as Python knows them. */
static void describe_threads(PyObject *describe, char why[HELD_WHY_MAX])
{
	PyObject *text = PyObject_CallFunction(describe, "I", others());
	const char *words = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
	snprintf(why, HELD_WHY_MAX, "%.*s", HELD_WHY_MAX - 1,
		words ? words : "threads are running beside the cell's: end them");
	Py_XDECREF(text);
	PyErr_Clear();
}

/* ---- children ---------------------------------------------------------------------- */

/* A child that has ended and waits to be reaped, 0 when all are running, -1 when there are none. */
static pid_t ended_child(void)
{
	siginfo_t si = { 0 };
	return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 ? -1 : si.si_pid;
}

static bool was_killed(int proc, const char *pid)
{
	char text[4096];
	unsigned flags;
	char state = state_of(proc, pid, &flags);
	if (state == 'X' || state == 'Z' || flags & EXITING)
		return true;
	if (!read_text(proc, pid, "status", text, sizeof(text)))
		return true;
	const char *own = strstr(text, "\nSigPnd:"), *shared = strstr(text, "\nShdPnd:");
	uint64_t pending = (own ? strtoull(own + 8, NULL, 16) : 0) |
			   (shared ? strtoull(shared + 8, NULL, 16) : 0);
	return pending >> (SIGKILL - 1) & 1;
}

/*
 * Whether one of the running children is about to end. If none is, returns the number and the name
 * of the first child.
 */
static bool child_ends(pid_t *ret_pid, char name[CHILD_NAME])
{
	char list[4096], *at = NULL;
	bool ends = false;

	*ret_pid = 0;
	_cleanup_fd_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0 || !read_text(proc, "thread-self", "children", list, sizeof(list)))
		return false;
	for (char *pid = strtok_r(list, " ", &at); pid && !ends; pid = strtok_r(NULL, " ", &at)) {
		ends = was_killed(proc, pid);
		if (!*ret_pid && read_text(proc, pid, "comm", name, CHILD_NAME)) {
			*ret_pid = (pid_t)strtol(pid, NULL, 10);
			name[strcspn(name, "\n")] = '\0';
		}
	}

	return ends;
}

/* What Python knows of it, or else its name. */
static void describe_child(PyObject *describe, pid_t pid, const char *name, char why[HELD_WHY_MAX])
{
	PyObject *text = PyObject_CallFunction(describe, "i", (int)pid);
	const char *words = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
	if (words)
		snprintf(why, HELD_WHY_MAX, "%.*s", HELD_WHY_MAX - 1, words);
	else if (pid)
		snprintf(why, HELD_WHY_MAX,
			"a child process is running (%s, %d): end it and wait for it", name,
			(int)pid);
	else
		snprintf(why, HELD_WHY_MAX, "a child process is running: end it and wait for it");
	Py_XDECREF(text);
	PyErr_Clear();
}

/*
 * Has those reaped that Python's own modules would reap by themselves, with the next process they
 * start.
 */
static void reap(PyObject *reap_children)
{
	PyObject *r = PyObject_CallNoArgs(reap_children);
	Py_XDECREF(r);
	PyErr_Clear();
}

static bool childless(const struct support *support, char why[HELD_WHY_MAX])
{
	char name[CHILD_NAME] = "";
	pid_t running = 0, ended = 0;
	bool stays = false;

	for (unsigned look = 0; look < PATIENCE; look++) {
		/* While some are reaped others may end. */
		for (pid_t before = 0; (ended = ended_child()) > 0 && ended != before;
			before = ended) {
			reap(support->reap_children);
			stays = false;
		}
		if (ended || stays)
			break;
		stays = !child_ends(&running, name); /* or went meanwhile: the next look tells */
		if (!stays)
			rest();
	}

	if (ended > 0)
		snprintf(why, HELD_WHY_MAX,
			"the child process %d has ended but has not been waited for: wait for it",
			(int)ended);
	else if (ended == 0)
		describe_child(support->child_text, running, name, why);
	return ended < 0;
}

bool quiescence_check(const struct support *support, char why[HELD_WHY_MAX])
{
	if (!threads_end()) {
		/* Windows have threads of their own: they are what can be closed. */
		if (!held_display(why))
			describe_threads(support->threads_text, why);
		return false;
	}
	return childless(support, why);
}
