/*
 * What the threads of the display's clients are doing, read from /proc: they are processes of the
 * same user in the same jail.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "display/settle/settle.h"

enum { THREADS_MAX = 256, THREADS_KEPT = 32 };
#define NO_TIMEOUT 1e12

/* Where a waiting call keeps its timeout. */
enum timeout_kind {
	TIMEOUT_NONE,
	TIMEOUT_MS,
	TIMEOUT_TIMEVAL,
	TIMEOUT_TIMESPEC,
	TIMEOUT_FUTEX,
	TIMEOUT_CLOCK
};

static const struct waiting_call {
	long number;
	unsigned argument;
	enum timeout_kind kind;
	/*
	 * Does it wait for something to happen, or only for time to pass? EVENTS_COUNTED: where
	 * this argument is 0 (of poll or select without descriptors, as Tcl sleeps), time.
	 */
	enum { EVENTS_NO, EVENTS_YES, EVENTS_COUNTED } events;
	unsigned count;
} calls[] = {
#ifdef SYS_poll
	{ SYS_poll, 2, TIMEOUT_MS, EVENTS_COUNTED, 1 },
	{ SYS_select, 4, TIMEOUT_TIMEVAL, EVENTS_COUNTED, 0 },
	{ SYS_epoll_wait, 3, TIMEOUT_MS, EVENTS_YES, 0 },
#endif
	{ SYS_ppoll, 2, TIMEOUT_TIMESPEC, EVENTS_COUNTED, 1 },
	{ SYS_pselect6, 4, TIMEOUT_TIMESPEC, EVENTS_COUNTED, 0 },
	{ SYS_epoll_pwait, 3, TIMEOUT_MS, EVENTS_YES, 0 },
	/* a Tk main thread waits for its notifier thread, which selects */
	{ SYS_futex, 3, TIMEOUT_FUTEX, EVENTS_YES, 0 },
	{ SYS_clock_nanosleep, 2, TIMEOUT_CLOCK, EVENTS_NO, 0 },
	{ SYS_nanosleep, 0, TIMEOUT_TIMESPEC, EVENTS_NO, 0 },
	{ SYS_read, 0, TIMEOUT_NONE, EVENTS_NO, 0 },
	{ SYS_recvfrom, 0, TIMEOUT_NONE, EVENTS_NO, 0 },
	{ SYS_recvmsg, 0, TIMEOUT_NONE, EVENTS_YES, 0 },
	{ SYS_wait4, 0, TIMEOUT_NONE, EVENTS_NO, 0 },
	{ SYS_waitid, 0, TIMEOUT_NONE, EVENTS_NO, 0 },
	{ SYS_rt_sigtimedwait, 2, TIMEOUT_TIMESPEC, EVENTS_NO, 0 },
};

/* What one thread was found to do. */
struct finding {
	bool events;   /* it waits for something to happen … */
	bool for_time; /* … or for a time, whichever comes first */
};

/* Reads a file of /proc into text; the length, or -1. */
static ssize_t read_proc(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

static double clock_ms(clockid_t id)
{
	struct timespec t;
	return clock_gettime(id, &t) < 0 ? 0 : (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The time a call may still wait, in ms. */
static double timeout_of(pid_t pid, const struct waiting_call *call, const unsigned long *arguments)
{
	struct {
		long seconds, part;

	} t = { 0, 0 };
	unsigned long value = arguments[call->argument];
	if (call->kind == TIMEOUT_NONE)
		return NO_TIMEOUT;
	if (call->kind == TIMEOUT_MS)
		return (int)value < 0 ? NO_TIMEOUT : (double)(int)value;
	if (!value)
		return NO_TIMEOUT;
	struct iovec here = { &t, sizeof(t) }, there = { (void *)value, sizeof(t) };
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof(t))
		return 0; /* unknown counts as near */
	double ms = (double)t.seconds * 1e3 +
		    (double)t.part / (call->kind == TIMEOUT_TIMEVAL ? 1e3 : 1e6);
	unsigned long operation = arguments[1];
	enum {
		FUTEX_BITSET = 9,
		FUTEX_PI = 11,
		FUTEX_MASK = 0x7f,
		FUTEX_REALTIME = 256,
		ABSOLUTE = 1
	};
	if (call->kind == TIMEOUT_FUTEX &&
		((operation & FUTEX_MASK) == FUTEX_BITSET || (operation & FUTEX_MASK) == FUTEX_PI))
		ms -= clock_ms(operation & FUTEX_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC);
	if (call->kind == TIMEOUT_CLOCK && operation & ABSOLUTE)
		ms -= clock_ms((clockid_t)arguments[0]);
	return ms > 0 ? ms : 0;
}

static bool waits_for_events(const struct waiting_call *call, const unsigned long *arguments)
{
	return call->events == EVENTS_YES ||
	       (call->events == EVENTS_COUNTED && arguments[call->count]);
}

/*
 * A look happens every two milliseconds while a program draws, so that its files stay open: opening
 * them is most of what one costs. A file of a thread that ended reads as ESRCH, also when its
 * number is another's by then.
 */
static struct kept {
	pid_t pid, tid; /* 0: free */
	int fd;         /* of the thread's `syscall` */
} kept[THREADS_KEPT];

static void forget(struct kept *k)
{
	close(k->fd);
	*k = (struct kept){ 0 };
}

/*
 * Into text, what the thread waits in; the length, or negative when it may not be read or is gone.
 */
static ssize_t read_syscall(pid_t pid, pid_t tid, char *text, size_t size)
{
	static unsigned next;
	char path[64];
	struct kept *k = NULL, *room = NULL;

	for (size_t i = 0; i < ARRAY_LEN(kept) && !k; i++) {
		if (kept[i].tid == tid && kept[i].pid == pid)
			k = &kept[i];
		else if (!kept[i].tid)
			room = &kept[i];
	}

	ssize_t n = k ? pread(k->fd, text, size - 1, 0) : -1;
	if (n > 0) {
		text[n] = '\0';
		return n;
	}

	if (!room)
		room = k ? k : &kept[next++ % ARRAY_LEN(kept)];
	if (room->tid)
		forget(room);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	*room = (struct kept){ pid, tid, fd };
	n = pread(fd, text, size - 1, 0);
	if (n <= 0)
		forget(room);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

/* The letter of /proc; 0 when the thread is gone. */
static char state_of(pid_t pid, pid_t tid)
{
	char path[64], text[256];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (read_proc(path, text, sizeof(text)) <= 0)
		return 0;
	const char *state = strrchr(text, ')');
	return state && state[1] ? state[2] : 0;
}

/* Not ours to see: only whether it sleeps. */
static struct finding look_blindly(pid_t pid, pid_t tid, struct sample *s)
{
	char state = state_of(pid, tid);
	s->blind = true;
	s->waiting &= !state || state == 'S';
	return (struct finding){ .events = state != 0 };
}

/* What one thread does: adds to the sample. */
static struct finding look_at_thread(pid_t pid, pid_t tid, struct sample *s)
{
	char text[256];
	long number;
	unsigned long a[6];

	if (read_syscall(pid, tid, text, sizeof(text)) <= 0)
		return look_blindly(pid, tid, s);
	if (sscanf(text, "%ld %lx %lx %lx %lx %lx %lx", &number, a, a + 1, a + 2, a + 3, a + 4,
		    a + 5) != 7) {
		s->waiting = false; /* "running" */
		return (struct finding){ 0 };
	}

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		if (calls[i].number != number)
			continue;
		if (number == SYS_read && state_of(pid, tid) == 'D')
			break; /* the disk is slow, the program is not done */
		double ms = timeout_of(pid, &calls[i], a);
		if (ms < s->near_ms)
			s->near_ms = ms;
		return (struct finding){ .events = waits_for_events(&calls[i], a),
			.for_time = ms < NO_TIMEOUT };
	}

	s->waiting = false;
	return (struct finding){ 0 };
}

/*
 * The session's interpreter came into the jail from outside, so that it has no parent there; what
 * it started has one.
 */
static bool is_guest(pid_t pid)
{
	char path[32], text[256];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_proc(path, text, sizeof(text)) <= 0)
		return false;
	const char *state = strrchr(text, ')');
	return state && strlen(state) > 4 && strtol(state + 4, NULL, 10) == 0;
}

/* CPU that a process used, threads that ended included. */
static uint64_t run_time(pid_t pid)
{
	clockid_t clock;
	struct timespec t;
	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* The main thread, which decides where the program is; the others only count as busy or not. */
static struct finding look_at_process(pid_t pid, struct sample *s)
{
	struct finding main_thread = { 0 };
	char path[32];
	unsigned n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *d = opendir(path);
	if (!d)
		return (struct finding){ .events = true }; /* gone: it keeps nobody waiting */
	for (struct dirent *e; (e = readdir(d)) && n < THREADS_MAX;) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
		if (tid <= 0)
			continue;
		n++;
		struct finding f = look_at_thread(pid, tid, s);
		if (tid == pid)
			main_thread = f;
	}

	closedir(d);
	s->run_ns += run_time(pid);
	return main_thread;
}

int32_t proc_find(const char *name)
{
	char path[48], text[32];
	int32_t found = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e; d && !found && (e = readdir(d));) {
		int32_t pid = (int32_t)strtol(e->d_name, NULL, 10);
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		if (pid > 0 && read_proc(path, text, sizeof(text)) > 0 &&
			!strncmp(text, name, strlen(name)) && text[strlen(name)] == '\n')
			found = pid;
	}
	if (d)
		closedir(d);
	return found;
}

bool proc_foreign(const int32_t *pids, unsigned n, int32_t server)
{
	bool clients = false, guest = false;
	for (unsigned i = 0; i < n; i++) {
		if (pids[i] == server)
			continue;
		clients = true;
		guest |= is_guest(pids[i]);
	}
	return clients && !guest;
}

void proc_sample(const int32_t *pids, unsigned n, int32_t server, struct sample *ret)
{
	bool all = true, any = false;
	*ret = (struct sample){ .waiting = true, .in_loop = n > 0, .near_ms = NO_TIMEOUT };
	for (unsigned i = 0; i < n; i++) {
		struct finding f = look_at_process(pids[i], ret);
		ret->in_loop &= f.events;
		if (pids[i] == server)
			continue;
		all &= f.events;
		any |= f.for_time;
	}
	ret->ticking = all && any;
}
