/*
 * What libraries look up for a cell: their getattr() with names the cell gave them, and the frames
 * pandas takes variables from.
 *
 * Libraries' code finds getattr in the real builtins, where it is replaced for the whole process. A
 * name that leads to functions' globals, to frames or to subclasses is theirs to read when it
 * stands in their own code as a constant; a name that came from somewhere else came from the cell.
 */
#include <string.h>

#include "guest/policy/policy_internal.h"

static const char *const telling[] = { "__globals__", "__builtins__", "__code__", "__closure__",
	"__subclasses__", "__bases__", "__base__", "__mro__", "__class__", "__self__", "__func__",
	"__loader__", "__spec__", "__import__", "__getattribute__", "__reduce__", "__reduce_ex__",
	"__traceback__", "__defaults__", "__kwdefaults__", "__dict__", "__init_subclass__",
	"__setattr__", "__delattr__", "__dir__", "__getstate__", "__setstate__", "__sizeof__",
	"__subclasshook__", "__new__", "__init__", "mro", NULL };

/* Names that stand in a table beside the function that reads them. */
static const struct {
	const char *file, *name;
} own_tables[] = {
	{ "/functools.py", "__dict__" },
	{ "/inspect.py", "__new__" },
	{ "/inspect.py", "__init__" },
	{ "/typing.py", "__dict__" },
	{ NULL, NULL },
};

static PyObject *original_getattr, *original_setattr, *telling_set;

/* Among the constants of the code, or in a tuple of them that it goes through. */
bool tuple_mentions(PyObject *constants, PyObject *name, bool deeper)
{
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
		PyObject *c = PyTuple_GET_ITEM(constants, i);
		if (PyUnicode_CheckExact(c) && PyUnicode_Compare(c, name) == 0)
			return true;
		if (deeper && PyTuple_CheckExact(c) && tuple_mentions(c, name, false))
			return true;
	}
	return false;
}

static bool stands_in(PyCodeObject *code, PyObject *name)
{
	return tuple_mentions(code->co_consts, name, true);
}

static bool may_ask(PyObject *name)
{
	PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
	PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
	const char *file = code ? PyUnicode_AsUTF8(code->co_filename) : NULL;
	bool yes = file && !code_is_cells(code) &&
		   (stands_in(code, name) || !strcmp(file, "<glovebox>"));
	for (size_t i = 0; file && !yes && own_tables[i].file; i++)
		yes = !strncmp(file, "/usr/", 5) && strstr(file, own_tables[i].file) &&
		      PyUnicode_CompareWithASCIIString(name, own_tables[i].name) == 0;
	PyErr_Clear();
	Py_XDECREF(code);
	return yes || !asked_by_cell();
}

static bool is_stream(PyObject *name)
{
	return PyUnicode_CompareWithASCIIString(name, "stdout") == 0 ||
	       PyUnicode_CompareWithASCIIString(name, "stderr") == 0 ||
	       PyUnicode_CompareWithASCIIString(name, "stdin") == 0;
}

/*
 * An attribute of a module, by a name that is not the library's own: what a cell could read itself,
 * and the standard streams.
 */
static PyObject *module_attribute(PyObject *const *args, Py_ssize_t n)
{
	PyObject *value = PyObject_Vectorcall(original_getattr, args, (size_t)n, NULL);
	if (is_stream(args[1]))
		return value;
	PyObject *name = value ? PyModule_GetNameObject(args[0]) : NULL;
	if (name && module_is_dangerous(name)) {
		violation(NULL, POLICY_MODULE, "Use the public functions of the library.",
			"Forbidden access to module: %U", name);
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
	bool own = file &&
		   (!strcmp(file, "<glovebox>") || (!code_is_cells(code) && stands_in(code, name)));
	PyErr_Clear();
	Py_XDECREF(code);
	return !own && asked_by_cell();
}

/* pandas' methods by their names: agg("sum"). */
static bool private_by_name(PyObject *name)
{
	return PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '_' &&
	       (caller_is("/pandas/core/apply.py", NULL) ||
		       caller_is("/pandas/core/base.py", NULL)) &&
	       named_by_cell(name) && !library_mentions(name);
}

static PyObject *library_getattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n >= 2 && PyUnicode_Check(args[1]) && !trusted() &&
		(PySet_Contains(telling_set, args[1]) != 0 || attribute_inspects(args[1])) &&
		!may_ask(args[1])) {
		PyErr_Clear();
		return violation_null(NULL, POLICY_ATTRIBUTE,
			"Use the public attributes of the object.",
			"Forbidden access to dunder attribute: %U", args[1]);
	}

	if (n >= 2 && PyModule_Check(args[0]) && PyUnicode_CheckExact(args[1]) && !trusted() &&
		named_by_cell(args[1]))
		return module_attribute(args, n);
	if (n >= 2 && PyUnicode_Check(args[1]) && !trusted() && private_by_name(args[1]))
		return violation_null(NULL, POLICY_ATTRIBUTE,
			"Use the public methods of the object.",
			"Forbidden access to private name: %U", args[1]);
	PyObject *value = PyObject_Vectorcall(original_getattr, args, (size_t)n, NULL);
	if (value && PyCapsule_CheckExact(value) && named_by_cell(args[1]) &&
		capsule_check(value) < 0)
		Py_CLEAR(value);
	return value;
}

/* Classes are given special methods by libraries; those are looked at by type's own setter. */
static bool remakes(PyObject *object, PyObject *name)
{
	if (PyType_Check(object))
		return PyUnicode_CompareWithASCIIString(name, "__class__") == 0 ||
		       PyUnicode_CompareWithASCIIString(name, "__bases__") == 0;
	return PySet_Contains(telling_set, name) != 0 || attribute_inspects(name);
}

/*
 * setattr(module, name, value) of a library: the standard streams, and names of its own. Of others:
 * no names that make it another object.
 */
static PyObject *library_setattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n == 3 && PyUnicode_Check(args[1]) && !trusted() && remakes(args[0], args[1]) &&
		asked_by_cell() && !library_mentions(args[1])) {
		PyErr_Clear();
		return violation_null(NULL, POLICY_ATTRIBUTE,
			"Set the public attributes of the object.",
			"Forbidden access to dunder attribute: %U", args[1]);
	}
	if (n == 3 && PyModule_Check(args[0]) && PyUnicode_Check(args[1]) && !trusted() &&
		!is_stream(args[1]) && named_by_cell(args[1]))
		return violation_null(NULL, POLICY_MODULE, "Change your own variables.",
			"Forbidden access to module: its %U cannot be set", args[1]);
	return PyObject_Vectorcall(original_setattr, args, (size_t)n, NULL);
}

/*
 * eval(code, globals, locals) of a library that evaluates annotations: typing takes the globals
 * from whatever function an object says that it wraps. For a cell they are evaluated among the
 * cell's own names, or among none.
 */
static PyObject *original_eval;

static bool evaluates_annotations(void)
{
	return caller_is("/typing.py", NULL) || caller_is("/inspect.py", NULL) ||
	       caller_is("/annotationlib.py", NULL);
}

static PyObject *library_eval(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n >= 2 && !trusted() && evaluates_annotations() && asked_by_cell()) {
		PyObject *globals = args[1];
		if (!PyDict_CheckExact(globals) ||
			(PyDict_GET_SIZE(globals) && globals != policy.globals))
			return violation_null(
				policy.base == PROFILE_SMOLAGENTS ? NULL : PyExc_PermissionError,
				POLICY_CODE, "Write the annotation itself instead of a text.",
				"Forbidden access to function: an annotation of a library is evaluated");
		if (!PyDict_GET_SIZE(globals) &&
			PyDict_SetItemString(globals, "__builtins__", policy.builtins) < 0)
			return NULL;
	}

	/*
	 * Without namespaces it takes those of the frame on top, which is the library's as it is
	 * for the real one.
	 */
	return PyObject_Vectorcall(original_eval, args, (size_t)n, NULL);
}

static PyMethodDef eval_def = { "eval", (PyCFunction)(void (*)(void))library_eval, METH_FASTCALL,
	NULL };
static PyMethodDef setattr_def = { "setattr", (PyCFunction)(void (*)(void))library_setattr,
	METH_FASTCALL, NULL };
static PyMethodDef getattr_def = { "getattr", (PyCFunction)(void (*)(void))library_getattr,
	METH_FASTCALL, NULL };

int library_getattr_install(void)
{
	PyObject *module = PyImport_ImportModule("builtins"),
		 *dict = module ? PyModule_GetDict(module) : NULL;
	PyObject *function = PyCFunction_New(&getattr_def, NULL);

	telling_set = PySet_New(NULL);
	for (const char *const *t = telling; telling_set && *t; t++) {
		PyObject *word = PyUnicode_FromString(*t);
		if (!word || PySet_Add(telling_set, word) < 0)
			Py_CLEAR(telling_set);
		Py_XDECREF(word);
	}

	original_getattr = dict ? Py_XNewRef(PyDict_GetItemString(dict, "getattr")) : NULL;
	int r = function && telling_set && original_getattr
			? PyDict_SetItemString(dict, "getattr", function)
			: -1;
	PyObject *setter = PyCFunction_New(&setattr_def, NULL);
	original_setattr = dict ? Py_XNewRef(PyDict_GetItemString(dict, "setattr")) : NULL;
	if (r == 0)
		r = setter && original_setattr ? PyDict_SetItemString(dict, "setattr", setter) : -1;
	PyObject *home = PyUnicode_FromString("builtins"),
		 *evaluator = PyCFunction_NewEx(&eval_def, NULL, home);
	original_eval = dict ? Py_XNewRef(PyDict_GetItemString(dict, "eval")) : NULL;
	if (r == 0)
		r = evaluator && original_eval ? PyDict_SetItemString(dict, "eval", evaluator) : -1;
	Py_XDECREF(home);
	Py_XDECREF(evaluator);
	Py_XDECREF(setter);
	Py_XDECREF(function);
	Py_XDECREF(module);
	return r;
}

/* ---- pandas -------------------------------------------------------------------- */

/*
 * sys._getframe(level) as pandas' scopes call it: always the cell's own frame, whatever the level.
 */
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
	/* borrowed */
	PyObject *scope = done ? NULL
			       : PyDict_GetItemString(
					 PyImport_GetModuleDict(), "pandas.core.computation.scope");
	if (!scope)
		return 0;
	done = true;
	PyObject *sys = PyModule_New("sys"), *frame = PyCFunction_New(&frame_def, NULL);
	int r = sys && frame && PyObject_SetAttrString(sys, "_getframe", frame) == 0
			? PyObject_SetAttrString(scope, "sys", sys)
			: -1;
	if (r == 0)
		r = PyObject_SetAttrString(scope, "inspect", Py_None);
	Py_XDECREF(sys);
	Py_XDECREF(frame);
	return r;
}

/* ---- lxml ------------------------------------------------------------------------ */

static initproc init_stylesheet;

/* A stylesheet, which pandas takes as text, reads and writes files by itself; here it may not. */
static int plain_stylesheet(PyObject *self, PyObject *args, PyObject *kwargs)
{
	/* borrowed */
	PyObject *etree = PyDict_GetItemString(PyImport_GetModuleDict(), "lxml.etree");
	PyObject *control = etree ? PyObject_GetAttrString(etree, "XSLTAccessControl") : NULL;
	PyObject *deny = control ? PyObject_GetAttrString(control, "DENY_ALL") : NULL,
		 *options = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
	int r = deny && options && PyDict_SetItemString(options, "access_control", deny) == 0
			? init_stylesheet(self, args, options)
			: -1;
	Py_XDECREF(control);
	Py_XDECREF(deny);
	Py_XDECREF(options);
	return r;
}

static PyObject *lxml_loaded(PyObject *self, PyObject *module)
{
	(void)self;
	PyObject *type = init_stylesheet ? NULL : PyObject_GetAttrString(module, "XSLT");
	if (type && PyType_Check(type)) {
		init_stylesheet = ((PyTypeObject *)type)->tp_init;
		((PyTypeObject *)type)->tp_init = plain_stylesheet;
	}
	PyErr_Clear(); /* a module of that name that is none of ours */
	Py_XDECREF(type);
	Py_RETURN_NONE;
}

static PyMethodDef lxml_def = { "lxml_loaded", lxml_loaded, METH_O, NULL };

int lxml_watch(void)
{
	/* borrowed */
	PyObject *support = PyDict_GetItemString(PyImport_GetModuleDict(), "_glovebox");
	PyObject *action = PyCFunction_New(&lxml_def, NULL);
	PyObject *r = support && action ? PyObject_CallMethod(
						  support, "_on_import", "sO", "lxml.etree", action)
					: NULL;
	Py_XDECREF(action);
	Py_XDECREF(r);
	return r ? 0 : -1;
}
