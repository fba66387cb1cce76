/*
 * Classes that code makes: some special names of a class are read by C code in ways no guard can
 * follow.
 *
 * numpy takes memory from whatever __array_interface__ says; a class pattern reads the attributes
 * that __match_args__ names, of anything that the class calls its instance; __getattr__ answers
 * both. Class statements were looked at before they ran, but type(name, bases, dict) and its kin
 * make classes from a dict. So type's own constructor looks at every class that is made for a cell.
 */
#include <string.h>

#include "guest/policy/policy_internal.h"

static newfunc original_new;

static int refuse(PyObject *name)
{
	return violation(NULL, POLICY_NAME, "Leave it out of the class.",
		"Forbidden access to dunder attribute: %U", name);
}

/* Only a function that begins with the guard that the static pass put there. */
static int check_hook(PyObject *name, PyObject *value)
{
	PyObject *consts = PyFunction_Check(value)
				   ? ((PyCodeObject *)PyFunction_GET_CODE(value))->co_consts
				   : NULL;
	for (Py_ssize_t i = 0; consts && i < PyTuple_GET_SIZE(consts); i++)
		if (guard_is(PyTuple_GET_ITEM(consts, i), GUARD_HOOK))
			return 0;
	return refuse(name);
}

/* How copy and pickle take objects apart and put others together: only libraries' own. */
static int check_state_maker(PyObject *name, PyObject *value)
{
	return PyFunction_Check(value) && !code_is_cells((PyCodeObject *)PyFunction_GET_CODE(value))
		       ? 0
		       : refuse(name);
}

static int check_match_args(PyObject *name, PyObject *value)
{
	if (!PyTuple_CheckExact(value))
		return refuse(name);
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
		PyObject *item = PyTuple_GET_ITEM(value, i);
		if (attribute_check(item) < 0)
			return -1;
		if (PyUnicode_CompareWithASCIIString(item, "obj") == 0 ||
			PyUnicode_READ_CHAR(item, 0) == '_')
			return refuse(name);
	}
	return 0;
}

static bool is(PyObject *name, const char *text)
{
	return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

/* dataclasses makes fields, and so names for patterns, of them. */
static int check_annotations(PyObject *name, PyObject *value)
{
	PyObject *key, *type;
	Py_ssize_t at = 0;
	if (!PyDict_CheckExact(value))
		return refuse(name);
	while (PyDict_Next(value, &at, &key, &type))
		if (!PyUnicode_CheckExact(key) || (name_is_dunder(key) && attribute_check(key) < 0))
			return PyErr_Occurred() ? -1 : refuse(name);
	return 0;
}

static int check_entry(PyObject *name, PyObject *value)
{
	if (!PyUnicode_Check(name) || PyUnicode_GET_LENGTH(name) < 5 || !name_is_dunder(name))
		return 0;
	if (is(name, "__array_interface__") || is(name, "__array_struct__") ||
		is(name, "__cuda_array_interface__") || is(name, "__dlpack__") ||
		is(name, "__array_finalize__") || is(name, "__buffer__"))
		return refuse(name);
	if (is(name, "__reduce__") || is(name, "__reduce_ex__") || is(name, "__setstate__") ||
		is(name, "__getstate__") || is(name, "__getnewargs__") ||
		is(name, "__getnewargs_ex__"))
		return check_state_maker(name, value);
	if (is(name, "__getattr__") || is(name, "__getattribute__"))
		return check_hook(name, value);
	if (is(name, "__annotations__"))
		return check_annotations(name, value);
	return is(name, "__match_args__") ? check_match_args(name, value) : 0;
}

static PyObject *checked_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *dict = PyTuple_GET_SIZE(args) == 3 ? PyTuple_GET_ITEM(args, 2) : NULL, *name,
		 *value;
	Py_ssize_t at = 0;
	if (!dict || !PyDict_Check(dict) || trusted() || !asked_by_cell())
		return original_new(type, args, kwargs);
	while (PyDict_Next(dict, &at, &name, &value))
		if (check_entry(name, value) < 0)
			return NULL;
	return original_new(type, args, kwargs);
}

/* ---- attributes of classes ---------------------------------------------- */

static setattrofunc original_set;

/*
 * Libraries set attributes of a cell's classes by names and with values that the cell gave them:
 * dataclasses.Field.name, Field.default.
 */
static int checked_set(PyObject *self, PyObject *name, PyObject *value)
{
	if (value && PyUnicode_Check(name) && name_is_dunder(name) && !trusted() &&
		asked_by_cell() && check_entry(name, value) < 0)
		return -1;
	return original_set(self, name, value);
}

/* The slot is copied into every metaclass that does not define it. */
static int replace_set(PyTypeObject *type)
{
	if (type->tp_setattro == original_set)
		type->tp_setattro = checked_set;
	PyObject *list = PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", type);
	int r = list ? 0 : -1;
	for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(list); i++)
		r = replace_set((PyTypeObject *)PyList_GET_ITEM(list, i));
	Py_XDECREF(list);
	return r;
}

static int setters_guard(void)
{
	original_set = PyType_Type.tp_setattro;
	replace_wrapped(&PyType_Type, "__setattr__", (void *)checked_set);
	replace_wrapped(&PyType_Type, "__delattr__", (void *)checked_set); /* the same slot */
	return replace_set(&PyType_Type);
}

/* ---- constructors that take names ------------------------------------- */

static newfunc original_getter, original_caller;

/* operator.attrgetter("a.b"), also where the class was found through type(). */
static int check_dotted(PyObject *text)
{
	PyObject *dot = PyUnicode_FromString("."),
		 *parts = dot && PyUnicode_CheckExact(text) ? PyUnicode_Split(text, dot, -1) : NULL;
	int r = parts ? 0 : attribute_check(text);

	for (Py_ssize_t i = 0; r == 0 && parts && i < PyList_GET_SIZE(parts); i++) {
		PyObject *part = PyList_GET_ITEM(parts, i);
		/* of an exception, by a reader that no guard sees */
		if (PyUnicode_CompareWithASCIIString(part, "obj") == 0)
			r = violation(NULL, POLICY_ATTRIBUTE, "Write a function that reads it.",
				"Forbidden access to attribute: obj");
		else if (caller_is_cell() || name_is_dunder(part) || attribute_inspects(part))
			r = attribute_check(part);
	}

	Py_XDECREF(dot);
	Py_XDECREF(parts);
	return r;
}

static PyObject *checked_getter(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	for (Py_ssize_t i = 0; !trusted() && asked_by_cell() && i < PyTuple_GET_SIZE(args); i++)
		if (check_dotted(PyTuple_GET_ITEM(args, i)) < 0)
			return NULL;
	return original_getter(type, args, kwargs);
}

static PyObject *checked_caller(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	if (PyTuple_GET_SIZE(args) && !trusted() && asked_by_cell() &&
		check_dotted(PyTuple_GET_ITEM(args, 0)) < 0)
		return NULL;
	return original_caller(type, args, kwargs);
}

/*
 * Both read attributes in C, of whatever they are called with: a real module is nothing for them.
 */
static ternaryfunc original_get, original_call;

static PyObject *checked_apply(
	ternaryfunc original, PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *owner = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL; /* borrowed */
	if (owner && PyModule_Check(owner) && !trusted() && asked_by_cell() &&
		module_owner_check(owner) < 0)
		return NULL;
	PyObject *value = original(self, args, kwargs);
	if (value && PyCapsule_CheckExact(value) && asked_by_cell() && capsule_check(value) < 0)
		Py_CLEAR(value);
	return value;
}

static PyObject *checked_get(PyObject *self, PyObject *args, PyObject *kwargs)
{
	return checked_apply(original_get, self, args, kwargs);
}

static PyObject *checked_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
	return checked_apply(original_call, self, args, kwargs);
}

static void replace_call(
	PyObject *module, const char *name, ternaryfunc *original, ternaryfunc checked)
{
	PyObject *type = module ? PyObject_GetAttrString(module, name) : NULL;
	if (type && PyType_Check(type) && !*original) {
		PyTypeObject *t = (PyTypeObject *)type;
		*original = t->tp_call;
		t->tp_call = checked;
		t->tp_flags &= ~Py_TPFLAGS_HAVE_VECTORCALL; /* which would go past it */
	}
	PyErr_Clear();
	Py_XDECREF(type);
}

void *replace_wrapped(PyTypeObject *type, const char *name, void *function)
{
	PyObject *descriptor = PyDict_GetItemString(type->tp_dict, name); /* borrowed */
	if (!descriptor || !Py_IS_TYPE(descriptor, &PyWrapperDescr_Type))
		return NULL;
	void *before = ((PyWrapperDescrObject *)descriptor)->d_wrapped;
	((PyWrapperDescrObject *)descriptor)->d_wrapped = function;
	return before;
}

void replace_new(PyObject *module, const char *name, newfunc *original, newfunc checked)
{
	PyObject *type = module ? PyObject_GetAttrString(module, name) : NULL;
	if (type && PyType_Check(type) && !*original) {
		*original = ((PyTypeObject *)type)->tp_new;
		((PyTypeObject *)type)->tp_new = checked;
	}
	PyErr_Clear();
	Py_XDECREF(type);
}

int constructors_guard(void)
{
	PyObject *modules = PyImport_GetModuleDict(); /* borrowed, as what it holds */
	replace_new(PyDict_GetItemString(modules, "_operator"), "attrgetter", &original_getter,
		checked_getter);
	replace_new(PyDict_GetItemString(modules, "_operator"), "methodcaller", &original_caller,
		checked_caller);
	replace_call(PyDict_GetItemString(modules, "_operator"), "attrgetter", &original_get,
		checked_get);
	replace_call(PyDict_GetItemString(modules, "_operator"), "methodcaller", &original_call,
		checked_call);
	return 0;
}

int types_guard(void)
{
	constructors_guard();
	if (original_new)
		return 0;
	original_new = PyType_Type.tp_new;
	PyType_Type.tp_new = checked_new;
	return setters_guard();
}
