#include "guest/snapshot/guest_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "guest/run/effects.h"
#include "guest/run/file_changes.h"
#include "guest/run/guest.h"
#include "guest/run/memory.h"
#include "guest/run/stream.h"
#include "guest/snapshot/file_snapshot.h"
#include "guest/snapshot/open_files.h"
#include "guest/snapshot/prefault.h"
#include "guest/snapshot/quiescence.h"
#include "guest/snapshot/raw_fork.h"
#include "guest/snapshot/received_fds.h"
#include "guest/snapshot/shared_memory.h"
#include "jail/jail.h"

/* How long to wait for room among the session's processes: the cell before may have left it full, the guest before a rollback is on its way out. */
enum { PARK_PATIENCE_MS = 100, LIVE_PATIENCE_MS = 5000 };

enum { LIVE_FDS = 3, OURS_MAX = HELD_OURS_MAX };
_Static_assert(OURS_MAX >= FDS_PER_MESSAGE_MAX + 8, "the list has room for all of ours");

static struct guest_snapshot_host host;
static char directory[PATH_MAX]; /* the working one, when a copy was parked */
static uint32_t last_cell;
/* the copy that is being made, or was made last, is the first to go when memory runs short */
static bool fragile;
static bool ran; /* a cell, since the last copy */
/* in a guest that was a parked copy itself: the snapshot_id of the one it has to leave behind; else 0 */
static uint64_t another;
static struct {
	bool wanted, due, quick;
	uint64_t snapshot_id;
} next; /* WIRE_PARK_NEXT */

void guest_snapshot_prepare(const struct guest_snapshot_host *h)
{
	host = *h;
	raw_fork_prepare();
}

ssize_t guest_snapshot_receive(void *data, size_t len)
{
	return received_fds_read(data, len);
}

static void drop_fds(void)
{
	received_fds_drop();
	next.wanted = next.due = false;
}

void guest_snapshot_forked(void)
{
	drop_fds();
}

/* ---- is it sound? -------------------------------------------------------------------- */

/* The event loop of cells that await has a pair of sockets of its own, which a copy can go on with once the guest is gone. */
static size_t loop_descriptors(int *to, size_t max)
{
	size_t n = 0;
	PyObject *list = PyObject_CallNoArgs(host.support->loop_descriptors);
	for (Py_ssize_t i = 0; list && PyList_Check(list) && i < PyList_GET_SIZE(list) && n < max;
		i++)
		to[n++] = (int)PyLong_AsLong(PyList_GET_ITEM(list, i));
	Py_XDECREF(list);
	PyErr_Clear();
	return n;
}

/* A copy beside a guest that uses more than half of its memory is fragile: both would not fit, should the guest write to all of its memory. */
static bool sound(bool may_be_fragile, char why[HELD_WHY_MAX])
{
	int ours[OURS_MAX] = { GUEST_CONTROL_FD };
	size_t n = 1;
	if (!quiescence_check(host.support, why))
		return false;
	fragile = !memory_has_room_for_copy();
	if (fragile && !may_be_fragile) {
		snprintf(why, HELD_WHY_MAX,
			"it uses more than half of its limits.memory_bytes, and a snapshot must fit beside it");
		return false;
	}
	n += received_fds_list(ours + n);
	n += loop_descriptors(ours + n, OURS_MAX - n);
	return open_files_note(ours, n, why);
}

/* ---- forking --------------------------------------------------------------------------- */

static void say_parked(uint64_t snapshot_id, const char *why, const int *along, size_t n)
{
	struct buffer b = BUFFER_INIT(4096);
	const char *left = why ? NULL : store_left();
	size_t start;
	if (wire_begin(&b, WIRE_PARKED, last_cell, &start) < 0)
		return;
	wire_put_u64(&b, WIRE_SNAPSHOT_ID, snapshot_id);
	if (why)
		wire_put(&b, WIRE_TEXT, why, strlen(why));
	if (left)
		wire_put(&b, WIRE_FILES_LEFT, left, strlen(left));
	if (!why && fragile)
		wire_put_u64(&b, WIRE_FRAGILE, 1);
	wire_end(&b, start);
	host.send(&b, along, why ? 0 : n);
	buffer_finish(&b);
}

/* WIRE_LIVED goes to the control socket of the guest that was asked for. */
static void answer_order(int control, const char *why, int pidfd)
{
	struct buffer b = BUFFER_INIT(4096);
	size_t start;
	if (wire_begin(&b, WIRE_LIVED, last_cell, &start) == 0) {
		if (why)
			wire_put(&b, WIRE_TEXT, why, strlen(why));
		wire_end(&b, start);
		fd_send(control, b.data, b.len, &pidfd, pidfd >= 0 ? 1 : 0);
	}
	buffer_finish(&b);
}

/* When memory runs out the kernel takes whoever is worth most to it: the guest that uses it, rather than the copy that saves the day. */
static void set_worth(const char *text)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t w = write(fd, text, strlen(text));
		(void)w;
		close(fd);
	}
}

/* ---- a live guest from a copy ------------------------------------------------------------- */

/* What WIRE_LIVE asks for. */
struct order {
	uint64_t restore, reseed, itself;
	bool moves;
	int ends[LIVE_FDS];
	int namespaces[JAIL_NAMESPACES];
};

static void order_read(struct order *o, const struct wire_frame *f)
{
	struct wire_field field;
	size_t at = 0;
	*o = (struct order){ 0 };
	while (wire_field_next(f, &at, &field) == 1) {
		uint64_t *to = field.tag == WIRE_RESTORE  ? &o->restore
			       : field.tag == WIRE_RESEED ? &o->reseed
			       : field.tag == WIRE_ITSELF ? &o->itself
							  : NULL;
		if (to)
			wire_field_u64(&field, to);
		o->moves |= field.tag == WIRE_MOVE;
	}
	for (int i = 0; i < LIVE_FDS; i++)
		o->ends[i] = received_fd_take();
	for (int i = 0; o->moves && i < JAIL_NAMESPACES; i++)
		o->namespaces[i] = received_fd_take();
}

static void order_close(const struct order *o)
{
	for (int i = 0; i < LIVE_FDS; i++)
		fd_close(o->ends[i]);
	for (int i = 0; o->moves && i < JAIL_NAMESPACES; i++)
		fd_close(o->namespaces[i]);
}

static void say_ready(const char *files_left, const char *note)
{
	struct buffer b = BUFFER_INIT(4096);
	size_t start;
	if (wire_begin(&b, WIRE_READY, 0, &start) == 0) {
		if (files_left)
			wire_put(&b, WIRE_FILES_LEFT, files_left, strlen(files_left));
		if (note)
			wire_put(&b, WIRE_NOTE, note, strlen(note));
		wire_end(&b, start);
		host.send(&b, NULL, 0);
	}
	buffer_finish(&b);
}

/* A session of its own: not its parent's event loop, and with `reseed` not its random numbers. Returns what kept its seed; new reference or NULL. */
static PyObject *part_ways(bool reseed)
{
	PyObject *r = PyObject_CallFunctionObjArgs(
		host.support->part_ways, reseed ? Py_True : Py_False, NULL);
	if (!r) {
		PyErr_Clear();
		guest_fail(GUEST_CONTROL_FD,
			"tasks of its event loop are pending: await them first", 0);
	}
	return r;
}

/* In the parked copy, or its fork, or the fork of that in a jail of its own. */
static void come_alive(const struct order *o, const sigset_t *signals)
{
	const char *left = NULL, *note = NULL;
	PyObject *kept_seed = NULL;
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	dup3(o->ends[0], GUEST_CONTROL_FD, O_CLOEXEC);
	dup2(o->ends[1], STDOUT_FILENO);
	dup2(o->ends[2], STDERR_FILENO);
	order_close(o);
	setsid();
	set_worth(GUEST_OOM_LIVE);
	stream_start();
	if (o->restore)
		left = file_snapshot_restore();
	if (chdir(directory) < 0 && chdir("/workspace") < 0)
		left = "its directory is gone";
	open_files_reopen(o->moves);
	sigprocmask(SIG_SETMASK, signals, NULL);
	if (o->moves) {
		kept_seed = part_ways(o->reseed);
		note = PyUnicode_Check(kept_seed) ? PyUnicode_AsUTF8(kept_seed) : NULL;
	}
	say_ready(left, note && *note ? note : NULL);
	Py_XDECREF(kept_seed);
	PyErr_Clear();
	/* Before the next cell, but in nobody's way. */
	files_forget_changes();
	another = o->itself;
}

/* Processes that were killed count against the limit until the last of them is gone. */
static pid_t clone_patiently(int *ret_pidfd, uint64_t patience_ms)
{
	for (uint64_t until = clock_now_ns() + patience_ms * NSEC_PER_MSEC;;) {
		pid_t pid = raw_fork_fork(ret_pidfd);
		if (pid >= 0 || errno != EAGAIN || clock_now_ns() > until)
			return pid;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

/* Reads WIRE_JOINED and not a byte more: what follows is for the main loop. */
static void await_joined(int control)
{
	char head[WIRE_HEADER];
	if (fd_read_full(control, head, sizeof(head)) < 0)
		_exit(0); /* nobody wants this guest any more */
}

/* In a fork of the parked copy: joins the other jail and gives way to a copy of itself, because only children are in its pid namespace. */
static void move(const struct order *o)
{
	char text[HELD_WHY_MAX];
	const char *step;
	int pidfd = -1, r = jail_move(o->namespaces, &step);
	if (r == 0) {
		step = "forking";
		r = raw_fork_succeed(&pidfd);
	}
	if (r < 0) {
		snprintf(text, sizeof(text), "%s: %s", step, strerror(-r));
		answer_order(o->ends[0], text, -1);
		_exit(0);
	}
	if ((r = jail_settle(&step)) < 0)
		guest_fail(o->ends[0], step, r);
	/* The daemon looks at us, and has us moved into the jail's control groups: files that are put back are to be counted there. */
	answer_order(o->ends[0], NULL, pidfd);
	fd_close(pidfd);
	await_joined(o->ends[0]);
}

/* WIRE_LIVE. True in the new guest. */
static bool live(const struct wire_frame *f, const sigset_t *signals)
{
	struct order o;
	char why[HELD_WHY_MAX];
	int pidfd = -1;
	order_read(&o, f);
	if (o.itself) {
		come_alive(&o, signals);
		return true;
	}
	if (o.moves && (store_problem() || shared_memory())) {
		snprintf(why, sizeof(why), "its files cannot be copied: %s",
			store_problem() ? store_problem() : "");
		answer_order(o.ends[0], store_problem() ? why : shared_memory(), -1);
		order_close(&o);
		return false;
	}
	pid_t pid = clone_patiently(&pidfd, LIVE_PATIENCE_MS);
	if (pid == 0) {
		if (o.moves)
			move(&o);
		come_alive(&o, signals);
		return true;
	}
	if (pid < 0)
		answer_order(o.ends[0], strerror(errno), -1);
	fd_close(pidfd);
	order_close(&o);
	return false;
}

/* The life of a parked copy: no Python, no signals, one socket. Returns in the live guests made from it. */
static void stay_parked(int control, int settled)
{
	struct wire_reader in;
	struct wire_frame f;
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	if (dup3(control, GUEST_CONTROL_FD, O_CLOEXEC) < 0)
		_exit(1);
	fd_close(control);
	drop_fds();
	setsid(); /* a signal to the guest's group is not for us */
	open_files_release();
	shared_forget();
	host.forget_input();
	wire_reader_init(&in, GUEST_PARKED_FRAME_MAX);
	fd_close(settled);
	for (;;) {
		char *to;
		size_t room;
		int r;
		while ((r = wire_reader_next(&in, &f)) == 1) {
			if (f.type == WIRE_LIVE && live(&f, &before)) {
				wire_reader_finish(&in);
				return;
			}
		}
		if (r < 0 || wire_reader_room(&in, GUEST_PARKED_FRAME_MAX, &to, &room) < 0)
			_exit(1);
		ssize_t n = guest_snapshot_receive(to, room);
		if (n <= 0)
			_exit(0); /* nobody needs it any more */
		wire_reader_filled(&in, (size_t)n);
	}
}

/* ---- parking ---------------------------------------------------------------------------------- */

/*
 * Waits until the copy has left our process group and closed our files, because the next cell may
 * signal the group and lock the files.
 */
static void await_end(const int ends[2])
{
	char byte;
	fd_close(ends[1]);
	while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
		;
	fd_close(ends[0]);
}

/* The copy's control socket and the pipe on which it says that it has settled. Made now, so that no cell ever runs beside them. */
static bool make_ends(int control[2], int settled[2], char why[HELD_WHY_MAX])
{
	int r = fd_socketpair(SOCK_STREAM, control);
	if (r == 0 && pipe2(settled, O_CLOEXEC) < 0) {
		r = -errno;
		fd_close(control[0]);
		fd_close(control[1]);
	}
	if (r < 0)
		snprintf(why, HELD_WHY_MAX, "%s", strerror(-r));
	return r == 0;
}

/*
 * Forks the copy. Returns in the guest and, perhaps much later, in every guest that comes to life from the copy. One of them is the copy itself, for a
 * fork takes longer than all else that a way back needs: it leaves another copy in its place when it is the guest already, before it runs a cell.
 */
static void leave_copy(uint64_t snapshot_id)
{
	char why[HELD_WHY_MAX];
	int pidfd = -1, control[2], settled[2];
	uint64_t patience_ms = PARK_PATIENCE_MS;
	for (;; snapshot_id = another) {
		another = 0;
		if (!make_ends(control, settled, why)) {
			say_parked(snapshot_id, why, NULL, 0);
			return;
		}
		set_worth(fragile ? GUEST_OOM_FRAGILE : GUEST_OOM_PARKED);
		/* code that looks around in /proc never sees the copy */
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		pid_t pid = clone_patiently(&pidfd, patience_ms);
		if (pid != 0)
			break;
		fd_close(settled[0]);
		fd_close(control[0]);
		stay_parked(control[1], settled[1]);
		if (!another)
			return;
		patience_ms = LIVE_PATIENCE_MS;
	}
	int err = errno;
	await_end(settled);
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	/* A guest may be twice as large as a fragile copy by the time when memory runs short: the distance must make up for that. */
	set_worth(fragile ? GUEST_OOM_PARKED : GUEST_OOM_LIVE);
	say_parked(snapshot_id, pidfd < 0 ? strerror(err) : NULL,
		(const int[]){ pidfd, control[0] }, 2);
	bool made = pidfd >= 0;
	fd_close(pidfd);
	fd_close(control[0]);
	fd_close(control[1]);
	if (made)
		prefault_copy();
}

static void park(uint64_t snapshot_id, bool may_be_fragile)
{
	char why[HELD_WHY_MAX];
	if (!sound(may_be_fragile, why)) {
		say_parked(snapshot_id, why, NULL, 0);
		return;
	}
	file_snapshot_update();
	if (ran)
		prefault_learn();
	ran = false;
	if (!getcwd(directory, sizeof(directory)))
		snprintf(directory, sizeof(directory), "/workspace");
	leave_copy(snapshot_id);
}

void guest_snapshot_handle(const struct wire_frame *f)
{
	struct wire_field field;
	size_t at = 0;
	uint64_t snapshot_id = 0, may_be_fragile = 0;
	while (wire_field_next(f, &at, &field) == 1) {
		if (field.tag == WIRE_SNAPSHOT_ID)
			wire_field_u64(&field, &snapshot_id);
		else if (field.tag == WIRE_FRAGILE)
			wire_field_u64(&field, &may_be_fragile);
	}
	if (f->type == WIRE_PARK) {
		park(snapshot_id, may_be_fragile);
	} else if (!next.wanted) {
		next.wanted = true;
		next.snapshot_id = snapshot_id;
	}
}

void guest_snapshot_cell_done(uint32_t serial, uint64_t took_ns)
{
	last_cell = serial;
	ran = true;
	next.due = next.wanted;
	/* A cell that cannot be run again needs a copy after it anyway: now it is in nobody's way. */
	next.quick = took_ns < PARK_QUICK_MS * NSEC_PER_MSEC &&
		     !(effects_last() & WIRE_EFFECT_OUTSIDE);
}

int guest_snapshot_patience_ms(void)
{
	return next.quick ? PARK_LATER_MS : PARK_SOON_MS;
}

bool guest_snapshot_due(void)
{
	return next.due;
}

void guest_snapshot_when_idle(void)
{
	next.wanted = next.due = false;
	park(next.snapshot_id, true);
}
