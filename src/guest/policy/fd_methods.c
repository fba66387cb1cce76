/*
 * Functions of libraries that take a descriptor or a signal by its number: for cells' sake they are
 * looked at in the libraries themselves.
 *
 * Whatever has a fileno() is a file for numpy (which duplicates the descriptor) and for event loops
 * (which read and write it). Descriptors 0 to 2 and the control socket are ours, so the functions
 * of os that libraries then call refuse them when a cell is behind it.
 */
#include <string.h>

#include "guest/policy/policy_internal.h"

/* ---- descriptors ------------------------------------------------------------------ */

bool descriptor_is_ours(long fd)
{
	/* the standard three, the control socket and those of parked copies */
	return fd <= 2 || (fd >= 980 && fd <= 1023);
}

static PyObject *refuse_descriptor(long fd)
{
	return violation_null(policy.base == PROFILE_SMOLAGENTS ? NULL : PyExc_PermissionError,
		POLICY_FILE, "Use files below /workspace.",
		"Forbidden access to file: descriptor %ld", fd);
}

/* `self` is the real function; its first argument is the descriptor. */
static PyObject *checked_descriptor(
	PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
	Py_ssize_t all = n + (names ? PyTuple_GET_SIZE(names) : 0);
	/* another's __index__ may answer differently the next time */
	long fd = all && PyLong_Check(args[0]) ? PyLong_AsLong(args[0]) : -1;
	PyErr_Clear();
	if (descriptor_is_ours(fd) && !trusted() && asked_by_cell())
		return refuse_descriptor(fd);
	return PyObject_Vectorcall(self, args, (size_t)n, names);
}

static PyMethodDef descriptor_defs[] = {
	{ "dup", (PyCFunction)(void (*)(void))checked_descriptor, METH_FASTCALL | METH_KEYWORDS,
		NULL },
	{ "dup2", (PyCFunction)(void (*)(void))checked_descriptor, METH_FASTCALL | METH_KEYWORDS,
		NULL },
	{ "read", (PyCFunction)(void (*)(void))checked_descriptor, METH_FASTCALL | METH_KEYWORDS,
		NULL },
	{ "readv", (PyCFunction)(void (*)(void))checked_descriptor, METH_FASTCALL | METH_KEYWORDS,
		NULL },
	{ "write", (PyCFunction)(void (*)(void))checked_descriptor, METH_FASTCALL | METH_KEYWORDS,
		NULL },
	{ "writev", (PyCFunction)(void (*)(void))checked_descriptor, METH_FASTCALL | METH_KEYWORDS,
		NULL },
	{ "sendfile", (PyCFunction)(void (*)(void))checked_descriptor,
		METH_FASTCALL | METH_KEYWORDS, NULL },
};

static int guard_descriptors(void)
{
	PyObject *os = import_real("os"), *dict = os ? PyModule_GetDict(os) : NULL; /* borrowed */
	int r = dict ? 0 : -1;

	for (size_t i = 0; r == 0 && i < sizeof(descriptor_defs) / sizeof(descriptor_defs[0]);
		i++) {
		/* borrowed */
		PyObject *real = PyDict_GetItemString(dict, descriptor_defs[i].ml_name);
		PyObject *guard = real ? PyCFunction_New(&descriptor_defs[i], real) : NULL;
		r = guard ? PyDict_SetItemString(dict, descriptor_defs[i].ml_name, guard)
		    : PyErr_Occurred() ? -1
				       : 0;
		Py_XDECREF(guard);
	}

	Py_XDECREF(os);
	return r;
}

/* ---- event loops -------------------------------------------------------------------- */

static PyObject *refuse_method(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)args, (void)kwargs;
	return violation_null(policy.base == PROFILE_SMOLAGENTS ? NULL : PyExc_PermissionError,
		POLICY_FUNCTION, "Use tasks, queues and asyncio.to_thread().",
		"Forbidden access to function: %U", self);
}

static PyMethodDef refuse_def = { "refused", (PyCFunction)(void (*)(void))refuse_method,
	METH_VARARGS | METH_KEYWORDS, NULL };

static int take_away(PyObject *type, const char *name)
{
	PyObject *text = PyUnicode_FromString(name),
		 *function = text ? PyCFunction_New(&refuse_def, text) : NULL;
	int r = function ? PyObject_SetAttrString(type, name, function) : -1;
	Py_XDECREF(text);
	Py_XDECREF(function);
	return r;
}

/*
 * After an import: what a loop does with descriptors and signals of the caller's choice. Its own it
 * registers by other names.
 */
int loops_guard(void)
{
	static const char *const names[] = { "add_reader", "add_writer", "remove_reader",
		"remove_writer", "connect_read_pipe", "connect_write_pipe", "add_signal_handler",
		"remove_signal_handler" };
	static bool done;

	/* borrowed */
	PyObject *module = done || policy.all_imports
				   ? NULL
				   : PyDict_GetItemString(
					     PyImport_GetModuleDict(), "asyncio.unix_events");
	/* borrowed */
	PyObject *type = module ? PyDict_GetItemString(
					  PyModule_GetDict(module), "_UnixSelectorEventLoop")
				: NULL;
	PyObject *os = PyUnicode_FromString("os"), *subprocess = PyUnicode_FromString("subprocess");
	bool granted = !os || !subprocess || import_allowed(os) || import_allowed(subprocess);
	int r = PyErr_Occurred() ? -1 : 0;
	Py_XDECREF(os);
	Py_XDECREF(subprocess);
	for (size_t i = 0; r == 0 && type && !granted && i < sizeof(names) / sizeof(names[0]); i++)
		r = take_away(type, names[i]);
	done = done || type;
	return r;
}

int descriptors_guard(void)
{
	PyObject *os = PyUnicode_FromString("os");
	int allowed = os ? import_allowed(os) : -1;
	Py_XDECREF(os);
	return allowed < 0 ? -1 : allowed ? 0 : guard_descriptors();
}
