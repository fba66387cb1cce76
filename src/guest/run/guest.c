#include "guest/run/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/limits.h"
#include "guest/snapshot/at_fork.h"
#include "guest/run/file_changes.h"
#include "guest/run/memory.h"
#include "guest/run/package_requests.h"
#include "guest/run/paint.h"
#include "guest/snapshot/guest_snapshot.h"
#include "guest/policy/policy.h"
#include "guest/run/random.h"
#include "guest/run/cell_timing.h"
#include "guest/snapshot/file_snapshot.h"
#include "guest/run/stream.h"
#include "guest/run/tool_calls.h"
#include "wire/wire.h"

enum { GUEST_READ = 64 * 1024, GUEST_OUT_KEEP = 1 << 20 };

static struct support support;
static struct wire_reader in;
static struct buffer out;
static bool muted;   /* a cell is replayed */
static bool is_fork; /* a copy made by the cell's own os.fork() */
static bool reading;  /* the main thread waits in receive(): what comes is its own */
static PyObject *io_open;

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

/* ---- SETUP ------------------------------------------------------------------ */

static int set_env(const struct wire_field *f)
{
	const char *equals = memchr(f->data, '=', f->len);
	PyObject *os = PyImport_ImportModule("os"),
		 *variables = os ? PyObject_GetAttrString(os, "environ") : NULL;
	PyObject *name = NULL, *value = NULL;
	int r = -1;
	if (equals && variables) {
		name = PyUnicode_DecodeUTF8(f->data, equals - f->data, "surrogateescape");
		value = PyUnicode_DecodeUTF8(equals + 1, f->data + f->len - equals - 1, "surrogateescape");
		r = name && value ? PyObject_SetItem(variables, name, value) : -1;
	}
	Py_XDECREF(name);
	Py_XDECREF(value);
	Py_XDECREF(variables);
	Py_XDECREF(os);
	return r;
}

static void reseed(uint64_t seed)
{
	PyObject *number = PyLong_FromUnsignedLongLong(seed);
	PyObject *r = number ? PyObject_CallOneArg(support.reseed, number) : NULL;
	Py_XDECREF(number);
	Py_XDECREF(r);
}

static void set_network(const struct wire_field *f)
{
	PyObject *mode = PyUnicode_DecodeUTF8(f->data, (Py_ssize_t)f->len, "replace");
	PyObject *r = mode ? PyObject_CallOneArg(support.set_network, mode) : NULL;
	Py_XDECREF(mode);
	Py_XDECREF(r);
}

static void preload(PyObject *names)
{
	PyObject *problems = PyObject_CallOneArg(support.preload, names);
	if (problems && PyList_Check(problems)) {
		for (Py_ssize_t i = 0; i < PyList_GET_SIZE(problems); i++)
			PySys_FormatStderr("preload %U\n", PyList_GET_ITEM(problems, i));
	}
	Py_XDECREF(problems);
}

/* The modules of a template: their first calls are made, and what is there is out of sight of every collection in its copies. */
static void become_template(void)
{
	PyObject *problems = PyObject_CallNoArgs(support.warm_up);
	PyErr_Clear();
	cell_rehearse(CELL_ADAPTED);
	PyObject *gc = PyImport_ImportModule("gc");
	PyObject *collected = gc ? PyObject_CallMethod(gc, "collect", NULL) : NULL;
	PyObject *frozen = collected ? PyObject_CallMethod(gc, "freeze", NULL) : NULL;
	Py_XDECREF(frozen);
	Py_XDECREF(collected);
	Py_XDECREF(gc);
	Py_XDECREF(problems);
	PyErr_Clear();
}

static void catch_cell_signal(void);

/* A session with a screen: figures become windows, and cells may be left in a main loop while others run. */
static void use_display(void)
{
	PyObject *r = PyObject_CallNoArgs(support.use_display);
	Py_XDECREF(r);
	PyErr_Clear();
	catch_cell_signal();
}

/* What a process can be told to keep to by itself: the only walls on machines without control groups, the same numbers elsewhere. */
static bool limit_itself(const struct wire_field *f)
{
	static const struct {
		uint8_t tag;
		int resource;
	} rows[] = { { WIRE_PROCESSES, RLIMIT_NPROC }, { WIRE_FILE_BYTES, RLIMIT_FSIZE }, { WIRE_OPEN_FILES, RLIMIT_NOFILE },
		{ WIRE_CPU_SECONDS, RLIMIT_CPU } };
	uint64_t n;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rlimit now;
		if (f->tag != rows[i].tag || wire_field_u64(f, &n) < 0)
			continue;
		getrlimit((__rlimit_resource_t)rows[i].resource, &now);
		if (n > now.rlim_max)
			n = now.rlim_max;
		setrlimit((__rlimit_resource_t)rows[i].resource, &(struct rlimit){ .rlim_cur = n, .rlim_max = n });
		return true;
	}
	return false;
}

static void setup(const struct wire_frame *f)
{
	struct wire_field field;
	size_t at = 0;
	uint64_t n;
	bool template = false;
	steps_begin();
	PyObject *names = PyList_New(0);
	while (wire_field_next(f, &at, &field) == 1) {
		if (field.tag == WIRE_ENV) {
			set_env(&field);
		} else if (field.tag == WIRE_SEED && wire_field_u64(&field, &n) == 0) {
			reseed(n);
		} else if (field.tag == WIRE_MEMORY && wire_field_u64(&field, &n) == 0) {
			memory_limit(n);
		} else if (limit_itself(&field)) {
			continue;
		} else if (field.tag == WIRE_SCREEN) {
			use_display(); /* comes behind the environment */
		} else if (field.tag == WIRE_NETWORK) {
			set_network(&field);
		} else if (field.tag == WIRE_PACKAGES) {
			packages_add(field.data, field.len);
		} else if (field.tag == WIRE_POLICY) {
			policy_rule(field.data, field.len);
		} else if (field.tag == WIRE_KEEP_FILES && wire_field_u64(&field, &n) == 0) {
			file_snapshot_allow(n);
		} else if (field.tag == WIRE_WIPE) {
			file_snapshot_wipe();
			files_forget_changes();
		} else if (field.tag == WIRE_TEMPLATE) {
			template = true;
		} else if (field.tag == WIRE_PRELOAD && names) {
			PyObject *name = PyUnicode_DecodeUTF8(field.data, (Py_ssize_t)field.len, "replace");
			if (name)
				PyList_Append(names, name);
			Py_XDECREF(name);
		}
		PyErr_Clear();
	}
	if (names && PyList_GET_SIZE(names))
		preload(names);
	PyErr_Clear();
	if (template)
		become_template();
	Py_XDECREF(names);
	steps_end(STEP_SETUP); /* told with the first cell */
	if (policy_apply() < 0)
		guest_fail(GUEST_CONTROL_FD, "applying the executor profile", EINVAL); /* never without it */
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

/* Puts `fd` (or /dev/null) on descriptor 0. */
static void put_on_stdin(int fd)
{
	int source = fd >= 0 ? fd : open("/dev/null", O_RDONLY | O_CLOEXEC);
	dup2(source, STDIN_FILENO);
	fd_close(source);
}

/* The same, with a fresh sys.stdin over it. */
static void set_stdin(int fd)
{
	put_on_stdin(fd);
	policy_trust(true);
	PyObject *file =
		PyObject_CallFunction(io_open, "isisssi", 0, "r", -1, "utf-8", "replace", (char *)NULL, 0);
	if (!file || PySys_SetObject("stdin", file) < 0)
		PyErr_Clear();
	policy_trust(false);
	Py_XDECREF(file);
}

static bool stdin_closed(void)
{
	PyObject *file = PySys_GetObject("stdin"); /* borrowed */
	PyObject *closed = file ? PyObject_GetAttrString(file, "closed") : NULL;
	bool yes = closed == Py_True;
	PyErr_Clear();
	Py_XDECREF(closed);
	return yes;
}

static int stdin_from(const char *text, size_t len)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 && (fd_write_full(fd, text, len) < 0 || lseek(fd, 0, SEEK_SET) < 0)) {
		fd_close(fd);
		return -1;
	}
	return fd;
}

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
	bool has_stdin = false, final = false, typed = false, paint = false, unwatched = false;
	int exit_code = 0;
	uint32_t serial = f->serial; /* a cell inside this one reads into the buffer that the frame lies in */
	while (wire_field_next(f, &at, &field) == 1) {
		if (field.tag == WIRE_CODE && !code && (code = malloc(field.len + 1))) {
			memcpy(code, field.data, field.len);
			code[len = field.len] = '\0';
		} else if (field.tag == WIRE_STDIN) {
			set_stdin(stdin_from(field.data, field.len));
			has_stdin = true;
		} else if (field.tag == WIRE_RESCAN) {
			files_forget_changes();
		} else if (field.tag == WIRE_FINAL) {
			final = true;
		} else if (field.tag == WIRE_VARIABLES) {
			cell_set_variables(field.data, field.len);
		} else if (field.tag == WIRE_TYPED) {
			typed = true;
		} else if (field.tag == WIRE_PAINT) {
			paint = !muted;
		} else if (field.tag == WIRE_UNWATCHED) {
			unwatched = true;
		}
	}
	cell_type_result(typed);
	cell_paint(paint);
	cell_set_unwatched(unwatched);
	if (!has_stdin && stdin_closed()) /* exit() of the site module closes it */
		set_stdin(-1);
	depth++;
	uint64_t began = clock_now_ns();
	if (code)
		exit_code = cell_run(code, len, serial, final, &out, muted ? say_nothing : send_frames);
	depth--;
	free(code);
	if (is_fork)
		_exit(exit_code); /* a forked copy that came to the end of the cell is done */
	if (muted)
		say_nothing(&out);
	else
		send_frames(&out);
	if (has_stdin)
		set_stdin(-1);
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

static void catch_cell_signal(void)
{
	PyObject *signal = PyImport_ImportModule("signal"), *handler = PyCFunction_New(&cell_signal_def, NULL);
	PyObject *r = signal && handler ? PyObject_CallMethod(signal, "signal", "iO", WIRE_CELL_SIGNAL, handler) : NULL;
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
	stdin_closed();
	memory_reset_peak();
	memory_weigh();
}

static void handle(const struct wire_frame *f)
{
	switch (f->type) {
	case WIRE_SETUP:
		setup(f);
		break;
	case WIRE_EXECUTE:
		execute(f);
		break;
	case WIRE_CHECK:
		check(f);
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
	else if (recv(GUEST_CONTROL_FD, head, WIRE_HEADER, MSG_PEEK | MSG_DONTWAIT) < WIRE_HEADER || head[4] != WIRE_TOOL_RESULT)
		return 0;
	return WIRE_HEADER + (head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24) - have;
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
	PyObject *io = PyImport_ImportModule("io");
	io_open = io ? PyObject_GetAttrString(io, "open") : NULL;
	Py_XDECREF(io);
	if (!io_open || at_fork_prepare() < 0)
		return -1;
	pthread_atfork(NULL, NULL, child_of_fork);
	guest_snapshot_prepare(&(struct guest_snapshot_host){ .support = &support, .send = send_with, .forget_input = forget_input });
	return stream_prepare() < 0 || cell_prepare(s) < 0 || tools_prepare() < 0 || packages_prepare() < 0 ? -1 : 0;
}

void guest_fail(int control, const char *step, int err)
{
	struct buffer b = BUFFER_INIT(4096);
	size_t start;
	char text[256];
	snprintf(text, sizeof(text), "%s%s%s", step, err ? ": " : "", err ? strerror(err < 0 ? -err : err) : "");
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
	PyObject *path = PySys_GetObject("path"), *here = PyUnicode_FromString(""); /* path is borrowed */
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
	set_stdin(-1);
	add_working_directory();
}

void guest_run(void)
{
	struct wire_frame f;
	int r = 0;
	at_fork_begin();
	random_renew(support.reseed);
	stream_start();
	put_on_stdin(-1); /* the jail's own; sys.stdin over it is there already */
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
