/*
 * The cells' own dict of builtins: what the profile gives, with C functions in place of those that
 * take names of attributes.
 */
#include <string.h>

#include "guest/policy/policy_internal.h"
#include "guest/run/final_answer.h"

static PyObject *real; /* dict of the builtins module */

PyObject *builtin_real(const char *name)
{
	return PyDict_GetItemString(real, name);
}

/* ---- attributes by name ------------------------------------------------------ */

/*
 * Names that passed every check that depends on the name alone, found by their address: a text that
 * is held here stays what it is. Loops ask for the same few.
 */
enum { KNOWN_NAMES = 64, KNOWN_LENGTH = 64 };
static PyObject *known_names[KNOWN_NAMES];

static PyObject **place_of(PyObject *name)
{
	return &known_names[((uintptr_t)name >> 4) % KNOWN_NAMES];
}

/* Only plain public names: for others the object matters too. */
static void remember_name(PyObject *name)
{
	Py_ssize_t n = PyUnicode_GET_LENGTH(name);
	if (n && n <= KNOWN_LENGTH && PyUnicode_READ_CHAR(name, 0) != '_' &&
		PyUnicode_CompareWithASCIIString(name, "obj") != 0)
		Py_XSETREF(*place_of(name), Py_NewRef(name));
}

/* attribute_check() with a memory. */
static int check_plain_name(PyObject *name)
{
	if (*place_of(name) == name)
		return 0;
	if (attribute_check(name) < 0)
		return -1;
	remember_name(name);
	return 0;
}

static int check_read(PyObject *object, PyObject *name)
{
	if (*place_of(name) == name)
		return 0;
	if (check_plain_name(name) < 0)
		return -1;
	if (PyExceptionInstance_Check(object) && PyUnicode_CompareWithASCIIString(name, "obj") == 0)
		return violation(NULL, POLICY_ATTRIBUTE, "Use str(e) to see what was wrong.",
			"\"obj\" of an exception cannot be read");
	return private_check(object, name);
}

static int check_owner(PyObject *object)
{
	return PyModule_Check(object) ? module_owner_check(object) : 0;
}

/* The attribute, or NULL: without an error where there is none and `optional`. */
static PyObject *look_up(PyObject *object, PyObject *name, bool optional)
{
	PyObject *value = NULL;
	if (!optional)
		return PyObject_GetAttr(object, name);
#if PY_VERSION_HEX >= 0x030d0000
	PyObject_GetOptionalAttr(object, name, &value);
#else
	_PyObject_LookupAttr(object, name, &value);
#endif
	return value;
}

static PyObject *guard_getattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n < 2 || n > 3)
		return PyErr_Format(PyExc_TypeError, "getattr expected %s, got %zd",
			n < 2 ? "at least 2 arguments" : "at most 3 arguments", n);
	if (check_read(args[0], args[1]) < 0 || check_owner(args[0]) < 0)
		return NULL;
	PyObject *value = look_up(args[0], args[1], n == 3);
	if (!value)
		return n == 3 && !PyErr_Occurred() ? Py_NewRef(args[2]) : NULL;
	if (!PyModule_Check(value) && !PyCapsule_CheckExact(value))
		return value;
	PyObject *checked = module_guard(value);
	Py_DECREF(value);
	return checked;
}

static PyObject *guard_hasattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n != 2)
		return PyErr_Format(PyExc_TypeError, "hasattr expected 2 arguments, got %zd", n);
	if (check_plain_name(args[1]) < 0 || check_owner(args[0]) < 0)
		return NULL;
	PyObject *value = look_up(args[0], args[1], true);
	if (!value && PyErr_Occurred())
		return NULL;
	Py_XDECREF(value);
	return PyBool_FromLong(value != NULL);
}

static int check_write(PyObject *object, PyObject *name)
{
	if (*place_of(name) != name &&
		(check_plain_name(name) < 0 || private_check(object, name) < 0))
		return -1;
	return check_owner(object);
}

static PyObject *guard_setattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n != 3)
		return PyErr_Format(PyExc_TypeError, "setattr expected 3 arguments, got %zd", n);
	if (check_write(args[0], args[1]) < 0 || PyObject_SetAttr(args[0], args[1], args[2]) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *guard_delattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n != 2)
		return PyErr_Format(PyExc_TypeError, "delattr expected 2 arguments, got %zd", n);
	if (check_write(args[0], args[1]) < 0 || PyObject_SetAttr(args[0], args[1], NULL) < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* Only what may be read by these names. */
static PyObject *guard_dir(PyObject *self, PyObject *object)
{
	(void)self;
	PyObject *names = PyObject_Dir(object), *out = PyList_New(0);
	for (Py_ssize_t i = 0; names && out && i < PyList_GET_SIZE(names); i++) {
		PyObject *name = PyList_GET_ITEM(names, i);
		bool shown = PyUnicode_CheckExact(name) && PyUnicode_GET_LENGTH(name) &&
			     PyUnicode_READ_CHAR(name, 0) != '_';
		if (shown && PyList_Append(out, name) < 0)
			Py_CLEAR(out);
	}
	if (!names)
		Py_CLEAR(out);
	Py_XDECREF(names);
	return out;
}

/* A copy, of an instance's own variables only: the dicts of classes and modules hold everything. */
static PyObject *guard_vars(PyObject *self, PyObject *object)
{
	(void)self;
	PyObject *dict = PyType_Check(object) || PyModule_Check(object)
				 ? NULL
				 : PyObject_GetAttrString(object, "__dict__");
	PyObject *out = dict && PyDict_CheckExact(dict) ? PyDict_Copy(dict) : NULL;
	Py_XDECREF(dict);
	if (!out)
		PyErr_SetString(PyExc_TypeError,
			"vars() argument must be an object with variables of its own");
	return out;
}

/* ---- tools of OpenEnv's ------------------------------------------------------- */

static PyObject *from_support(const char *name, PyObject *args)
{
	/* borrowed */
	PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "_glovebox");
	PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
	PyObject *r = function ? PyObject_CallObject(function, args) : NULL;
	Py_XDECREF(function);
	return r;
}

static PyObject *format_exc(PyObject *self, PyObject *args)
{
	(void)self;
	return from_support("format_exc", args);
}

static PyObject *safe_json_dumps(PyObject *self, PyObject *args)
{
	(void)self;
	return from_support("safe_json_dumps", args);
}

/* ---- the dict ------------------------------------------------------------------ */

static PyMethodDef guarded[] = {
	{ "getattr", (PyCFunction)(void (*)(void))guard_getattr, METH_FASTCALL, NULL },
	{ "hasattr", (PyCFunction)(void (*)(void))guard_hasattr, METH_FASTCALL, NULL },
	{ "setattr", (PyCFunction)(void (*)(void))guard_setattr, METH_FASTCALL, NULL },
	{ "delattr", (PyCFunction)(void (*)(void))guard_delattr, METH_FASTCALL, NULL },
	{ "dir", guard_dir, METH_O, NULL },
	{ "vars", guard_vars, METH_O, NULL },
	{ "print", (PyCFunction)(void (*)(void))print_capped, METH_FASTCALL | METH_KEYWORDS, NULL },
};

static PyMethodDef tools[] = {
	{ "format_exc", format_exc, METH_NOARGS,
		"The traceback of the exception that is handled, as text." },
	{ "safe_json_dumps", safe_json_dumps, METH_VARARGS,
		"The value as JSON; parts that JSON cannot express are given as their repr." },
};

static PyMethodDef *find_guarded(const char *name)
{
	for (size_t i = 0; i < sizeof(guarded) / sizeof(guarded[0]); i++)
		if (!strcmp(guarded[i].ml_name, name))
			return &guarded[i];
	return NULL;
}

bool builtin_guarded(PyObject *name, PyObject **ret)
{
	const char *text = PyUnicode_AsUTF8(name);
	PyMethodDef *def = text ? find_guarded(text) : NULL;
	if (def)
		*ret = PyCFunction_New(def, NULL);
	PyErr_Clear();
	return def != NULL;
}

static PyObject *guarded_builtin(const char *name)
{
	PyMethodDef *def = find_guarded(name);
	return def ? PyCFunction_New(def, NULL) : Py_XNewRef(builtin_real(name));
}

static int add_builtin(const char *name)
{
	PyObject *value = guarded_builtin(name);
	/* not every Python has every exception */
	int r = value ? PyDict_SetItemString(policy.builtins, name, value) : 0;
	Py_XDECREF(value);
	return r;
}

static int add_mathematics(void)
{
	static const char *const names[] = { "ceil", "floor", "log", "exp", "sin", "cos", "tan",
		"asin", "acos", "atan", "atan2", "degrees", "radians", "sqrt" };
	PyObject *math = import_real("math");
	int r = math ? 0 : -1;
	for (size_t i = 0; r == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		PyObject *function = PyObject_GetAttrString(math, names[i]);
		r = function ? PyDict_SetItemString(policy.builtins, names[i], function) : -1;
		Py_XDECREF(function);
	}
	Py_XDECREF(math);
	return r;
}

static int add_functions(PyMethodDef *defs, size_t n)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		PyObject *function = PyCFunction_New(&defs[i], NULL);
		r = function ? PyDict_SetItemString(policy.builtins, defs[i].ml_name, function)
			     : -1;
		Py_XDECREF(function);
	}
	return r;
}

static int add_asked_for(void)
{
	PyObject *names = PySequence_List(policy.more_builtins);
	int r = names ? 0 : -1;
	for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(names); i++) {
		const char *name = PyUnicode_AsUTF8(PyList_GET_ITEM(names, i));
		r = name ? add_builtin(name) : -1;
	}
	Py_XDECREF(names);
	return r;
}

static int drop_refused(void)
{
	PyObject *names = PySequence_List(policy.refused);
	int r = names ? 0 : -1;
	for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(names); i++)
		if (PyDict_DelItem(policy.builtins, PyList_GET_ITEM(names, i)) < 0)
			PyErr_Clear(); /* an attribute of a module, or no builtin of this profile */
	Py_XDECREF(names);
	return r;
}

static int add_table(void)
{
	int r = 0;
	for (const char *const *b = policy.table->builtins; r == 0 && b && *b; b++)
		r = add_builtin(*b);
	if (r == 0 && policy.base == PROFILE_SMOLAGENTS)
		r = add_mathematics();
	if (r == 0 && (policy.base == PROFILE_SMOLAGENTS || policy.base == PROFILE_RESTRICTED))
		r = add_functions(tools, sizeof(tools) / sizeof(tools[0]));
	if (r == 0 && policy.base == PROFILE_RESTRICTED)
		r = utilities_add(policy.builtins);
	if (r == 0 && policy.base == PROFILE_TINYAGENT)
		r = tinyagent_add_builtins(policy.builtins);
	return r == 0 ? final_answer_add_builtins(policy.builtins) : r;
}

/* ---- open, for C code ------------------------------------------------------------- */

/*
 * numpy looks up open() in the builtins of the calling frame, which is the frame of the cell. So
 * open() stays in these builtins, for numpy only: the static pass refuses the name in the code of a
 * cell, and the audit hook checks the path of the file.
 */
static bool open_is_hidden;

bool builtin_given(PyObject *name)
{
	if (open_is_hidden && PyUnicode_CompareWithASCIIString(name, "open") == 0)
		return false;
	return PyDict_Contains(policy.builtins, name) == 1;
}

bool builtin_hidden(PyObject *name)
{
	return open_is_hidden && PyUnicode_CompareWithASCIIString(name, "open") == 0;
}

bool builtin_is_hidden(PyObject *value)
{
	return open_is_hidden && value == builtin_real("open");
}

static int hide_open(void)
{
	if (!policy.languages || PyDict_GetItemString(policy.builtins, "open") ||
		!builtin_real("open"))
		return 0;
	open_is_hidden = true;
	return PyDict_SetItemString(policy.builtins, "open", builtin_real("open"));
}

int builtins_make(void)
{
	PyObject *module = PyImport_ImportModule("builtins");
	real = module ? PyModule_GetDict(module) : NULL;
	Py_XDECREF(module); /* sys.modules keeps it, and our reference the dict */
	Py_XINCREF(real);
	if (!real)
		return -1;
	policy.builtins = policy.table->builtins ? PyDict_New() : PyDict_Copy(real);
	if (!policy.builtins || (policy.table->builtins && add_table() < 0) || add_asked_for() < 0)
		return -1;
	PyObject *import = import_function();
	int r = import ? PyDict_SetItemString(policy.builtins, "__import__", import) : -1;
	Py_XDECREF(import);
	if (r == 0)
		r = drop_refused();
	return r == 0 ? hide_open() : -1;
}
