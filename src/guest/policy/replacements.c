/*
 * Stand-ins: what cells find in place of functions and classes that would undo the rules, or
 * nothing at all.
 */
#include <string.h>

#include "guest/policy/policy_internal.h"

/* ---- attributes of one's choice -------------------------------------------------- */

/*
 * functools.update_wrapper(w, f), wraps(f): with attributes of the caller's choice they read
 * anything of anything.
 */
static PyObject *update_wrapper; /* the real one */

static PyObject *checked_update(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)self;
	if (PyTuple_GET_SIZE(args) != 2 || kwargs)
		return violation_null(NULL, POLICY_ATTRIBUTE, "Leave `assigned` and `updated` out.",
			"attributes to copy cannot be chosen here");
	return PyObject_Call(update_wrapper, args, NULL);
}

/* What wraps(f) gives: not a partial object, whose arguments could be changed. */
static PyObject *wrap_one(PyObject *self, PyObject *wrapper)
{
	return PyObject_CallFunctionObjArgs(update_wrapper, wrapper, self, NULL);
}

static PyMethodDef wrap_def = { "wraps", wrap_one, METH_O, NULL };

static PyObject *checked_wraps(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)self;
	if (PyTuple_GET_SIZE(args) != 1 || kwargs)
		return violation_null(NULL, POLICY_ATTRIBUTE, "Leave `assigned` and `updated` out.",
			"attributes to copy cannot be chosen here");
	return PyCFunction_New(&wrap_def, PyTuple_GET_ITEM(args, 0));
}

static PyObject *find_update_wrapper(void)
{
	PyObject *functools = update_wrapper ? NULL : import_real("functools");
	if (functools)
		update_wrapper = PyObject_GetAttrString(functools, "update_wrapper");
	Py_XDECREF(functools);
	return update_wrapper;
}

/* dataclasses.make_dataclass(name, fields, …): names of attributes as texts. */
static PyObject *checked_fields(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *fields = PyTuple_GET_SIZE(args) > 1 ? PyTuple_GET_ITEM(args, 1)
			   : kwargs                   ? PyDict_GetItemString(kwargs, "fields")
						      : NULL;
	PyObject *list = fields ? PySequence_List(fields) : PyList_New(0);
	int r = list ? 0 : -1;

	for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(list); i++) {
		PyObject *field = PyList_GET_ITEM(list, i);
		PyObject *name = PyUnicode_Check(field) ? Py_NewRef(field)
							: PySequence_GetItem(field, 0);
		r = name ? attribute_check(name) : -1;
		Py_XDECREF(name);
	}

	/*
	 * The list is what was checked; what it was made of may answer differently the next time.
	 */
	PyObject *name = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0)
			 : kwargs               ? PyDict_GetItemString(kwargs, "cls_name")
						: NULL;
	PyObject *call = r == 0 && name ? PyTuple_Pack(2, name, list) : NULL,
		 *options = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
	if (options && PyDict_GetItemString(options, "fields"))
		PyDict_DelItemString(options, "fields");
	if (options && PyDict_GetItemString(options, "cls_name"))
		PyDict_DelItemString(options, "cls_name");
	if (r == 0 && !name)
		PyErr_SetString(PyExc_TypeError, "make_dataclass() needs a name and fields");
	PyObject *made = call && options ? PyObject_Call(self, call, options) : NULL;
	Py_XDECREF(list);
	Py_XDECREF(call);
	Py_XDECREF(options);
	return made;
}

static PyMethodDef fields_def = { "make_dataclass", (PyCFunction)(void (*)(void))checked_fields,
	METH_VARARGS | METH_KEYWORDS, NULL };
static PyMethodDef update_def = { "update_wrapper", (PyCFunction)(void (*)(void))checked_update,
	METH_VARARGS | METH_KEYWORDS, NULL };
static PyMethodDef wraps_def = { "wraps", (PyCFunction)(void (*)(void))checked_wraps,
	METH_VARARGS | METH_KEYWORDS, NULL };

static PyObject *make_wraps(PyObject *original)
{
	(void)original;
	return find_update_wrapper() ? PyCFunction_New(&wraps_def, NULL) : NULL;
}

static PyObject *make_update(PyObject *original)
{
	(void)original;
	return find_update_wrapper() ? PyCFunction_New(&update_def, NULL) : NULL;
}

static PyObject *make_fields(PyObject *original)
{
	return PyCFunction_New(&fields_def, original);
}

/* ---- sys.modules -------------------------------------------------------------------- */

/* The real one holds the real modules, and whoever changes it changes what libraries import. */
struct modules_view {
	PyObject_HEAD
};

static PyObject *view_get(PyObject *self, PyObject *name)
{
	(void)self;
	/* borrowed */
	PyObject *module = PyUnicode_CheckExact(name)
				   ? PyDict_GetItemWithError(PyImport_GetModuleDict(), name)
				   : NULL;
	if (!module) {
		if (!PyErr_Occurred())
			PyErr_SetObject(PyExc_KeyError, name);
		return NULL;
	}

	if (import_allowed(name))
		return module_copy(module);
	return violation_null(NULL, POLICY_MODULE,
		"Import the module itself, if it is among the authorized ones.",
		"Forbidden access to module: %U", name);
}

static PyObject *view_method_get(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	if (n < 1 || n > 2)
		return PyErr_Format(PyExc_TypeError, "get expected 1 or 2 arguments, got %zd", n);
	PyObject *module = view_get(self, args[0]);
	if (module || !PyErr_ExceptionMatches(PyExc_KeyError))
		return module;
	PyErr_Clear();
	return Py_NewRef(n == 2 ? args[1] : Py_None);
}

static int view_contains(PyObject *self, PyObject *name)
{
	(void)self;
	return PyDict_Contains(PyImport_GetModuleDict(), name);
}

static Py_ssize_t view_length(PyObject *self)
{
	(void)self;
	return PyDict_Size(PyImport_GetModuleDict());
}

static PyObject *view_keys(PyObject *self, PyObject *unused)
{
	(void)self, (void)unused;
	return PyDict_Keys(PyImport_GetModuleDict());
}

static PyObject *view_iter(PyObject *self)
{
	PyObject *keys = view_keys(self, NULL), *iterator = keys ? PyObject_GetIter(keys) : NULL;
	Py_XDECREF(keys);
	return iterator;
}

static PyMethodDef view_methods[] = {
	{ "get", (PyCFunction)(void (*)(void))view_method_get, METH_FASTCALL,
		"The module of this name, or the default." },
	{ "keys", view_keys, METH_NOARGS, "The names of the modules." },
	{ NULL, NULL, 0, NULL },
};
static PyMappingMethods view_mapping = { .mp_length = view_length, .mp_subscript = view_get };
static PySequenceMethods view_sequence = { .sq_contains = view_contains };
static PyTypeObject view_type = {
	PyVarObject_HEAD_INIT(NULL, 0).tp_name = "glovebox.Modules",
	.tp_basicsize = sizeof(struct modules_view),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.tp_as_mapping = &view_mapping,
	.tp_as_sequence = &view_sequence,
	.tp_iter = view_iter,
	.tp_methods = view_methods,
};

static PyObject *make_modules(PyObject *original)
{
	(void)original;
	return PyType_Ready(&view_type) == 0
		       ? (PyObject *)PyObject_New(struct modules_view, &view_type)
		       : NULL;
}

/* ---- the table ------------------------------------------------------------------------ */

/*
 * Functions and classes that undo the rules, by the module and name they are found under, or were
 * made under: what stands there instead, or NULL for nothing.
 */
static const struct {
	const char *name;
	PyObject *(*make)(PyObject *original);
} special_cases[] = {
	{ "functools.wraps", make_wraps },
	{ "functools.update_wrapper", make_update },
	{ "dataclasses.make_dataclass", make_fields },
	{ "copy.dispatch_table", NULL }, /* how objects are taken apart and put together again */
	{ "copyreg.dispatch_table", NULL },
	{ "copyreg.pickle", NULL },
	{ "copyreg.constructor", NULL },
	{ "string.Formatter", NULL },
	{ "numpy.lib.stride_tricks.as_strided", NULL },
	{ "numpy.lib.stride_tricks.DummyArray", NULL },
	{ "numpy.ndarray.ctypes", NULL },
	{ "numpy.nested_iters", NULL },
	{ "numpy.core.multiarray.scalar", NULL },
	{ "numpy._core.multiarray.scalar", NULL },
	{ "numpy.DataSource", NULL },
	{ "numpy.source", NULL },
	{ "numpy.info", NULL },
	{ "numpy.lookfor", NULL },
	{ "tkinter.readprofile", NULL },
	{ "asyncio.create_subprocess_exec", NULL },
	{ "asyncio.create_subprocess_shell", NULL },
	{ "sys.modules", make_modules },
	{ "sys.settrace", NULL },
	{ "sys.setprofile", NULL },
	{ "sys.meta_path", NULL },
	{ "sys.path_hooks", NULL },
	{ "sys.path_importer_cache", NULL },
	{ "typing.get_type_hints", NULL },
	{ "enum.global_enum", NULL },
	{ "pandas.show_versions", NULL },
	{ "enum.global_enum_repr", NULL },
	{ "sys.exc_info", NULL },
	{ "sys.last_traceback", NULL },
	{ "logging.config.dictConfig", NULL },
	{ "logging.config.dictConfigClass", NULL },
	{ "logging.config.DictConfigurator", NULL },
	{ "logging.config.BaseConfigurator", NULL },
	{ "logging.config.fileConfig", NULL },
	{ "logging.config.listen", NULL },
	{ "typing.ForwardRef", NULL },
	{ "importlib.reload", NULL },
	{ "importlib.find_loader", NULL },
	{ "pandas.compat._optional.import_optional_dependency", NULL },
};

static int find_case(PyObject *full, PyObject *value, PyObject **ret)
{
	for (size_t i = 0; i < sizeof(special_cases) / sizeof(special_cases[0]); i++) {
		if (PyUnicode_CompareWithASCIIString(full, special_cases[i].name) != 0)
			continue;
		*ret = special_cases[i].make ? special_cases[i].make(value) : NULL;
		return *ret ? 1 : -1;
	}
	return 0;
}

/* "functools.wraps", wherever it was imported to; NULL without an error for what has no home. */
static PyObject *home_of(PyObject *value)
{
	if (!PyFunction_Check(value) && !PyCFunction_Check(value) && !PyType_Check(value))
		return NULL;
	PyObject *module = PyObject_GetAttrString(value, "__module__"),
		 *name = PyObject_GetAttrString(value, "__name__");
	PyObject *full = module && name && PyUnicode_Check(module) && PyUnicode_Check(name)
				 ? PyUnicode_FromFormat("%U.%U", module, name)
				 : NULL;
	PyErr_Clear();
	Py_XDECREF(module);
	Py_XDECREF(name);
	return full;
}

int stand_in(PyObject *module_name, PyObject *name, PyObject *value, PyObject **ret)
{
	PyObject *full = PyUnicode_FromFormat("%U.%U", module_name, name),
		 *home = full ? home_of(value) : NULL;
	int found = full ? find_case(full, value, ret) : -1;
	if (found == 0 && home)
		found = find_case(home, value, ret);
	Py_XDECREF(full);
	Py_XDECREF(home);
	return found;
}
