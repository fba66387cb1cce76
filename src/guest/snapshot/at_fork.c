#include "guest/snapshot/at_fork.h"

#include "guest/run/python.h"

#include <stdbool.h>

static PyObject *kept; /* the keyword arguments of every call, in order */
static PyObject *original;
static bool in_guest;

static void run_one(PyObject *arguments, const char *when)
{
	PyObject *hook = PyDict_GetItemString(arguments, when); /* borrowed */
	PyObject *r = hook ? PyObject_CallNoArgs(hook) : NULL;
	if (hook && !r)
		PyErr_WriteUnraisable(hook); /* as Python does: the fork goes on */
	Py_XDECREF(r);
}

/*
 * In the order of registration, except before the fork: then the last one registered comes first.
 */
static PyObject *run(const char *when, bool last_first)
{
	Py_ssize_t n = in_guest ? PyList_GET_SIZE(kept) : 0;
	for (Py_ssize_t i = 0; i < n; i++)
		run_one(PyList_GET_ITEM(kept, last_first ? n - 1 - i : i), when);
	Py_RETURN_NONE;
}

static PyObject *before(PyObject *self, PyObject *unused)
{
	(void)self, (void)unused;
	return run("before", true);
}

static PyObject *after_in_parent(PyObject *self, PyObject *unused)
{
	(void)self, (void)unused;
	return run("after_in_parent", false);
}

static PyObject *after_in_child(PyObject *self, PyObject *unused)
{
	(void)self, (void)unused;
	return run("after_in_child", false);
}

static PyObject *keep(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)self, (void)args;
	if (!kwargs)
		return PyErr_Format(PyExc_TypeError, "At least one argument is required.");
	if (PyList_Append(kept, kwargs) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef hooks[] = { { "before", before, METH_NOARGS, NULL },
	{ "after_in_parent", after_in_parent, METH_NOARGS, NULL },
	{ "after_in_child", after_in_child, METH_NOARGS, NULL } };
static PyMethodDef keep_def = { "register_at_fork", (PyCFunction)(void (*)(void))keep,
	METH_VARARGS | METH_KEYWORDS, NULL };

/* Both names under which programs find it. */
static int set_register(PyObject *function)
{
	static const char *const modules[] = { "os", "posix" };
	for (int i = 0; i < 2; i++) {
		PyObject *m = PyImport_ImportModule(modules[i]);
		int r = m ? PyObject_SetAttrString(m, "register_at_fork", function) : -1;
		Py_XDECREF(m);
		if (r < 0)
			return -1;
	}
	return 0;
}

static int register_ours(void)
{
	PyObject *none = PyTuple_New(0), *ours = PyDict_New(), *r = NULL;
	bool made = none && ours;
	for (int i = 0; made && i < 3; i++) {
		PyObject *function = PyCFunction_New(&hooks[i], NULL);
		made = function && PyDict_SetItemString(ours, hooks[i].ml_name, function) == 0;
		Py_XDECREF(function);
	}
	if (made)
		r = PyObject_Call(original, none, ours);
	Py_XDECREF(none);
	Py_XDECREF(ours);
	Py_XDECREF(r);
	return r ? 0 : -1;
}

int at_fork_prepare(void)
{
	PyObject *os = PyImport_ImportModule("os"), *keeper = PyCFunction_New(&keep_def, NULL);
	kept = PyList_New(0);
	original = os ? PyObject_GetAttrString(os, "register_at_fork") : NULL;
	int r = kept && keeper && original ? 0 : -1;
	if (r == 0 && (r = register_ours()) == 0)
		r = set_register(keeper);
	Py_XDECREF(os);
	Py_XDECREF(keeper);
	return r;
}

void at_fork_settle(void)
{
	if (set_register(original) < 0)
		PyErr_Clear();
}

void at_fork_begin(void)
{
	in_guest = true;
}
