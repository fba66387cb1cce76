#include "guest/run/guest.h"
#include "guest/run/guest_introspect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/limits.h"
#include "guest/run/cell_timing.h"
#include "guest/run/file_changes.h"
#include "guest/run/guest_internal.h"
#include "guest/run/guest_stdin.h"
#include "guest/run/memory.h"
#include "guest/run/package_requests.h"
#include "guest/run/paint.h"
#include "guest/run/random.h"
#include "guest/run/stream.h"
#include "guest/run/tool_calls.h"
#include "guest/snapshot/at_fork.h"
#include "guest/snapshot/guest_snapshot.h"
#include "wire/wire.h"

enum { GUEST_READ = 64 * 1024, GUEST_OUT_KEEP = 1 << 20 };

static struct support support;
static struct wire_reader in;
static struct buffer out;
static bool muted;   /* a cell is replayed */
static bool is_fork; /* a copy made by the cell's own os.fork() */
static bool reading; /* the main thread waits in receive(): what comes is its own */

static void send_frames(struct buffer *frames)
{
	if (!is_fork && fd_write_full(GUEST_CONTROL_FD, frames->data, frames->len) < 0)
		_exit(WIRE_CUT_OFF); /* the daemon is gone, or the code closed the descriptor */
	frames->len = 0;
	if (frames->cap > GUEST_OUT_KEEP)
		buffer_finish(frames);
}

/* The same, with descriptors. */
static void send_with(struct buffer *frames, const int *fds, size_t n)
{
	if (!n)
		send_frames(frames);
	else if (fd_send(GUEST_CONTROL_FD, frames->data, frames->len, fds, n) < 0)
		_exit(WIRE_CUT_OFF);
}

static void forget_input(void)
{
	wire_reader_finish(&in);
	wire_reader_init(&in, LIMIT_FRAME_BYTES);
}

static void child_of_fork(void)
{
	is_fork = true;
	cell_forked();
	guest_snapshot_forked();
	close(GUEST_CONTROL_FD);
}

/* Reads what is there, without waiting. */
static bool fill_now(void)
{
	char *at;
	size_t room;
	if (wire_reader_room(&in, GUEST_READ, &at, &room) < 0)
		_exit(1);
	ssize_t n = recv(GUEST_CONTROL_FD, at, room, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		_exit(WIRE_CUT_OFF); /* the daemon is gone, or the code closed the descriptor */
	wire_reader_filled(&in, n > 0 ? (size_t)n : 0);
	return true;
}

/* ---- EXECUTE ------------------------------------------------------------------ */

static void say_nothing(struct buffer *frames)
{
	frames->len = 0;
}

static unsigned depth; /* of cells that run, one inside the other */

static void execute(const struct wire_frame *f)
{
	struct wire_field field;
	size_t at = 0, len = 0;
	char *code = NULL;
	bool has_stdin = false, final = false, typed = false, paint = false, unwatched = false,
	     data_forms = false;
	int exit_code = 0;
	/* a cell inside this one reads into the buffer that the frame lies in */
	uint32_t serial = f->serial;
	while (wire_field_next(f, &at, &field) == 1) {
		if (field.tag == WIRE_CODE && !code && (code = malloc(field.len + 1))) {
			memcpy(code, field.data, field.len);
			code[len = field.len] = '\0';
		} else if (field.tag == WIRE_STDIN) {
			stdin_set(stdin_from(field.data, field.len));
			has_stdin = true;
		} else if (field.tag == WIRE_ARGUMENT) {
			cell_add_argument(field.data, field.len);
		} else if (field.tag == WIRE_RESCAN) {
			files_forget_changes();
		} else if (field.tag == WIRE_FINAL) {
			final = true;
		} else if (field.tag == WIRE_VARIABLES) {
			cell_set_variables(field.data, field.len);
		} else if (field.tag == WIRE_TYPED) {
			typed = true;
		} else if (field.tag == WIRE_DATA_FORMS) {
			data_forms = true;
		} else if (field.tag == WIRE_PAINT) {
			paint = !muted;
		} else if (field.tag == WIRE_UNWATCHED) {
			unwatched = true;
		}
	}
	cell_type_result(typed);
	cell_paint(paint);
	cell_set_unwatched(unwatched);
	cell_set_data_forms(data_forms);
	if (!has_stdin && stdin_is_closed()) /* exit() of the site module closes it */
		stdin_set(-1);
	depth++;
	uint64_t began = clock_now_ns();
	if (code)
		exit_code = cell_run(
			code, len, serial, final, &out, muted ? say_nothing : send_frames);
	depth--;
	free(code);
	if (is_fork)
		_exit(exit_code); /* a forked copy that came to the end of the cell is done */
	if (muted)
		say_nothing(&out);
	else
		send_frames(&out);
	if (has_stdin)
		stdin_set(-1);
	if (!depth)
		guest_snapshot_cell_done(serial, clock_now_ns() - began);
}

/* ---- REPLAY ------------------------------------------------------------------ */

/* Cells that were answered before: what they do to the interpreter counts, what they say does not. */
static void replay(const struct wire_frame *f)
{
	static int kept[2] = { -1, -1 };
	size_t start;
	if (kept[0] < 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		for (int i = 0; i < 2; i++) {
			kept[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, GUEST_CONTROL_FD - 8);
			dup2(null, i + 1);
		}
		fd_close(null);
	}
	if (f->serial) {
		muted = true;
		execute(f);
		muted = false;
		return;
	}
	for (int i = 0; i < 2; i++) {
		dup2(kept[i], i + 1);
		fd_close_clear(&kept[i]);
	}
	if (wire_begin(&out, WIRE_REPLAYED, 0, &start) == 0)
		wire_end(&out, start);
	send_frames(&out);
}

static void handle(const struct wire_frame *f);

/* ---- a cell inside another ------------------------------------------------------ */

/* Runs what came while a cell waits in a main loop. Its frames are its own: those of the outer one may be half written. */
static void execute_inside(const struct wire_frame *f)
{
	struct buffer kept = out;
	size_t start;
	out = (struct buffer){ 0 };
	if (wire_begin(&out, WIRE_STARTED, f->serial, &start) == 0) {
		wire_end(&out, start);
		send_frames(&out);
	}
	execute(f);
	buffer_finish(&out);
	out = kept;
}

void guest_take_frames(void)
{
	struct wire_frame f;
	while (fill_now() && wire_reader_next(&in, &f) == 1) {
		if (f.type == WIRE_EXECUTE)
			execute_inside(&f);
		else if (f.type == WIRE_TOOL_RESULT)
			tools_take_result(&f);
		else if (f.type == WIRE_TOOLS)
			handle(&f);
		else if (f.type == WIRE_CONTINUE)
			paint_continue();
	}
}

/* The handler of WIRE_CELL_SIGNAL, in the main thread, wherever a main loop lets Python run. */
static PyObject *on_cell_signal(PyObject *self, PyObject *args)
{
	(void)self, (void)args;
	if (!is_fork && !reading && depth)
		guest_take_frames();
	Py_RETURN_NONE;
}

static PyMethodDef cell_signal_def = { "next_cell", on_cell_signal, METH_VARARGS, NULL };

void guest_catch_cell_signal(void)
{
	PyObject *signal = PyImport_ImportModule("signal"),
		 *handler = PyCFunction_New(&cell_signal_def, NULL);
	PyObject *r = signal && handler ? PyObject_CallMethod(
						  signal, "signal", "iO", WIRE_CELL_SIGNAL, handler)
					: NULL;
	Py_XDECREF(r);
	Py_XDECREF(handler);
	Py_XDECREF(signal);
}

static void check(const struct wire_frame *f)
{
	struct wire_field field;
	size_t at = 0, start;
	while (wire_field_next(f, &at, &field) == 1) {
		if (field.tag != WIRE_CODE)
			continue;
		const char *verdict = cell_check(field.data, field.len);
		if (wire_begin(&out, WIRE_CHECKED, f->serial, &start) < 0)
			return;
		wire_put(&out, WIRE_TEXT, verdict, strlen(verdict));
		wire_end(&out, start);
		send_frames(&out);
		return;
	}
}

/* What a first cell does, and what comes before it, as far as it can be done without knowing either. */
static void rehearse(void)
{
	cell_rehearse(1);
	stdin_is_closed();
	memory_reset_peak();
	memory_weigh();
}

static void handle(const struct wire_frame *f)
{
	switch (f->type) {
	case WIRE_SETUP:
		guest_setup(f, &support);
		break;
	case WIRE_EXECUTE:
		execute(f);
		break;
	case WIRE_CHECK:
		check(f);
		break;
	case WIRE_INTROSPECT:
		introspect_answer(f, &out);
		send_frames(&out);
		break;
	case WIRE_REHEARSE:
		rehearse();
		break;
	case WIRE_TOOLS:
		tools_define(f, support.define_tools);
		break;
	case WIRE_REPLAY:
		replay(f);
		break;
	case WIRE_PARK:
	case WIRE_PARK_NEXT:
		guest_snapshot_handle(f);
		break;
	default:
		break;
	}
}

/* How many bytes the frame lacks that the reader is in the middle of, or that comes next and is a result: 0 when it is another kind. */
static size_t bytes_of_result(void)
{
	unsigned char head[WIRE_HEADER];
	size_t have = in.in.len - in.done;
	if (have && have < WIRE_HEADER)
		return WIRE_HEADER - have;
	if (have)
		memcpy(head, in.in.data + in.done, WIRE_HEADER);
	else if (recv(GUEST_CONTROL_FD, head, WIRE_HEADER, MSG_PEEK | MSG_DONTWAIT) < WIRE_HEADER ||
		 head[4] != WIRE_TOOL_RESULT)
		return 0;
	return WIRE_HEADER +
	       (head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24) -
	       have;
}

bool guest_take_result(void)
{
	struct wire_frame f;
	char *at;
	size_t room, want;
	if (reading || !(want = bytes_of_result()))
		return false;
	if (wire_reader_room(&in, want, &at, &room) < 0)
		_exit(1);
	ssize_t n = recv(GUEST_CONTROL_FD, at, want, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		_exit(WIRE_CUT_OFF); /* the daemon is gone, or the code closed the descriptor */
	wire_reader_filled(&in, n > 0 ? (size_t)n : 0);
	int r = wire_reader_next(&in, &f);
	if (r < 0)
		_exit(1);
	if (r == 1 && f.type == WIRE_TOOL_RESULT)
		tools_take_result(&f);
	return true;
}

bool guest_send_now(struct buffer *frames)
{
	if (is_fork)
		return false;
	send_frames(frames);
	return true;
}

/* The daemon interrupts a cell once it was sent: an interrupt that is here before the cell was meant for the one before. */
static void drop_stale_interrupt(void)
{
	if (PyErr_CheckSignals() < 0)
		PyErr_Clear();
}

static bool readable(int wait_ms)
{
	struct pollfd p = { .fd = GUEST_CONTROL_FD, .events = POLLIN };
	int r;
	Py_BEGIN_ALLOW_THREADS;
	do
		r = poll(&p, 1, wait_ms);
	while (r < 0 && errno == EINTR);
	Py_END_ALLOW_THREADS;
	return r != 0;
}

/* Waits for bytes without the GIL, so that background threads go on between cells. */
static void receive(void)
{
	char *at;
	size_t room;
	ssize_t n;
	if (guest_snapshot_due() && !readable(guest_snapshot_patience_ms())) {
		drop_stale_interrupt();
		guest_snapshot_when_idle();
	}
	if (!readable(0)) {
		readable(-1);
		drop_stale_interrupt();
	}
	if (wire_reader_room(&in, GUEST_READ, &at, &room) < 0)
		_exit(1);
	reading = true;
	Py_BEGIN_ALLOW_THREADS;
	n = guest_snapshot_receive(at, room);
	Py_END_ALLOW_THREADS;
	reading = false;
	if (n <= 0)
		_exit(WIRE_CUT_OFF);
	wire_reader_filled(&in, (size_t)n);
}

/* ---- life ---------------------------------------------------------------------- */

int guest_prepare(const struct support *s)
{
	support = *s;
	if (stdin_prepare() < 0 || at_fork_prepare() < 0)
		return -1;
	pthread_atfork(NULL, NULL, child_of_fork);
	guest_snapshot_prepare(&(struct guest_snapshot_host){
		.support = &support, .send = send_with, .forget_input = forget_input });
	return stream_prepare() < 0 || cell_prepare(s) < 0 || tools_prepare() < 0 ||
			       packages_prepare() < 0
		       ? -1
		       : 0;
}

void guest_fail(int control, const char *step, int err)
{
	struct buffer b = BUFFER_INIT(4096);
	size_t start;
	char text[256];
	snprintf(text, sizeof(text), "%s%s%s", step, err ? ": " : "",
		err ? strerror(err < 0 ? -err : err) : "");
	if (wire_begin(&b, WIRE_FAILED, 0, &start) == 0) {
		wire_put(&b, WIRE_TEXT, text, strlen(text));
		wire_end(&b, start);
		fd_write_full(control, b.data, b.len);
	}
	_exit(1);
}

static void on_wake(int sig)
{
	(void)sig; /* it has done its work: the system call is interrupted */
}

static void catch_wake(void)
{
	struct sigaction act = { .sa_handler = on_wake };
	sigaction(WIRE_WAKE_SIGNAL, &act, NULL);
}

static void say_ready(void)
{
	size_t start;
	steps_end(STEP_PYTHON);
	if (wire_begin(&out, WIRE_READY, 0, &start) == 0) {
		steps_put(&out);
		wire_end(&out, start);
	}
	send_frames(&out);
}

/* Modules in the working directory can be imported, as under `python3 -c`; the zygote itself must not look
 * there. */
static void add_working_directory(void)
{
	/* path is borrowed */
	PyObject *path = PySys_GetObject("path"), *here = PyUnicode_FromString("");
	if (!path || !here || PyList_Insert(path, 0, here) < 0)
		PyErr_Clear();
	Py_XDECREF(here);
}

void guest_rehearse(void)
{
	random_renew(support.reseed);
	rehearse();
}

void guest_settle(void)
{
	at_fork_settle();
	random_prepare();
	stdin_set(-1);
	add_working_directory();
}

void guest_run(void)
{
	struct wire_frame f;
	int r = 0;
	at_fork_begin();
	random_renew(support.reseed);
	stream_start();
	stdin_put(-1); /* the jail's own; sys.stdin over it is there already */
	files_forget_changes();
	wire_reader_init(&in, LIMIT_FRAME_BYTES);
	catch_wake();
	say_ready();
	PyGC_Enable();
	for (;;) {
		while ((r = wire_reader_next(&in, &f)) == 1)
			handle(&f);
		if (r < 0)
			_exit(1);
		receive();
	}
}
