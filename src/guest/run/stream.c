#include "guest/run/stream.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest/run/flush_calls.h"

enum { STREAM_BUFFER = 64 * 1024, STREAM_DELAY_NS = 8 * 1000 * 1000, BUSY_WAIT_NS = 50 * 1000 };

/*
 * Appending and flushing happen under the GIL, and in the timer's handler without it: whoever set
 * `busy` has the buffer. The handler may have interrupted just that one, so it never waits: it
 * leaves the flush to him (`flush_wanted`). The others wait for a handler that another thread is
 * in.
 */
struct stream {
	int fd;
	atomic_bool busy, flush_wanted;
	/* the timer came once in the middle of a line, and left it for the next time */
	bool half_seen;
	size_t len;
	char data[STREAM_BUFFER];
};

static struct stream streams[2] = { { .fd = STDOUT_FILENO }, { .fd = STDERR_FILENO } };
static timer_t timer;
static bool timer_made;
static atomic_bool timer_armed;
static unsigned holding_nothing; /* stream_hold_nothing(); under the GIL */

static int timer_signal(void)
{
	return SIGRTMAX - 1;
}

/*
 * Everything or nothing is asked of the kernel; a reader that is gone ends us by SIGPIPE's absence:
 * EPIPE, dropped.
 */
static void write_out(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);
		if (n < 0) {
			if (errno == EINTR || errno == EAGAIN)
				continue;
			return;
		}
		data += n;
		len -= (size_t)n;
	}
}

/* For those who did not interrupt anybody. */
static void take_stream(struct stream *s)
{
	while (atomic_exchange(&s->busy, true))
		nanosleep(&(struct timespec){ .tv_nsec = BUSY_WAIT_NS }, NULL);
}

/* With the buffer taken; gives it back. */
static void flush_taken(struct stream *s)
{
	size_t len = s->len;
	s->len = 0;
	s->half_seen = false;
	write_out(s->fd, s->data, len);
	atomic_store(&s->flush_wanted, false);
	atomic_store(&s->busy, false);
}

static void flush_stream(struct stream *s)
{
	take_stream(s);
	flush_taken(s);
}

/* From a handler of a signal that ends us. */
static void flush_if_free(struct stream *s)
{
	if (!atomic_exchange(&s->busy, true))
		flush_taken(s);
}

void stream_flush_all(void)
{
	int saved = errno;
	flush_stream(&streams[0]);
	flush_stream(&streams[1]);
	errno = saved;
}

/*
 * A fatal signal: what was printed is part of the outcome. SA_RESETHAND restored the default
 * action, which now happens.
 */
static void on_fatal(int sig)
{
	flush_if_free(&streams[0]);
	flush_if_free(&streams[1]);
	raise(sig);
}

static void arm_timer(void)
{
	if (!timer_made || atomic_exchange(&timer_armed, true))
		return;
	struct itimerspec in = { .it_value = { .tv_nsec = STREAM_DELAY_NS } };
	timer_settime(timer, 0, &in, NULL);
}

/*
 * print() writes a text and then its newline. Where the machine let the time pass between the two,
 * the line is shown whole a moment later.
 */
static bool is_half_a_line(struct stream *s)
{
	if (!s->len || s->data[s->len - 1] == '\n' || s->half_seen)
		return false;
	return s->half_seen = true;
}

/* The time of what is held back has come. */
static void show(struct stream *s)
{
	if (atomic_exchange(&s->busy, true)) {
		atomic_store(&s->flush_wanted, true);
	} else if (is_half_a_line(s)) {
		atomic_store(&s->busy, false);
		arm_timer();
	} else {
		flush_taken(s);
	}
}

void stream_hold_nothing(bool on)
{
	holding_nothing += on ? 1 : -1U;
	if (!on || !timer_made)
		return;
	stream_flush_all();
	timer_settime(timer, 0, &(struct itimerspec){ 0 }, NULL);
	atomic_store(&timer_armed, false);
}

static void on_timer(int sig)
{
	int saved = errno;
	(void)sig;
	atomic_store(&timer_armed, false);
	show(&streams[0]);
	show(&streams[1]);
	errno = saved;
}

/* Called with the GIL held. */
static void stream_write(struct stream *s, const char *data, size_t len)
{
	/* a fork of the guest's own: no timer there, so nothing is held back for long */
	if (!timer_made || holding_nothing) {
		flush_stream(s);
		write_out(s->fd, data, len);
		return;
	}

	take_stream(s);
	if (len > STREAM_BUFFER - s->len) {
		size_t held = s->len;
		s->len = 0;
		write_out(s->fd, s->data, held);
	}

	if (len > STREAM_BUFFER) {
		write_out(s->fd, data, len);
	} else {
		memcpy(s->data + s->len, data, len);
		s->len += len;
	}

	atomic_store(&s->busy, false);
	if (atomic_exchange(&s->flush_wanted, false))
		show(s);
	else if (s->len)
		arm_timer();
}

/* ---- the Python types ---------------------------------------------------- */

/* Instances carry their stream's index behind whatever the io base class holds. */
static Py_ssize_t text_base_size, binary_base_size;
static PyObject *text_type, *binary_type;
static PyObject *text_object[2], *binary_object[2];

static struct stream *stream_of(PyObject *self, Py_ssize_t base_size)
{
	unsigned char which;
	memcpy(&which, (char *)self + base_size, 1);
	return &streams[which & 1];
}

static PyObject *text_write(PyObject *self, PyObject *text)
{
	if (!PyUnicode_Check(text))
		return PyErr_Format(PyExc_TypeError, "write() argument must be str, not %.100s",
			Py_TYPE(text)->tp_name);
	struct stream *s = stream_of(self, text_base_size);
	Py_ssize_t n;
	const char *utf8;
	if (PyUnicode_IS_COMPACT_ASCII(text)) {
		stream_write(s, (const char *)PyUnicode_1BYTE_DATA(text),
			(size_t)PyUnicode_GET_LENGTH(text));
		return PyLong_FromSsize_t(PyUnicode_GET_LENGTH(text));
	}

	/*
	 * Not the cached UTF-8 of the object: that would stay in memory as long as the string does.
	 */
	PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
	if (!bytes)
		return NULL;
	utf8 = PyBytes_AS_STRING(bytes);
	n = PyBytes_GET_SIZE(bytes);
	stream_write(s, utf8, (size_t)n);
	Py_DECREF(bytes);
	return PyLong_FromSsize_t(PyUnicode_GET_LENGTH(text));
}

static PyObject *binary_write(PyObject *self, PyObject *data)
{
	Py_buffer view;
	if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
		return NULL;
	stream_write(stream_of(self, binary_base_size), view.buf, (size_t)view.len);
	Py_ssize_t n = view.len;
	PyBuffer_Release(&view);
	return PyLong_FromSsize_t(n);
}

static PyObject *text_flush(PyObject *self, PyObject *unused)
{
	(void)unused;
	flush_stream(stream_of(self, text_base_size));
	Py_RETURN_NONE;
}

static PyObject *binary_flush(PyObject *self, PyObject *unused)
{
	(void)unused;
	flush_stream(stream_of(self, binary_base_size));
	Py_RETURN_NONE;
}

static PyObject *text_fileno(PyObject *self, PyObject *unused)
{
	(void)unused;
	return PyLong_FromLong(stream_of(self, text_base_size)->fd);
}

static PyObject *binary_fileno(PyObject *self, PyObject *unused)
{
	(void)unused;
	return PyLong_FromLong(stream_of(self, binary_base_size)->fd);
}

static PyObject *return_true(PyObject *self, PyObject *unused)
{
	(void)self, (void)unused;
	Py_RETURN_TRUE;
}

static PyObject *return_false(PyObject *self, PyObject *unused)
{
	(void)self, (void)unused;
	Py_RETURN_FALSE;
}

/*
 * Ordinary programs call close() and reconfigure(): the stream stays open and unchanged, so that
 * the programs continue.
 */
static PyObject *text_close(PyObject *self, PyObject *unused)
{
	return text_flush(self, unused);
}

static PyObject *binary_close(PyObject *self, PyObject *unused)
{
	return binary_flush(self, unused);
}

static PyObject *text_reconfigure(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)args, (void)kwargs;
	return text_flush(self, NULL);
}

static PyObject *get_encoding(PyObject *self, void *unused)
{
	(void)self, (void)unused;
	return PyUnicode_FromString("utf-8");
}

static PyObject *get_errors(PyObject *self, void *unused)
{
	(void)self, (void)unused;
	return PyUnicode_FromString("backslashreplace");
}

static PyObject *get_mode(PyObject *self, void *unused)
{
	(void)self, (void)unused;
	return PyUnicode_FromString("w");
}

static PyObject *get_closed(PyObject *self, void *unused)
{
	(void)self, (void)unused;
	Py_RETURN_FALSE;
}

static PyObject *get_text_name(PyObject *self, void *unused)
{
	(void)unused;
	return PyUnicode_FromString(
		stream_of(self, text_base_size)->fd == STDOUT_FILENO ? "<stdout>" : "<stderr>");
}

static PyObject *get_buffer(PyObject *self, void *unused)
{
	(void)unused;
	PyObject *b = binary_object[stream_of(self, text_base_size) - streams];
	Py_INCREF(b);
	return b;
}

static PyMethodDef text_methods[] = { { "write", text_write, METH_O, NULL },
	{ "flush", text_flush, METH_NOARGS, NULL }, { "fileno", text_fileno, METH_NOARGS, NULL },
	{ "isatty", return_false, METH_NOARGS, NULL },
	{ "readable", return_false, METH_NOARGS, NULL },
	{ "seekable", return_false, METH_NOARGS, NULL },
	{ "writable", return_true, METH_NOARGS, NULL }, { "close", text_close, METH_NOARGS, NULL },
	{ "reconfigure", (PyCFunction)(void (*)(void))text_reconfigure,
		METH_VARARGS | METH_KEYWORDS, NULL },
	{ 0 } };
static PyGetSetDef text_attributes[] = { { "encoding", get_encoding, NULL, NULL, NULL },
	{ "errors", get_errors, NULL, NULL, NULL }, { "mode", get_mode, NULL, NULL, NULL },
	{ "name", get_text_name, NULL, NULL, NULL }, { "closed", get_closed, NULL, NULL, NULL },
	{ "line_buffering", get_closed, NULL, NULL, NULL },
	{ "write_through", get_closed, NULL, NULL, NULL },
	{ "buffer", get_buffer, NULL, NULL, NULL }, { 0 } };
static PyMethodDef binary_methods[] = { { "write", binary_write, METH_O, NULL },
	{ "flush", binary_flush, METH_NOARGS, NULL },
	{ "fileno", binary_fileno, METH_NOARGS, NULL },
	{ "isatty", return_false, METH_NOARGS, NULL },
	{ "readable", return_false, METH_NOARGS, NULL },
	{ "seekable", return_false, METH_NOARGS, NULL },
	{ "writable", return_true, METH_NOARGS, NULL },
	{ "close", binary_close, METH_NOARGS, NULL }, { 0 } };
static PyGetSetDef binary_attributes[] = { { "mode", get_mode, NULL, NULL, NULL },
	{ "closed", get_closed, NULL, NULL, NULL }, { 0 } };

/*
 * A class over the C base of io's abstract class, and registered with that, so that isinstance()
 * and the inherited methods are what programs expect. (A class in C over the abstract one itself is
 * not allowed from Python 3.14 on.)
 */
static PyObject *make_type(const char *name, const char *base_name, PyMethodDef *methods,
	PyGetSetDef *attributes, Py_ssize_t *ret_base_size)
{
	PyObject *io = PyImport_ImportModule("io");
	PyObject *abstract = io ? PyObject_GetAttrString(io, base_name) : NULL;
	PyObject *base = abstract ? PyObject_GetAttrString(abstract, "__base__") : NULL;
	PyObject *type = NULL, *registered = NULL;

	if (base) {
		*ret_base_size = ((PyTypeObject *)base)->tp_basicsize;
		PyType_Slot slots[] = { { Py_tp_methods, methods }, { Py_tp_getset, attributes },
			{ 0, NULL } };
		PyType_Spec spec = { .name = name,
			.basicsize = (int)(*ret_base_size + (Py_ssize_t)sizeof(void *)),
			.flags = Py_TPFLAGS_DEFAULT,
			.slots = slots };
		type = PyType_FromSpecWithBases(&spec, base);
	}

	if (type)
		registered = PyObject_CallMethod(abstract, "register", "O", type);
	if (!registered)
		Py_CLEAR(type);
	Py_XDECREF(registered);
	Py_XDECREF(base);
	Py_XDECREF(abstract);
	Py_XDECREF(io);
	return type;
}

static PyObject *make_object(PyObject *type, Py_ssize_t base_size, unsigned char which)
{
	PyObject *o = PyObject_CallNoArgs(type);
	if (o)
		memcpy((char *)o + base_size, &which, 1);
	return o;
}

static void child_of_fork(void)
{
	timer_made = false; /* timers are not inherited */
	atomic_store(&timer_armed, false);
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
		/* a handler that another thread was in stayed with the parent */
		atomic_store(&streams[i].busy, false);
}

int stream_prepare(void)
{
	text_type = make_type("glovebox.TextStream", "TextIOBase", text_methods, text_attributes,
		&text_base_size);
	binary_type = make_type("glovebox.BinaryStream", "BufferedIOBase", binary_methods,
		binary_attributes, &binary_base_size);
	if (!text_type || !binary_type)
		return -1;
	for (unsigned char i = 0; i < 2; i++) {
		text_object[i] = make_object(text_type, text_base_size, i);
		binary_object[i] = make_object(binary_type, binary_base_size, i);
		if (!text_object[i] || !binary_object[i])
			return -1;
	}

	if (flush_calls_wrap() < 0)
		return -1;
	if (PySys_SetObject("stdout", text_object[0]) < 0 ||
		PySys_SetObject("stderr", text_object[1]) < 0 ||
		PySys_SetObject("__stdout__", text_object[0]) < 0 ||
		PySys_SetObject("__stderr__", text_object[1]) < 0)
		return -1;
	pthread_atfork(stream_flush_all, NULL, child_of_fork);
	return 0;
}

static void catch_fatal(void)
{
	static char stack[64 * 1024]; /* a stack overflow leaves none of its own */
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction act = { .sa_handler = on_fatal,
		.sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER };
	sigaltstack(&alternate, NULL);
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		sigaction(fatal[i], &act, NULL);
}

static void make_timer(void)
{
	struct sigaction act = { .sa_handler = on_timer, .sa_flags = SA_RESTART | SA_ONSTACK };
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = timer_signal() };
	ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	sigaction(timer_signal(), &act, NULL);
	timer_made = timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0;
}

void stream_start(void)
{
	make_timer();
	catch_fatal();
}
