#include "guest/run/flush_calls.h"

#include <string.h>

#include "guest/run/python.h"
#include "guest/run/stream.h"

struct wrapped {
	const char *module, *name;
	PyCFunctionWithKeywords call; /* NULL: flush_and_call */
	PyMethodDef def;
	PyObject *original;
};

static PyObject *flush_and_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
	stream_flush_all();
	return PyObject_Call(self, args, kwargs);
}

/* The end of any signal's handler ends it: that of our timer is none of the code's. */
static PyObject *wait_and_hold_nothing(PyObject *self, PyObject *args, PyObject *kwargs)
{
	stream_hold_nothing(true);
	PyObject *result = PyObject_Call(self, args, kwargs);
	stream_hold_nothing(false);
	return result;
}

/* Calls that reach the descriptors without a fork() that our handler would see. */
static struct wrapped calls[] = { { .module = "posix", .name = "system" },
	{ .module = "posix", .name = "_exit" }, { .module = "posix", .name = "abort" },
	{ .module = "posix", .name = "execv" }, { .module = "posix", .name = "execve" },
	{ .module = "posix", .name = "posix_spawn" }, { .module = "posix", .name = "posix_spawnp" },
	{ .module = "posix", .name = "write" }, { .module = "posix", .name = "writev" },
	{ .module = "_posixsubprocess", .name = "fork_exec" },
	{ .module = "_signal", .name = "pause", .call = wait_and_hold_nothing } };

/* Other names under which modules that are already imported hold the same functions. */
static const struct {
	const char *module, *name, *original;
} aliases[] = { { "os", NULL, NULL }, { "signal", NULL, NULL },
	{ "subprocess", "_fork_exec", "fork_exec" } };

static int replace_aliases(struct wrapped *w, PyObject *wrapper)
{
	PyObject *modules = PyImport_GetModuleDict();
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
		PyObject *m = PyDict_GetItemString(modules, aliases[i].module);
		const char *name = aliases[i].name ? aliases[i].name : w->name;
		if (!m || (aliases[i].original && strcmp(aliases[i].original, w->name)))
			continue;
		PyObject *dict = PyModule_GetDict(m);
		if (PyDict_GetItemString(dict, name) == w->original &&
			PyDict_SetItemString(dict, name, wrapper) < 0)
			return -1;
	}
	return 0;
}

/* os.supports_fd holds functions, not names: what replaces a member becomes one. */
static int join_supports_fd(struct wrapped *w, PyObject *wrapper)
{
	PyObject *os = PyDict_GetItemString(PyImport_GetModuleDict(), "os");
	PyObject *set = os ? PyDict_GetItemString(PyModule_GetDict(os), "supports_fd") : NULL;
	int member = set && PySet_Check(set) ? PySet_Contains(set, w->original) : 0;
	return member > 0 ? PySet_Add(set, wrapper) : member;
}

static int wrap_call(struct wrapped *w)
{
	PyObject *module = PyImport_ImportModule(w->module);
	if (!module)
		return -1;
	int r = 0;
	w->original = PyObject_GetAttrString(module, w->name);
	if (!w->original) {
		PyErr_Clear(); /* not every system has every call */
	} else {
		const char *doc = PyCFunction_Check(w->original)
					  ? ((PyCFunctionObject *)w->original)->m_ml->ml_doc
					  : NULL;
		PyCFunctionWithKeywords call = w->call ? w->call : flush_and_call;
		w->def = (PyMethodDef){ w->name, (PyCFunction)(void (*)(void))call,
			METH_VARARGS | METH_KEYWORDS, doc };
		PyObject *home = PyCFunction_Check(w->original)
					 ? ((PyCFunctionObject *)w->original)->m_module
					 : NULL;
		PyObject *wrapper = PyCFunction_NewEx(&w->def, w->original, home);
		r = wrapper ? PyObject_SetAttrString(module, w->name, wrapper) : -1;
		if (r == 0)
			r = replace_aliases(w, wrapper);
		if (r == 0)
			r = join_supports_fd(w, wrapper);
		Py_XDECREF(wrapper);
	}

	Py_DECREF(module);
	return r;
}

int flush_calls_wrap(void)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (wrap_call(&calls[i]) < 0)
			return -1;
	return 0;
}
