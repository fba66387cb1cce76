/*
 * Modules as cells see them: copies.
 *
 * A copy is a module object with the public names of the real one, so that reading them costs what
 * it costs everywhere. What is not in it (modules that are not on the list, private names,
 * functions that are taken away) is answered by missing(), which looks at the real module and
 * refuses or lets through; it hangs on the type of modules, because a __getattr__ in the copy would
 * keep the interpreter from specialising reads of it. Writing to a copy changes the copy.
 */
#include <string.h>

#include "guest/policy/policy_internal.h"

static PyObject *copies; /* name of the real module → its copy */
/* address of a copy → the real module; copies live as long as the process */
static PyObject *reals;

/* Values whose home is one of these are not handed out through other modules. */
static const char *const dangerous_homes[] = { "os", "posix", "subprocess", "_posixsubprocess",
	"sys", "importlib", "_frozen_importlib", "_frozen_importlib_external", "_imp", "imp",
	"ctypes", "_ctypes", "socket", "_socket", "shutil", "pickle", "_pickle", "marshal",
	"inspect", "gc", "multiprocessing", "pty", "signal", "_thread", "code", "codeop", "runpy",
	"pkgutil", "builtins", "io", "_io", "pathlib", "tempfile", "mmap", "types", "_tkinter",
	"cffi", "urllib.request", "http.client", "ast", "pandas.compat", "numpy.testing",
	"numpy.ctypeslib", "numpy.distutils", "numpy.f2py", NULL };

/* The real ones of these are shut to cells, however they came by them. */
static const char *const shut_modules[] = { "os", "posix", "sys", "subprocess", "_posixsubprocess",
	"importlib", "importlib.util", "importlib.machinery", "importlib.abc", "_frozen_importlib",
	"_frozen_importlib_external", "_imp", "imp", "ctypes", "_ctypes", "socket", "_socket",
	"shutil", "pickle", "_pickle", "marshal", "inspect", "gc", "multiprocessing", "pty",
	"signal", "_signal", "_thread", "threading", "code", "codeop", "runpy", "pkgutil",
	"builtins", "io", "_io", "pathlib", "tempfile", "mmap", "types", "_tkinter",
	"urllib.request", "http.client", "ast", "numpy.ctypeslib", "numpy.core.multiarray",
	"numpy.core._multiarray_umath", "_glovebox", "__main__", NULL };

static const char *const kept_private[] = { "__name__", "__doc__", "__version__", NULL };

int modules_prepare(void)
{
	return (copies = PyDict_New()) && (reals = PyDict_New()) ? 0 : -1;
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

/*
 * Of the builtins module: those that run code, read files or give names, and the types of functions
 * and code.
 */
static bool dangerous_builtin(PyObject *value)
{
	static const char *const names[] = { "eval", "exec", "compile", "open", "__import__",
		"input", "breakpoint", "globals", "locals", "vars", "dir", "getattr", "setattr",
		"delattr", "hasattr", "function", "code", "frame", "traceback", "cell", "module",
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
	if (policy.all_imports ||
		(!PyCFunction_Check(value) && !PyFunction_Check(value) && !PyType_Check(value)))
		return false;
	PyObject *module = PyObject_GetAttrString(value, "__module__");
	const char *text = module && PyUnicode_CheckExact(module) ? PyUnicode_AsUTF8(module) : NULL;
	const char *home = text ? dangerous_place(text) : NULL;
	bool yes = home != NULL;
	if (yes && !strcmp(home, "builtins"))
		yes = dangerous_builtin(value);
	else if (yes)
		yes = !plain_stream(value) && !(!strcmp(home, "types") && PyType_Check(value)) &&
		      !import_allowed(module);
	PyErr_Clear();
	Py_XDECREF(module);
	return yes;
}

/* smolagents' list, which holds also where the module itself was allowed. */
static bool dangerous_function(PyObject *value)
{
	static const char *const list[][2] = { { "builtins", "compile" }, { "builtins", "eval" },
		{ "builtins", "exec" }, { "builtins", "globals" }, { "builtins", "locals" },
		{ "builtins", "__import__" }, { "os", "popen" }, { "os", "system" },
		{ "posix", "system" } };

	if (!PyCFunction_Check(value) && !PyFunction_Check(value))
		return false;
	PyObject *name = PyObject_GetAttrString(value, "__name__");
	bool yes = false;
	for (size_t i = 0; name && PyUnicode_CheckExact(name) && i < sizeof(list) / sizeof(list[0]);
		i++)
		yes = yes || (PyUnicode_CompareWithASCIIString(name, list[i][1]) == 0 &&
				     home_is(value, list[i][0]));
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

/*
 * A private name that programs read all the same: the code that coding_env added to them does. It
 * is a root window, which they can make themselves. Not copied: it changes.
 */
static bool is_default_root(PyObject *module_name, PyObject *name)
{
	return PyUnicode_CompareWithASCIIString(name, "_default_root") == 0 &&
	       PyUnicode_CompareWithASCIIString(module_name, "tkinter") == 0;
}

static int refuse_module(PyObject *module)
{
	PyObject *name = PyModule_GetNameObject(module);
	PyErr_Clear();
	violation(NULL, POLICY_MODULE,
		"Import the module itself, if it is among the authorized ones.",
		"Forbidden access to module: %V", name, "?");
	Py_XDECREF(name);
	return -1;
}

/* ---- real modules in the hands of a cell ------------------------------------------------- */

/*
 * Cells get copies, but some function of some library will return a real module one day. The
 * attributes of a real module are read by the interpreter without asking anybody; so those that
 * matter get a type of their own, which asks who reads. (The importer makes new modules of the type
 * that sys has, so all that are imported from then on have it too.)
 */
static PyTypeObject shut_type;

static PyObject *shut_read(PyObject *self, PyObject *name)
{
	if (!policy.active || trusted() || !cell_accesses())
		return PyModule_Type.tp_getattro(self, name);
	refuse_module(self);
	return NULL;
}

static int shut_write(PyObject *self, PyObject *name, PyObject *value)
{
	if (!policy.active || trusted() || !cell_accesses())
		return PyModule_Type.tp_setattro(self, name, value);
	return refuse_module(self);
}

static PyTypeObject shut_type = {
	PyVarObject_HEAD_INIT(NULL, 0).tp_name = "module",
	.tp_flags = Py_TPFLAGS_DEFAULT, /* to be collected, as the base is: inherited */
	.tp_base = &PyModule_Type,
	.tp_getattro = shut_read,
	.tp_setattro = shut_write,
};

int modules_shut(void)
{
	PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
	if (policy.all_imports)
		return 0;
	shut_type.tp_basicsize = PyModule_Type.tp_basicsize;
	if (PyType_Ready(&shut_type) < 0)
		return -1;
	for (const char *const *name = shut_modules; *name; name++) {
		PyObject *module = PyDict_GetItemString(modules, *name), *text; /* borrowed */
		if (!module || !PyModule_CheckExact(module) ||
			!(text = PyUnicode_FromString(*name)))
			continue;
		if (!import_allowed(text))
			/* both types are static, and static types do not count their instances */
			Py_SET_TYPE(module, &shut_type);
		Py_DECREF(text);
	}

	PyErr_Clear();
	return 0;
}

/* ---- copies -------------------------------------------------------------------- */

static int refuse_function(PyObject *name)
{
	return violation(NULL, POLICY_FUNCTION,
		"This function is not available under the session's profile.",
		"Forbidden access to function: %U", name);
}

/* What the cell gets for a name of a real module; NULL with an error. */
PyObject *module_value(PyObject *module_name, PyObject *name, PyObject *value)
{
	PyObject *other = NULL;
	if (PyModule_Check(value) || PyCapsule_CheckExact(value))
		return module_guard(value);
	if (is_private(name) && !keeps(name) && !is_default_root(module_name, name))
		return violation_null(NULL, POLICY_ATTRIBUTE, "Use the public names of the module.",
			"Forbidden access to private name: %U.%U", module_name, name);
	int special = stand_in(module_name, name, value, &other);
	if (special > 0)
		return other;
	if (PyUnicode_CompareWithASCIIString(module_name, "builtins") == 0 &&
		builtin_guarded(name, &other))
		return other;
	/*
	 * smolagents looks at values, and calls os.system() without looking: a module that was
	 * allowed can be used, not taken apart.
	 */
	bool called = import_allowed(module_name) && !home_is(value, "builtins") &&
		      cell_calls_method();
	if (special < 0 || taken_away(module_name, name) ||
		(dangerous_function(value) && !called) ||
		(dangerous_home(value) && !dangerous_place(PyUnicode_AsUTF8(module_name)))) {
		PyErr_Clear();
		refuse_function(name);
		return NULL;
	}

	return Py_NewRef(value);
}

/* A name that was not copied. `self` is the real module. */
static PyObject *missing(PyObject *self, PyObject *name)
{
	PyObject *module_name = PyModule_GetNameObject(self), *value = NULL, *result = NULL;
	if (!module_name || !PyUnicode_CheckExact(name))
		goto out;
	if (is_private(name) && attribute_check(name) < 0) {
		/*
		 * Python itself asks copies for __path__ and the like, and for __all__ on behalf of
		 * a cell that imports *: copy_all() keeps it where the module has it
		 */
		if (!caller_is_cell() || PyUnicode_CompareWithASCIIString(name, "__all__") == 0) {
			PyErr_Clear();
			PyErr_Format(PyExc_AttributeError, "module '%U' has no attribute '%U'",
				module_name, name);
		}
		goto out;
	}

	policy_trust(true); /* we read it, to look at it */
	value = PyObject_GetAttr(self, name);
	policy_trust(false);
	if (!value) { /* without the real module in the exception */
		PyErr_Clear();
		PyObject *full = PyUnicode_FromFormat("%U.%U", module_name, name);
		value = full ? PyImport_GetModule(full) : NULL;
		Py_XDECREF(full);
	}

	if (value)
		result = module_value(module_name, name, value);
	else
		PyErr_Format(PyExc_AttributeError, "module '%U' has no attribute '%U'", module_name,
			name);
out:
	Py_XDECREF(module_name);
	Py_XDECREF(value);
	return result;
}

static getattrofunc original_read;

static PyObject *read_module(PyObject *self, PyObject *name)
{
	PyObject *value = original_read(self, name);
	if (value || !PyErr_ExceptionMatches(PyExc_AttributeError))
		return value;
	PyObject *type, *error, *trace;
	PyErr_Fetch(&type, &error, &trace);
	/* borrowed */
	PyObject *address = PyLong_FromVoidPtr(self),
		 *real = address ? PyDict_GetItemWithError(reals, address) : NULL;
	Py_XDECREF(address);
	if (!real) {
		PyErr_Restore(type, error, trace);
		return NULL;
	}

	Py_XDECREF(type);
	Py_XDECREF(error);
	Py_XDECREF(trace);
	return missing(real, name);
}

static int remember(PyObject *copy, PyObject *module)
{
	PyObject *address = PyLong_FromVoidPtr(copy);
	int r = address ? PyDict_SetItem(reals, address, module) : -1;
	Py_XDECREF(address);
	if (r == 0 && !original_read) {
		original_read = PyModule_Type.tp_getattro;
		PyModule_Type.tp_getattro = read_module;
	}
	return r;
}

static int copy_names(PyObject *from, PyObject *module_name, PyObject *to)
{
	PyObject *key, *value, *snapshot = PyDict_Copy(PyModule_GetDict(from));
	Py_ssize_t at = 0;
	int r = snapshot ? 0 : -1;

	while (r == 0 && PyDict_Next(snapshot, &at, &key, &value)) {
		if (!PyUnicode_CheckExact(key) || PyModule_Check(value) ||
			(is_private(key) && !keeps(key)))
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
	PyObject *copy = PyModule_NewObject(name), *dict = copy ? PyModule_GetDict(copy) : NULL;
	if (!dict || copy_names(module, name, dict) < 0 || copy_all(module, dict) < 0 ||
		PyDict_SetItem(copies, name, copy) < 0 || remember(copy, module) < 0)
		Py_CLEAR(copy);
	return copy;
}

PyObject *module_copy(PyObject *module)
{
	if (!PyModule_Check(module))
		/* what a library put in sys.modules in place of a module */
		return Py_NewRef(module);
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

int module_owner_check(PyObject *owner)
{
	PyObject *copy = PyModule_Check(owner) ? module_guard(owner) : NULL;
	int r = !PyModule_Check(owner) || copy == owner ? 0 : -1;
	if (copy && r < 0)
		refuse_module(owner); /* a real one, although it is on the list */
	Py_XDECREF(copy);
	return r;
}

PyObject *module_guard(PyObject *value)
{
	if (policy.languages && capsule_check(value) < 0)
		return NULL;
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
