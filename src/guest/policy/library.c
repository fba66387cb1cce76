/*
 * What libraries look up for a cell: their getattr() with names the cell gave them, and the frames pandas takes variables from.
 *
 * Libraries' code finds getattr in the real builtins, where it is replaced for the whole process. A name that leads to functions'
 * globals, to frames or to subclasses is theirs to read when it stands in their own code as a constant; a name that came from
 * somewhere else came from the cell.
 */
#include <string.h>

#include "guest/policy/internal.h"

static const char *const telling[] = { "__globals__", "__builtins__", "__code__", "__closure__", "__subclasses__", "__bases__", "__base__",
	"__mro__", "__class__", "__self__", "__func__", "__loader__", "__spec__", "__import__", "__getattribute__", "__reduce__",
	"__reduce_ex__", "__traceback__", "__defaults__", "__kwdefaults__", "__dict__", "__init_subclass__", "__setattr__", "__delattr__",
	"__dir__", "__getstate__", "__setstate__", "__sizeof__", "__subclasshook__", "__new__", "__init__", "mro", NULL };

/* Files whose own tables hold such names. */
static const char *const own_tables[] = { "/functools.py", "/inspect.py", "/copy.py", "/copyreg.py", "/pickle.py", "/typing.py", "/enum.py",
	"/dataclasses.py", "/types.py", "/abc.py", "/unittest/", "/traceback.py", "/reprlib.py", "/ast.py", "/contextlib.py", NULL };

static PyObject *original_getattr, *original_setattr, *telling_set;

static bool stands_in(PyCodeObject *code, PyObject *name)
{
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); i++) {
		PyObject *c = PyTuple_GET_ITEM(code->co_consts, i);
		if (PyUnicode_CheckExact(c) && PyUnicode_Compare(c, name) == 0)
			return true;
	}
	return false;
}

static bool may_ask(PyObject *name)
{
	PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
	PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
	const char *file = code ? PyUnicode_AsUTF8(code->co_filename) : NULL;
	bool yes = file && strncmp(file, "<cell ", 6) && (stands_in(code, name) || !strcmp(file, "<glovebox>"));
	for (const char *const *f = own_tables; file && !yes && *f; f++)
		yes = !strncmp(file, "/usr/", 5) && strstr(file, *f);
	PyErr_Clear();
	Py_XDECREF(code);
	return yes || !asked_by_cell();
}

static bool is_stream(PyObject *name)
{
	return PyUnicode_CompareWithASCIIString(name, "stdout") == 0 || PyUnicode_CompareWithASCIIString(name, "stderr") == 0 ||
	       PyUnicode_CompareWithASCIIString(name, "stdin") == 0;
}

/* An attribute of a module, by a name that is not the library's own: what a cell could read itself, and the standard streams. */
static PyObject *module_attribute(PyObject *const *args, Py_ssize_t n)
{
	PyObject *value = PyObject_Vectorcall(original_getattr, args, (size_t)n, NULL);
	if (is_stream(args[1]))
		return value;
	PyObject *name = value ? PyModule_GetNameObject(args[0]) : NULL;
	if (name && module_is_dangerous(name)) {
		violation(NULL, POLICY_MODULE, "Use the public functions of the library.", "Forbidden access to module: %U", name);
		Py_CLEAR(name);
	}
	PyObject *checked = name ? module_value(name, args[1], value) : value ? NULL : value;
	Py_XDECREF(name);
	Py_XDECREF(value);
	return checked;
}

static bool named_by_cell(PyObject *name)
{
	PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
	PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
	const char *file = code ? PyUnicode_AsUTF8(code->co_filename) : NULL;
	bool own = file && (!strcmp(file, "<glovebox>") || (strncmp(file, "<cell ", 6) && stands_in(code, name)));
	PyErr_Clear();
	Py_XDECREF(code);
	return !own && asked_by_cell();
}

static PyObject *library_getattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n >= 2 && PyUnicode_Check(args[1]) && !trusted() &&
		(PySet_Contains(telling_set, args[1]) != 0 || attribute_inspects(args[1])) && !may_ask(args[1])) {
		PyErr_Clear();
		return violation_null(NULL, POLICY_ATTRIBUTE, "Use the public attributes of the object.", "Forbidden access to dunder attribute: %U", args[1]);
	}
	if (n >= 2 && PyModule_Check(args[0]) && PyUnicode_CheckExact(args[1]) && !trusted() && named_by_cell(args[1]))
		return module_attribute(args, n);
	return PyObject_Vectorcall(original_getattr, args, (size_t)n, NULL);
}

/* setattr(module, name, value) of a library: the standard streams, and names of its own. */
static PyObject *library_setattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n == 3 && PyModule_Check(args[0]) && PyUnicode_Check(args[1]) && !trusted() && !is_stream(args[1]) && named_by_cell(args[1]))
		return violation_null(NULL, POLICY_MODULE, "Change your own variables.", "Forbidden access to module: its %U cannot be set", args[1]);
	return PyObject_Vectorcall(original_setattr, args, (size_t)n, NULL);
}

static PyMethodDef setattr_def = { "setattr", (PyCFunction)(void (*)(void))library_setattr, METH_FASTCALL, NULL };
static PyMethodDef getattr_def = { "getattr", (PyCFunction)(void (*)(void))library_getattr, METH_FASTCALL, NULL };

int library_getattr_install(void)
{
	PyObject *module = PyImport_ImportModule("builtins"), *dict = module ? PyModule_GetDict(module) : NULL;
	PyObject *function = PyCFunction_New(&getattr_def, NULL);
	telling_set = PySet_New(NULL);
	for (const char *const *t = telling; telling_set && *t; t++) {
		PyObject *word = PyUnicode_FromString(*t);
		if (!word || PySet_Add(telling_set, word) < 0)
			Py_CLEAR(telling_set);
		Py_XDECREF(word);
	}
	original_getattr = dict ? Py_XNewRef(PyDict_GetItemString(dict, "getattr")) : NULL;
	int r = function && telling_set && original_getattr ? PyDict_SetItemString(dict, "getattr", function) : -1;
	PyObject *setter = PyCFunction_New(&setattr_def, NULL);
	original_setattr = dict ? Py_XNewRef(PyDict_GetItemString(dict, "setattr")) : NULL;
	if (r == 0)
		r = setter && original_setattr ? PyDict_SetItemString(dict, "setattr", setter) : -1;
	Py_XDECREF(setter);
	Py_XDECREF(function);
	Py_XDECREF(module);
	return r;
}

/* ---- pandas -------------------------------------------------------------------- */

/* sys._getframe(level) as pandas' scopes call it: always the cell's own frame, whatever the level. */
static PyObject *cell_frame(PyObject *self, PyObject *args)
{
	(void)self, (void)args;
	PyFrameObject *f = PyEval_GetFrame();
	Py_XINCREF(f);
	while (f) {
		PyCodeObject *code = PyFrame_GetCode(f);
		const char *file = PyUnicode_AsUTF8(code->co_filename);
		bool own = file && !strncmp(file, "<cell ", 6);
		Py_DECREF(code);
		if (own)
			return (PyObject *)f;
		PyFrameObject *back = PyFrame_GetBack(f);
		Py_DECREF(f);
		f = back;
	}
	PyErr_SetString(PyExc_ValueError, "call stack is not deep enough");
	return NULL;
}

static PyMethodDef frame_def = { "_getframe", cell_frame, METH_VARARGS, NULL };

int pandas_guard(void)
{
	static bool done;
	PyObject *scope = done ? NULL : PyDict_GetItemString(PyImport_GetModuleDict(), "pandas.core.computation.scope"); /* borrowed */
	if (!scope)
		return 0;
	done = true;
	PyObject *sys = PyModule_New("sys"), *frame = PyCFunction_New(&frame_def, NULL);
	int r = sys && frame && PyObject_SetAttrString(sys, "_getframe", frame) == 0 ? PyObject_SetAttrString(scope, "sys", sys) : -1;
	if (r == 0)
		r = PyObject_SetAttrString(scope, "inspect", Py_None);
	Py_XDECREF(sys);
	Py_XDECREF(frame);
	return r;
}
