/* Imports: the list, the cells' own __import__, and the words for what is not on it. */
#include <string.h>

#include "guest/policy/policy_internal.h"

/*
 * Modules that reach everything: a rule such as numpy.* does not mean them, only their own name
 * does.
 */
static const char *const never_below[] = { "numpy.ctypeslib", "numpy.distutils", "numpy.f2py",
	"numpy.testing", "numpy.compat", "pandas.testing", "pandas.util", "pandas.compat",
	"pandas.io.clipboard", "matplotlib.testing", "asyncio.subprocess",
	"numpy.linalg.lapack_lite", "numpy.setup", "pandas.core.computation",
	"matplotlib.sphinxext", NULL };

/* What is written and what was meant. */
static const char *const slips[][2] = { { "dataclass", "dataclasses" }, { "date", "datetime" },
	{ "regex", "re" }, { "np", "numpy" }, { "pd", "pandas" }, { "plt", "matplotlib.pyplot" },
	{ "stats", "statistics" }, { "maths", "math" }, { "rand", "random" },
	{ "itertool", "itertools" }, { "collection", "collections" }, { "functool", "functools" },
	{ "enums", "enum" }, { "type", "typing" }, { "types", "typing" },
	{ "datetimes", "datetime" }, { "pillow", "PIL" }, { "sklearn", "sklearn.*" } };

static bool equal(PyObject *a, const char *b)
{
	return PyUnicode_CompareWithASCIIString(a, b) == 0;
}

/* Whether `name` is, or lies below, `top`. */
static bool is_below(const char *name, const char *top, size_t len)
{
	return !strncmp(name, top, len) && (name[len] == '\0' || name[len] == '.');
}

bool import_leads_out(const char *name)
{
	for (const char *const *m = never_below; *m; m++)
		if (is_below(name, *m, strlen(*m)))
			return true;
	return false;
}

static bool hidden_below(const char *name, const char *rule, size_t len)
{
	for (const char *const *m = never_below; *m; m++)
		if (is_below(name, *m, strlen(*m)) &&
			!(strlen(*m) <= len && is_below(rule, *m, strlen(*m))))
			return true;
	return strstr(name, "._") != NULL && !strstr(rule, "._");
}

/* smolagents' tree: "a.b" allows a and a.b, "a.b.*" also what is below. */
static bool rule_allows(const char *rule, const char *name)
{
	size_t len = strlen(rule);
	/* its own name */
	if (!strcmp(rule, "*") || (!strcmp(rule, "os.path") && !strcmp(name, "posixpath")))
		return true;
	if (len > 2 && !strcmp(rule + len - 2, ".*"))
		return is_below(rule, name, strlen(name)) ||
		       (is_below(name, rule, len - 2) && !hidden_below(name, rule, len - 2));
	if (policy.table->top_imports && is_below(name, rule, len))
		return true;
	return is_below(rule, name, strlen(name));
}

int import_allowed(PyObject *name)
{
	const char *text = PyUnicode_CheckExact(name) ? PyUnicode_AsUTF8(name) : NULL;
	if (!text) {
		PyErr_Clear();
		return 0;
	}

	if (policy.all_imports)
		return 1;
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(policy.imports); i++) {
		const char *rule = PyUnicode_AsUTF8(PyList_GET_ITEM(policy.imports, i));
		if (rule && rule_allows(rule, text))
			return 1;
	}

	PyErr_Clear();
	return !strcmp(text, "__future__");
}

static PyObject *remedy_for(PyObject *name)
{
	const char *text = PyUnicode_AsUTF8(name);
	for (size_t i = 0; text && i < sizeof(slips) / sizeof(slips[0]); i++)
		if (!strcmp(slips[i][0], text))
			return PyUnicode_FromFormat("Did you mean `%s`?", slips[i][1]);
	const char *dot = text ? strchr(text, '.') : NULL;
	PyObject *top = dot ? PyUnicode_DecodeUTF8(text, dot - text, NULL) : NULL;
	PyObject *words =
		top && import_allowed(top)
			? PyUnicode_FromFormat(
				  "`%U` is allowed and what is below it is not: ask for %U.* in additional_imports.",
				  top, top)
			: PyUnicode_FromString(
				  "Use one of the authorized modules, or make the session with this one in additional_imports.");
	Py_XDECREF(top);
	return words;
}

int import_refuse(PyObject *name, bool from)
{
	PyObject *words = remedy_for(name), *list = PyObject_Repr(policy.imports);
	const char *remedy = words ? PyUnicode_AsUTF8(words) : NULL;

	if (policy.base == PROFILE_TINYAGENT)
		violation(PyExc_RuntimeError, POLICY_IMPORT, remedy,
			from ? "Import from '%U' not allowed" : "Import '%U' not allowed", name);
	else
		violation(policy.base == PROFILE_SMOLAGENTS ? NULL : PyExc_ImportError,
			POLICY_IMPORT, remedy,
			from ? "Import from %U is not allowed. Authorized imports are: %V"
			     : "Import of %U is not allowed. Authorized imports are: %V",
			name, list, "[…]");
	Py_XDECREF(words);
	Py_XDECREF(list);
	return -1;
}

PyObject *import_real(const char *name)
{
	PyObject *text = PyUnicode_FromString(name),
		 *top = text ? PyImport_ImportModuleLevelObject(text, NULL, NULL, Py_None, 0)
			     : NULL;
	PyObject *module = top ? PyImport_GetModule(text) : NULL;
	Py_XDECREF(text);
	Py_XDECREF(top);
	return module;
}

/* Whether there is a module of this name, without running it. */
static bool exists(PyObject *name)
{
	PyObject *util = import_real("importlib.util");
	PyObject *spec = util ? PyObject_CallMethod(util, "find_spec", "O", name) : NULL;
	bool yes = spec && spec != Py_None;
	PyErr_Clear();
	Py_XDECREF(util);
	Py_XDECREF(spec);
	return yes;
}

bool import_exists(PyObject *name)
{
	Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1);
	PyObject *top = dot > 0 ? PyUnicode_Substring(name, 0, dot) : Py_NewRef(name);
	policy_trust(true);
	bool yes = top && exists(top);
	policy_trust(false);
	Py_XDECREF(top);
	return yes;
}

/* Brings in what `from package import name` names, where it is a module that is allowed. */
static int import_names(PyObject *package, PyObject *name, PyObject *names)
{
	PyObject *list = PySequence_List(names);
	for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
		PyObject *item = PyList_GET_ITEM(list, i), *full = NULL, *found;
		if (!PyUnicode_CheckExact(item) || equal(item, "*"))
			continue;
		if ((found = PyObject_GetAttr(package, item))) {
			Py_DECREF(found);
			continue;
		}
		PyErr_Clear();
		full = PyUnicode_FromFormat("%U.%U", name, item);
		bool allowed = full && import_allowed(full);
		PyObject *module = allowed ? PyImport_ImportModuleLevelObject(
						     full, NULL, NULL, Py_None, 0)
					   : NULL;
		if (full && !allowed && exists(full))
			import_refuse(full, false);
		if (!module && PyErr_Occurred() &&
			(!allowed || !PyErr_ExceptionMatches(PyExc_ImportError))) {
			Py_XDECREF(full);
			Py_DECREF(list);
			return -1;
		}
		PyErr_Clear();
		Py_XDECREF(module);
		Py_XDECREF(full);
	}

	Py_XDECREF(list);
	return 0;
}

/*
 * What the statement gets: the top of a dotted name, or with names to take from it the module
 * itself.
 */
static PyObject *import_for_cell(PyObject *name, PyObject *names)
{
	bool from = names && PyObject_IsTrue(names) == 1;
	arrays_name(true); /* classes of libraries may have it */
	PyObject *leaf = PyImport_ImportModuleLevelObject(name, NULL, NULL, Py_None, 0);
	arrays_name(false);
	if (!leaf || tcl_guard() < 0 || pandas_guard() < 0 || constructors_guard() < 0 ||
		loops_guard() < 0 || arrays_guard() < 0 || bits_guard() < 0 || modules_shut() < 0) {
		Py_XDECREF(leaf);
		return NULL;
	}

	if (from) {
		PyObject *module = PyImport_GetModule(name);
		Py_DECREF(leaf);
		leaf = module;
		if (leaf && import_names(leaf, name, names) < 0)
			Py_CLEAR(leaf);
	}

	if (!leaf && !PyErr_Occurred())
		PyErr_Format(PyExc_ImportError, "no module %R", name);
	PyObject *copy = leaf ? module_copy(leaf) : NULL;
	Py_XDECREF(leaf);
	return copy;
}

static PyObject *cell_import(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keys[] = { (char *)"name", (char *)"globals", (char *)"locals",
		(char *)"fromlist", (char *)"level", NULL };
	PyObject *name, *globals = NULL, *locals = NULL, *names = NULL;
	int level = 0;

	(void)self;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|OOOi:__import__", keys, &name, &globals,
		    &locals, &names, &level))
		return NULL;
	/*
	 * PyImport_Import(): C code of a library imports for itself while the cell's frame is on
	 * top. Statements give a tuple or None.
	 */
	if (names && PyList_CheckExact(names) && PyUnicode_CheckExact(name))
		return PyImport_ImportModuleLevelObject(name, NULL, NULL, names, 0);
	if (!PyUnicode_CheckExact(name) || level != 0)
		return violation_null(PyExc_ImportError, POLICY_IMPORT,
			"Import modules by their full names.", "relative imports are not allowed");
	if (!import_allowed(name)) {
		import_refuse(name, names && PyObject_IsTrue(names) == 1);
		return NULL;
	}

	if (!policy.languages)
		return PyImport_ImportModuleLevelObject(
			name, NULL, NULL, names ? names : Py_None, 0);
	return import_for_cell(name, names);
}

/* ---- names that cells give to libraries ------------------------------------------------ */

/*
 * The first finder on sys.meta_path, which cells do not see. It finds nothing, but is asked for
 * every module that is not there yet, whichever function of whichever library imports it.
 */
static PyObject *look_at_name(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)self, (void)kwargs;
	/* borrowed */
	PyObject *name = PyTuple_GET_SIZE(args) && PyUnicode_CheckExact(PyTuple_GET_ITEM(args, 0))
				 ? PyTuple_GET_ITEM(args, 0)
				 : NULL;
	if (PyTuple_GET_SIZE(args) && !name)
		return PyErr_Format(PyExc_TypeError, "the name of a module must be a text");
	if (!name || trusted() || policy.all_imports || !import_named_by_cell(name) ||
		import_allowed(name) || equal(name, "glovebox_inline"))
		/* the last one is the backend that matplotlib has here, by a setting */
		Py_RETURN_NONE;
	/*
	 * An ImportError under every profile: libraries go on without a module that is not there.
	 */
	return violation_null(PyExc_ImportError, POLICY_IMPORT,
		"Use one of the authorized modules, or make the session with this one in additional_imports.",
		"Import of %U by a library is not allowed", name);
}

/* importlib.import_module(), also for modules that are there. */
static PyObject *real_import;

static PyObject *look_and_import(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *seen = look_at_name(self, args, NULL);
	Py_XDECREF(seen);
	return seen ? PyObject_Call(real_import, args, kwargs) : NULL;
}

static PyMethodDef import_module_def = { "_gcd_import",
	(PyCFunction)(void (*)(void))look_and_import, METH_VARARGS | METH_KEYWORDS, NULL };

static int replace_import_module(void)
{
	PyObject *bootstrap = import_real("_frozen_importlib"),
		 *checked = PyCFunction_New(&import_module_def, NULL);
	real_import = bootstrap ? PyObject_GetAttrString(bootstrap, import_module_def.ml_name)
				: NULL;
	int r = real_import && checked
			? PyObject_SetAttrString(bootstrap, import_module_def.ml_name, checked)
			: -1;
	Py_XDECREF(bootstrap);
	Py_XDECREF(checked);
	return r;
}

static PyMethodDef finder_methods[] = {
	{ "find_spec", (PyCFunction)(void (*)(void))look_at_name, METH_VARARGS | METH_KEYWORDS,
		NULL },
	{ NULL, NULL, 0, NULL },
};
static PyTypeObject finder_type = {
	PyVarObject_HEAD_INIT(NULL, 0).tp_name = "glovebox.Finder",
	.tp_basicsize = sizeof(PyObject),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.tp_methods = finder_methods,
};

int imports_watch(void)
{
	PyObject *finders = PySys_GetObject("meta_path"); /* borrowed */
	if (!finders || !PyList_Check(finders) || PyType_Ready(&finder_type) < 0)
		return -1;
	PyObject *finder = PyObject_New(PyObject, &finder_type);
	int r = finder ? PyList_Insert(finders, 0, finder) : -1;
	Py_XDECREF(finder);
	return r < 0 ? r : replace_import_module();
}

static PyMethodDef import_def = { "__import__", (PyCFunction)(void (*)(void))cell_import,
	METH_VARARGS | METH_KEYWORDS, NULL };

PyObject *import_function(void)
{
	return PyCFunction_New(&import_def, NULL);
}
