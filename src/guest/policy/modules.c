/*
 * Modules as cells see them: copies.
 *
 * A copy is a module object with the public names of the real one, so that reading them costs what it costs everywhere. What is
 * not in it (modules that are not on the list, private names, functions that are taken away) is answered by its
 * __getattr__, which looks at the real module and refuses or lets through. Writing to a copy changes the copy.
 */
#include <string.h>

#include "guest/policy/internal.h"

static PyObject *copies; /* name of the real module → its copy */

/* Values whose home is one of these are not handed out through other modules. */
static const char *const dangerous_homes[] = { "os", "posix", "subprocess", "_posixsubprocess", "sys", "importlib", "_frozen_importlib",
	"_frozen_importlib_external", "_imp", "imp", "ctypes", "_ctypes", "socket", "_socket", "shutil", "pickle", "_pickle", "marshal",
	"inspect", "gc", "multiprocessing", "pty", "signal", "_thread", "code", "codeop", "runpy", "pkgutil", "builtins", "io", "_io",
	"pathlib", "tempfile", "mmap", "types", "_tkinter", "cffi", "urllib.request", "http.client", "ast", NULL };

static const char *const kept_private[] = { "__name__", "__doc__", "__version__", NULL };

int modules_prepare(void)
{
	return (copies = PyDict_New()) ? 0 : -1;
}

/* ---- values that are taken away ----------------------------------------------- */

static bool home_is(PyObject *value, const char *home)
{
	PyObject *module = PyObject_GetAttrString(value, "__module__");
	const char *text = module && PyUnicode_CheckExact(module) ? PyUnicode_AsUTF8(module) : NULL;
	size_t len = strlen(home);
	bool yes = text && !strncmp(text, home, len) && (text[len] == '\0' || text[len] == '.');
	PyErr_Clear();
	Py_XDECREF(module);
	return yes;
}

/* Of the builtins module: those that run code, read files or give names, and the types of functions and code. */
static bool dangerous_builtin(PyObject *value)
{
	static const char *const names[] = { "eval", "exec", "compile", "open", "__import__", "input", "breakpoint", "globals", "locals",
		"vars", "dir", "getattr", "setattr", "delattr", "hasattr", "function", "code", "frame", "traceback", "cell", "module",
		"method", "builtin_function_or_method", "mappingproxy", "print", NULL };
	PyObject *name = PyObject_GetAttrString(value, "__name__");
	const char *text = name && PyUnicode_CheckExact(name) ? PyUnicode_AsUTF8(name) : "eval";
	bool yes = false;
	for (const char *const *n = names; text && *n; n++)
		yes = yes || !strcmp(text, *n);
	PyErr_Clear();
	Py_XDECREF(name);
	return yes;
}

static bool plain_stream(PyObject *value)
{
	const char *name = PyType_Check(value) ? ((PyTypeObject *)value)->tp_name : "";
	return !strcmp(name, "_io.StringIO") || !strcmp(name, "_io.BytesIO");
}

/* Which of the dangerous homes a dotted name lies in, or NULL. */
static const char *dangerous_place(const char *name)
{
	for (const char *const *home = dangerous_homes; *home; home++) {
		size_t len = strlen(*home);
		if (!strncmp(name, *home, len) && (name[len] == '\0' || name[len] == '.'))
			return *home;
	}
	return NULL;
}

bool module_is_dangerous(PyObject *name)
{
	const char *text = PyUnicode_AsUTF8(name);
	return !text || dangerous_place(text) != NULL;
}

/* Whether a function or class comes from a module to beware of that is not on the list. */
static bool dangerous_home(PyObject *value)
{
	if (policy.all_imports || (!PyCFunction_Check(value) && !PyFunction_Check(value) && !PyType_Check(value)))
		return false;
	PyObject *module = PyObject_GetAttrString(value, "__module__");
	const char *text = module && PyUnicode_CheckExact(module) ? PyUnicode_AsUTF8(module) : NULL;
	const char *home = text ? dangerous_place(text) : NULL;
	bool yes = home != NULL;
	if (yes && !strcmp(home, "builtins"))
		yes = dangerous_builtin(value);
	else if (yes)
		yes = !plain_stream(value) && !(!strcmp(home, "types") && PyType_Check(value)) && !import_allowed(module);
	PyErr_Clear();
	Py_XDECREF(module);
	return yes;
}

/* smolagents' list, which holds also where the module itself was allowed. */
static bool dangerous_function(PyObject *value)
{
	static const char *const list[][2] = { { "builtins", "compile" }, { "builtins", "eval" }, { "builtins", "exec" },
		{ "builtins", "globals" }, { "builtins", "locals" }, { "builtins", "__import__" }, { "os", "popen" }, { "os", "system" },
		{ "posix", "system" } };
	if (!PyCFunction_Check(value) && !PyFunction_Check(value))
		return false;
	PyObject *name = PyObject_GetAttrString(value, "__name__");
	bool yes = false;
	for (size_t i = 0; name && PyUnicode_CheckExact(name) && i < sizeof(list) / sizeof(list[0]); i++)
		yes = yes || (PyUnicode_CompareWithASCIIString(name, list[i][1]) == 0 && home_is(value, list[i][0]));
	PyErr_Clear();
	Py_XDECREF(name);
	return yes;
}

static bool taken_away(PyObject *module_name, PyObject *name)
{
	PyObject *full = PyUnicode_FromFormat("%U.%U", module_name, name);
	bool yes = !full || PySet_Contains(policy.refused, full) != 0;
	PyErr_Clear();
	Py_XDECREF(full);
	return yes;
}

static bool is_private(PyObject *name)
{
	return PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '_';
}

static bool keeps(PyObject *name)
{
	for (const char *const *k = kept_private; *k; k++)
		if (PyUnicode_CompareWithASCIIString(name, *k) == 0)
			return true;
	return false;
}

/* ---- stand-ins -------------------------------------------------------------------- */

/* functools.update_wrapper(w, f), wraps(f): with attributes of the caller's choice they read anything of anything. */
static PyObject *update_wrapper; /* the real one */

static PyObject *checked_update(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)self;
	if (PyTuple_GET_SIZE(args) != 2 || kwargs)
		return violation_null(NULL, POLICY_ATTRIBUTE, "Leave `assigned` and `updated` out.", "attributes to copy cannot be chosen here");
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
		return violation_null(NULL, POLICY_ATTRIBUTE, "Leave `assigned` and `updated` out.", "attributes to copy cannot be chosen here");
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
	PyObject *fields = PyTuple_GET_SIZE(args) > 1 ? PyTuple_GET_ITEM(args, 1) : kwargs ? PyDict_GetItemString(kwargs, "fields") : NULL;
	PyObject *list = fields ? PySequence_List(fields) : PyList_New(0);
	int r = list ? 0 : -1;
	for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(list); i++) {
		PyObject *field = PyList_GET_ITEM(list, i);
		PyObject *name = PyUnicode_Check(field) ? Py_NewRef(field) : PySequence_GetItem(field, 0);
		r = name ? attribute_check(name) : -1;
		Py_XDECREF(name);
	}
	/* The list is what was checked; what it was made of may answer differently the next time. */
	PyObject *name = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : kwargs ? PyDict_GetItemString(kwargs, "cls_name") : NULL;
	PyObject *call = r == 0 && name ? PyTuple_Pack(2, name, list) : NULL, *options = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
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

static PyMethodDef fields_def = { "make_dataclass", (PyCFunction)(void (*)(void))checked_fields, METH_VARARGS | METH_KEYWORDS, NULL };
static PyMethodDef update_def = { "update_wrapper", (PyCFunction)(void (*)(void))checked_update, METH_VARARGS | METH_KEYWORDS, NULL };
static PyMethodDef wraps_def = { "wraps", (PyCFunction)(void (*)(void))checked_wraps, METH_VARARGS | METH_KEYWORDS, NULL };

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

/* Functions and classes that undo the rules, by the module and name they are found under: what stands there instead, or NULL for
 * nothing. */
static const struct {
	const char *name;
	PyObject *(*make)(PyObject *original);
} special_cases[] = {
	{ "functools.wraps", make_wraps },
	{ "functools.update_wrapper", make_update },
	{ "dataclasses.make_dataclass", make_fields },
	{ "string.Formatter", NULL },
	{ "numpy.lib.stride_tricks.as_strided", NULL },
	{ "numpy.lib.as_strided", NULL },
	{ "numpy.ndarray.ctypes", NULL },
	{ "numpy.DataSource", NULL },
	{ "numpy.source", NULL },
	{ "numpy.info", NULL },
	{ "numpy.lookfor", NULL },
	{ "tkinter.readprofile", NULL },
	{ "asyncio.create_subprocess_exec", NULL },
	{ "asyncio.create_subprocess_shell", NULL },
	{ "sys.modules", NULL },
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
};

/* 1 and *ret for a stand-in, -1 refused, 0 nothing special. */
static int special_case(PyObject *module_name, PyObject *name, PyObject *value, PyObject **ret)
{
	PyObject *full = PyUnicode_FromFormat("%U.%U", module_name, name);
	int found = full ? 0 : -1;
	for (size_t i = 0; full && i < sizeof(special_cases) / sizeof(special_cases[0]); i++) {
		if (PyUnicode_CompareWithASCIIString(full, special_cases[i].name) != 0)
			continue;
		*ret = special_cases[i].make ? special_cases[i].make(value) : NULL;
		found = *ret ? 1 : -1;
	}
	Py_XDECREF(full);
	return found;
}

/* ---- copies -------------------------------------------------------------------- */

static int refuse_module(PyObject *module)
{
	PyObject *name = PyModule_GetNameObject(module);
	PyErr_Clear();
	violation(NULL, POLICY_MODULE, "Import the module itself, if it is among the authorized ones.", "Forbidden access to module: %V", name, "?");
	Py_XDECREF(name);
	return -1;
}

static int refuse_function(PyObject *name)
{
	return violation(NULL, POLICY_FUNCTION, "This function is not available under the session's profile.", "Forbidden access to function: %U", name);
}

/* What the cell gets for a name of a real module; NULL with an error. */
PyObject *module_value(PyObject *module_name, PyObject *name, PyObject *value)
{
	PyObject *other = NULL;
	if (PyModule_Check(value))
		return module_guard(value);
	if (is_private(name) && !keeps(name))
		return violation_null(NULL, POLICY_ATTRIBUTE, "Use the public names of the module.", "Forbidden access to private name: %U.%U", module_name,
			name);
	int special = special_case(module_name, name, value, &other);
	if (special > 0)
		return other;
	if (special < 0 || taken_away(module_name, name) || dangerous_function(value) ||
		(dangerous_home(value) && !dangerous_place(PyUnicode_AsUTF8(module_name)))) {
		PyErr_Clear();
		refuse_function(name);
		return NULL;
	}
	return Py_NewRef(value);
}

/* __getattr__ of a copy, for what was not copied. `self` is the real module. */
static PyObject *missing(PyObject *self, PyObject *name)
{
	PyObject *module_name = PyModule_GetNameObject(self), *value = NULL, *result = NULL;
	if (!module_name || !PyUnicode_CheckExact(name))
		goto out;
	if (is_private(name) && attribute_check(name) < 0) {
		if (!caller_is_cell()) { /* Python itself asks copies for __path__ and the like */
			PyErr_Clear();
			PyErr_Format(PyExc_AttributeError, "module '%U' has no attribute '%U'", module_name, name);
		}
		goto out;
	}
	value = PyObject_GetAttr(self, name);
	if (!value) { /* without the real module in the exception */
		PyErr_Clear();
		PyObject *full = PyUnicode_FromFormat("%U.%U", module_name, name);
		value = full ? PyImport_GetModule(full) : NULL;
		Py_XDECREF(full);
	}
	if (value)
		result = module_value(module_name, name, value);
	else
		PyErr_Format(PyExc_AttributeError, "module '%U' has no attribute '%U'", module_name, name);
out:
	Py_XDECREF(module_name);
	Py_XDECREF(value);
	return result;
}

static PyMethodDef missing_def = { "__getattr__", missing, METH_O, NULL };

static int copy_names(PyObject *from, PyObject *module_name, PyObject *to)
{
	PyObject *key, *value, *snapshot = PyDict_Copy(PyModule_GetDict(from));
	Py_ssize_t at = 0;
	int r = snapshot ? 0 : -1;
	while (r == 0 && PyDict_Next(snapshot, &at, &key, &value)) {
		if (!PyUnicode_CheckExact(key) || PyModule_Check(value) || (is_private(key) && !keeps(key)))
			continue;
		PyObject *checked = module_value(module_name, key, value);
		if (checked)
			r = PyDict_SetItem(to, key, checked);
		PyErr_Clear(); /* refused when it is asked for */
		Py_XDECREF(checked);
	}
	Py_XDECREF(snapshot);
	return r;
}

/* `from module import *` takes what is there. */
static int copy_all(PyObject *from, PyObject *to)
{
	PyObject *all = PyDict_GetItemString(PyModule_GetDict(from), "__all__"); /* borrowed */
	PyObject *list = all ? PySequence_List(all) : NULL, *kept = PyList_New(0);
	int r = kept ? 0 : -1;
	PyErr_Clear();
	for (Py_ssize_t i = 0; r == 0 && list && i < PyList_GET_SIZE(list); i++)
		if (PyDict_Contains(to, PyList_GET_ITEM(list, i)) == 1)
			r = PyList_Append(kept, PyList_GET_ITEM(list, i));
	if (r == 0 && list)
		r = PyDict_SetItemString(to, "__all__", kept);
	Py_XDECREF(list);
	Py_XDECREF(kept);
	return r;
}

static PyObject *make_copy(PyObject *module, PyObject *name)
{
	PyObject *copy = PyModule_NewObject(name), *getter = PyCFunction_New(&missing_def, module);
	PyObject *dict = copy ? PyModule_GetDict(copy) : NULL;
	if (!dict || !getter || copy_names(module, name, dict) < 0 || copy_all(module, dict) < 0 ||
		PyDict_SetItemString(dict, "__getattr__", getter) < 0 || PyDict_SetItem(copies, name, copy) < 0)
		Py_CLEAR(copy);
	Py_XDECREF(getter);
	return copy;
}

PyObject *module_copy(PyObject *module)
{
	if (!PyModule_Check(module))
		return Py_NewRef(module); /* what a library put in sys.modules in place of a module */
	PyObject *name = PyModule_GetNameObject(module);
	if (!name)
		return NULL;
	PyObject *copy = PyDict_GetItemWithError(copies, name); /* borrowed */
	Py_XINCREF(copy);
	if (!copy && !PyErr_Occurred())
		copy = make_copy(module, name);
	Py_DECREF(name);
	return copy;
}

PyObject *module_guard(PyObject *value)
{
	if (!policy.languages || !PyModule_Check(value))
		return Py_NewRef(value);
	PyObject *name = PyModule_GetNameObject(value);
	if (!name) {
		PyErr_Clear();
		refuse_module(value);
		return NULL;
	}
	PyObject *result = NULL;
	if (PyDict_GetItemWithError(copies, name) == value)
		result = Py_NewRef(value);
	else if (import_allowed(name))
		result = module_copy(value);
	else
		refuse_module(value);
	Py_DECREF(name);
	return result;
}
