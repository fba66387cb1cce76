#include "guest/run/memory_error.h"

#include <malloc.h>

#include "guest/run/memory.h"

enum { EXCEPTIONS_MAX = 256 }; /* a chain may be a circle, or as long as memory allows */

/*
 * `exception` and what it leads to by __cause__, __context__ and a group's members: new references.
 */
struct family {
	PyObject *at[EXCEPTIONS_MAX];
	size_t n;
};

/* Takes over the reference, which may be NULL. */
static void add(struct family *f, PyObject *exception)
{
	bool known = !exception || !PyExceptionInstance_Check(exception) || f->n == EXCEPTIONS_MAX;
	for (size_t i = 0; !known && i < f->n; i++)
		known = f->at[i] == exception;
	if (known)
		Py_XDECREF(exception);
	else
		f->at[f->n++] = exception;
}

static void add_members(struct family *f, PyObject *exception)
{
#if PY_VERSION_HEX >= 0x030b0000
	if (!PyObject_TypeCheck(exception, (PyTypeObject *)PyExc_BaseExceptionGroup))
		return;
	/* borrowed: a class may hide the attribute */
	PyObject *members = ((PyBaseExceptionGroupObject *)exception)->excs;
	for (Py_ssize_t i = 0; members && PyTuple_Check(members) && i < PyTuple_GET_SIZE(members);
		i++)
		add(f, Py_NewRef(PyTuple_GET_ITEM(members, i)));
#else
	(void)f, (void)exception;
#endif
}

static void family_init(struct family *f, PyObject *exception)
{
	f->n = 0;
	add(f, Py_NewRef(exception));
	for (size_t i = 0; i < f->n; i++) {
		add(f, PyException_GetCause(f->at[i]));
		add(f, PyException_GetContext(f->at[i]));
		add_members(f, f->at[i]);
	}
}

static void family_finish(struct family *f)
{
	while (f->n)
		Py_DECREF(f->at[--f->n]);
}

bool memory_error_in(PyObject *exception)
{
	struct family f;
	bool due = false;
	family_init(&f, exception);
	for (size_t i = 0; i < f.n; i++)
		due |= PyErr_GivenExceptionMatches(f.at[i], PyExc_MemoryError) == 1;
	family_finish(&f);
	return due;
}

/*
 * A generator that caught the error and yielded since is not done: clearing its frame would close
 * it. It is then elsewhere than where the traceback says. Other frames that still run refuse to be
 * cleared.
 */
static void clear_frame(const PyTracebackObject *t)
{
	PyCodeObject *code = PyFrame_GetCode(t->tb_frame);
	bool suspends = code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
	Py_DECREF(code);
	if (suspends && PyFrame_GetLasti(t->tb_frame) != t->tb_lasti)
		return;
	PyObject *r = PyObject_CallMethod((PyObject *)t->tb_frame, "clear", NULL);
	Py_XDECREF(r);
	PyErr_Clear();
}

static void clear_frames(PyObject *exception)
{
	PyObject *first = PyException_GetTraceback(exception);
	PyTracebackObject *t = first && PyTraceBack_Check(first) ? (PyTracebackObject *)first
								 : NULL;
	for (; t; t = t->tb_next)
		clear_frame(t);
	Py_XDECREF(first);
}

void memory_error_release(PyObject *exception)
{
	struct family f;
	family_init(&f, exception);
	for (size_t i = 0; i < f.n; i++)
		clear_frames(f.at[i]);
	family_finish(&f);

	/* What is left may hang in cycles: a frame that keeps the error in a variable is one. */
	if (!memory_has_room_for_copy())
		PyGC_Collect();
	malloc_trim(0);
}
