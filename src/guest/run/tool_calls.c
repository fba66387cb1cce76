#include "guest/run/tool_calls.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "guest/policy/policy.h"
#include "guest/run/guest.h"
#include "guest/run/stream.h"
#include "wire/wire.h"

/*
 * How long a thread that is not the main one waits before it looks whether its cell is still there;
 * answers wake it at once.
 */
enum { LOOK_MS = 50, NAP_US = 1000 };

struct slot {
	struct slot *next;
	uint64_t number;
	bool for_loop; /* an event loop wants it: _tool_next() hands it out */
	bool taken;    /* a thread waits for it by number */
	bool done;
	PyObject *outcome; /* (True, JSON text) or (False, class, text); NULL until done */
};

/* A thread that sleeps while another one reads. */
struct sleeper {
	struct sleeper *next;
	PyThread_type_lock lock; /* held; released to wake it */
	bool woken;
};

static struct slot *slots;
static struct sleeper *sleepers;
static bool has_reader;
static uint32_t cell; /* 0: none runs */
static uint64_t last_number;
static unsigned long main_thread;
static PyObject *defined; /* name: function, of the support code */

/* ---- slots -------------------------------------------------------------------- */

static struct slot *find_slot(uint64_t number)
{
	struct slot *s = slots;
	while (s && s->number != number)
		s = s->next;
	return s;
}

static void remove_slot(struct slot *s)
{
	struct slot **at = &slots;
	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
	Py_XDECREF(s->outcome);
	free(s);
}

static void wake_sleepers(void)
{
	for (struct sleeper *s = sleepers; s; s = s->next) {
		if (!s->woken)
			PyThread_release_lock(s->lock);
		s->woken = true;
	}
}

static void finish_slot(struct slot *s, PyObject *outcome)
{
	if (!outcome)
		PyErr_Clear();
	s->outcome = outcome;
	s->done = true;
}

/* ---- frames ------------------------------------------------------------------- */

void tools_take_result(const struct wire_frame *f)
{
	struct wire_field field, json = { 0 }, type = { 0 }, text = { 0 };
	size_t at = 0;
	uint64_t number = 0;

	while (wire_field_next(f, &at, &field) == 1) {
		if (field.tag == WIRE_CALL)
			wire_field_u64(&field, &number);
		else if (field.tag == WIRE_JSON)
			json = field;
		else if (field.tag == WIRE_ERROR_TYPE)
			type = field;
		else if (field.tag == WIRE_TEXT)
			text = field;
	}

	struct slot *s = find_slot(number);
	if (!s || s->done)
		return; /* nobody waits any more */
	if (type.data)
		finish_slot(s, Py_BuildValue("Os#s#", Py_False, type.data, (Py_ssize_t)type.len,
				       text.data ? text.data : "", (Py_ssize_t)text.len));
	else
		finish_slot(s, Py_BuildValue("Os#", Py_True, json.data ? json.data : "null",
				       (Py_ssize_t)(json.data ? json.len : 4)));
	wake_sleepers();
}

static bool send_call(uint64_t number, const char *name, const char *arguments, size_t len)
{
	struct buffer b = BUFFER_INIT(0);
	size_t start;
	int r = wire_begin(&b, WIRE_TOOL_CALL, cell, &start);

	if (r == 0)
		r = wire_put_u64(&b, WIRE_CALL, number);
	if (r == 0)
		r = wire_put(&b, WIRE_TEXT, name, strlen(name));
	if (r == 0)
		r = wire_put(&b, WIRE_JSON, arguments, len);
	bool sent = false;
	if (r == 0) {
		wire_end(&b, start);
		sent = guest_send_now(&b);
	}

	buffer_finish(&b);
	return sent;
}

static void send_cancel(uint64_t number)
{
	struct buffer b = BUFFER_INIT(256);
	size_t start;
	if (cell && wire_begin(&b, WIRE_TOOL_CANCEL, cell, &start) == 0 &&
		wire_put_u64(&b, WIRE_CALL, number) == 0) {
		wire_end(&b, start);
		guest_send_now(&b);
	}
	buffer_finish(&b);
}

/* ---- waiting ------------------------------------------------------------------ */

static bool is_main(void)
{
	return PyThread_get_thread_ident() == main_thread;
}

static void read_once(void)
{
	struct pollfd p = { .fd = GUEST_CONTROL_FD, .events = POLLIN };
	int n, timeout = is_main() ? -1 : LOOK_MS;

	has_reader = true;
	Py_BEGIN_ALLOW_THREADS;
	n = poll(&p, 1, timeout);
	Py_END_ALLOW_THREADS;
	has_reader = false;
	/*
	 * Between cells the socket is the main loop's: it would wait for ever for what we took
	 * away.
	 */
	if (n > 0 && cell && !guest_take_result()) {
		Py_BEGIN_ALLOW_THREADS;
		usleep(NAP_US); /* it is the main thread's, which was told by a signal */
		Py_END_ALLOW_THREADS;
	}
}

static int sleep_once(void)
{
	struct sleeper me = { .next = sleepers, .lock = PyThread_allocate_lock() };
	PY_TIMEOUT_T longest = is_main() ? -1 : LOOK_MS * 1000;
	if (!me.lock) {
		PyErr_NoMemory();
		return -1;
	}

	PyThread_acquire_lock(me.lock, NOWAIT_LOCK);
	sleepers = &me;
	Py_BEGIN_ALLOW_THREADS;
	PyThread_acquire_lock_timed(me.lock, longest, 1);
	Py_END_ALLOW_THREADS;
	struct sleeper **at = &sleepers;
	while (*at != &me)
		at = &(*at)->next;
	*at = me.next;
	PyThread_free_lock(me.lock);
	return 0;
}

/* The first answer that an event loop waits for; *ret_any: whether it waits for one at all. */
static struct slot *next_for_loop(bool *ret_any)
{
	*ret_any = false;
	for (struct slot *s = slots; s; s = s->next) {
		if (!s->for_loop)
			continue;
		*ret_any = true;
		if (s->done)
			return s;
	}
	return NULL;
}

/*
 * Waits until the slot (NULL: any that an event loop wants) is done. NULL with an error when
 * interrupted, and without one when there is nothing to wait for.
 */
static struct slot *wait_for(struct slot *wanted)
{
	for (;;) {
		bool any = true;
		struct slot *done = wanted ? (wanted->done ? wanted : NULL) : next_for_loop(&any);
		if (done || !any)
			return done;
		if (!has_reader)
			read_once();
		else if (sleep_once() < 0)
			return NULL;
		if (PyErr_CheckSignals() < 0)
			return NULL;
	}
}

/* ---- what the support code calls ------------------------------------------------ */

/* _tool_send(name, json, for_loop) → number */
static PyObject *tool_send(PyObject *self, PyObject *args)
{
	const char *name, *json;
	Py_ssize_t len;
	int for_loop;

	(void)self;
	if (!PyArg_ParseTuple(args, "ss#p", &name, &json, &len, &for_loop))
		return NULL;
	if (!cell) {
		PyErr_SetString(PyExc_RuntimeError, "tools can only be called while a cell runs");
		return NULL;
	}

	struct slot *s = calloc(1, sizeof(*s));
	if (!s)
		return PyErr_NoMemory();
	/* output that was printed before the call reaches the client before the call */
	stream_flush_all();
	*s = (struct slot){ .next = slots, .number = ++last_number, .for_loop = for_loop };
	slots = s;
	if (!send_call(s->number, name, json, (size_t)len)) {
		remove_slot(s);
		PyErr_SetString(PyExc_RuntimeError,
			"tools cannot be called from a process that was forked");
		return NULL;
	}

	return PyLong_FromUnsignedLongLong(s->number);
}

/* _tool_wait(number) → outcome. Interrupted, the call is given up. */
static PyObject *tool_wait(PyObject *self, PyObject *number)
{
	(void)self;
	uint64_t n = PyLong_AsUnsignedLongLong(number);
	struct slot *s = PyErr_Occurred() ? NULL : find_slot(n);
	if (!s || s->taken) {
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_RuntimeError, "there is no such call");
		return NULL;
	}

	s->taken = true;
	struct slot *done = wait_for(s);
	PyObject *outcome = done && done->outcome ? Py_NewRef(done->outcome) : NULL;
	if (!outcome && !PyErr_Occurred())
		PyErr_NoMemory();
	if (!done)
		send_cancel(n);
	remove_slot(s);
	wake_sleepers(); /* one of them may have to read now */
	return outcome;
}

/*
 * _tool_next() → (number, outcome) of the next call that an event loop waits for, or None when it
 * waits for none
 */
static PyObject *tool_next(PyObject *self, PyObject *unused)
{
	(void)self, (void)unused;
	struct slot *s = wait_for(NULL);
	if (!s) {
		if (PyErr_Occurred())
			return NULL;
		Py_RETURN_NONE;
	}
	PyObject *both = Py_BuildValue(
		"KO", (unsigned long long)s->number, s->outcome ? s->outcome : Py_None);
	remove_slot(s);
	wake_sleepers();
	return both;
}

/* _tool_drop(number): nobody waits for it any more */
static PyObject *tool_drop(PyObject *self, PyObject *number)
{
	(void)self;
	uint64_t n = PyLong_AsUnsignedLongLong(number);
	struct slot *s = PyErr_Occurred() ? NULL : find_slot(n);
	PyErr_Clear();
	if (s && !s->taken) {
		if (!s->done)
			send_cancel(n);
		remove_slot(s);
		wake_sleepers();
	}
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = { { "_tool_send", tool_send, METH_VARARGS, NULL },
	{ "_tool_wait", tool_wait, METH_O, NULL }, { "_tool_next", tool_next, METH_NOARGS, NULL },
	{ "_tool_drop", tool_drop, METH_O, NULL } };

int tools_prepare(void)
{
	PyObject *module = PyImport_ImportModule("_glovebox");
	int r = module ? 0 : -1;
	for (size_t i = 0; r == 0 && i < sizeof(methods) / sizeof(methods[0]); i++) {
		PyObject *function = PyCFunction_New(&methods[i], NULL);
		r = function ? PyObject_SetAttrString(module, methods[i].ml_name, function) : -1;
		Py_XDECREF(function);
	}
	defined = r == 0 ? PyObject_GetAttrString(module, "_defined") : NULL;
	Py_XDECREF(module);
	return defined ? r : -1;
}

bool tools_has(PyObject *name)
{
	return PyDict_Contains(defined, name) == 1;
}

int tools_put_into(PyObject *namespace)
{
	return PyDict_Update(namespace, defined);
}

/* ---- cells ---------------------------------------------------------------------- */

void tools_define(const struct wire_frame *f, PyObject *define)
{
	struct wire_field field;
	size_t at = 0;
	while (wire_field_next(f, &at, &field) == 1)
		if (field.tag == WIRE_JSON)
			tools_give(field.data, field.len, define);
}

void tools_give(const char *json, size_t len, PyObject *function)
{
	PyObject *main = PyImport_AddModule("__main__"); /* borrowed */
	policy_trust(true); /* it makes functions, and their client is no part of the profile */
	PyObject *r = main ? PyObject_CallFunction(
				     function, "s#O", json, (Py_ssize_t)len, PyModule_GetDict(main))
			   : NULL;
	policy_trust(false);
	if (!r)
		PyErr_WriteUnraisable(function);
	PyErr_Clear();
	Py_XDECREF(r);
}

void tools_begin_cell(uint32_t serial)
{
	cell = serial;
	main_thread = PyThread_get_thread_ident();
}

void tools_end_cell(void)
{
	cell = 0;
	for (struct slot *s = slots; s; s = s->next)
		if (!s->done)
			finish_slot(s, Py_BuildValue("Oss", Py_False, "ToolCancelled",
					       "the cell ended before the answer came"));
	wake_sleepers();
}
