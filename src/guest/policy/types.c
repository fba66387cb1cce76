/*
 * Classes that code makes: some special names of a class are read by C code in ways no guard can follow.
 *
 * numpy takes memory from whatever __array_interface__ says; a class pattern reads the attributes that __match_args__ names, of anything that the
 * class calls its instance; __getattr__ answers both. Class statements were looked at before they ran, but type(name, bases, dict)
 * and its kin make classes from a dict. So type's own constructor looks at every class that is made for a cell.
 */
#include <string.h>

#include "guest/policy/internal.h"

static newfunc original_new;

/* A module that is imported defines classes of its own; what a cell asks for does not have the importer in between. */
bool asked_by_cell(void)
{
	bool cell = true;
	PyFrameObject *f = PyEval_GetFrame();
	Py_XINCREF(f);
	while (f) {
		PyCodeObject *code = PyFrame_GetCode(f);
		const char *file = PyUnicode_AsUTF8(code->co_filename);
		bool importer = file && !strncmp(file, "<frozen importlib", 17), own = !file || !strncmp(file, "<cell ", 6);
		Py_DECREF(code);
		if (importer || own) {
			cell = !importer;
			break;
		}
		PyFrameObject *back = PyFrame_GetBack(f);
		Py_DECREF(f);
		f = back;
	}
	Py_XDECREF(f);
	PyErr_Clear();
	return cell;
}

static int refuse(PyObject *name)
{
	return violation(NULL, POLICY_NAME, "Leave it out of the class.", "Forbidden access to dunder attribute: %U", name);
}

/* Only a function that begins with the guard that the static pass put there. */
static int check_hook(PyObject *name, PyObject *value)
{
	PyObject *consts = PyFunction_Check(value) ? ((PyCodeObject *)PyFunction_GET_CODE(value))->co_consts : NULL;
	for (Py_ssize_t i = 0; consts && i < PyTuple_GET_SIZE(consts); i++)
		if (guard_is(PyTuple_GET_ITEM(consts, i), GUARD_HOOK))
			return 0;
	return refuse(name);
}

static int check_match_args(PyObject *name, PyObject *value)
{
	if (!PyTuple_CheckExact(value))
		return refuse(name);
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
		PyObject *item = PyTuple_GET_ITEM(value, i);
		if (attribute_check(item) < 0)
			return -1;
		if (PyUnicode_CompareWithASCIIString(item, "obj") == 0 || PyUnicode_READ_CHAR(item, 0) == '_')
			return refuse(name);
	}
	return 0;
}

static bool is(PyObject *name, const char *text)
{
	return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

static int check_entry(PyObject *name, PyObject *value)
{
	if (!PyUnicode_Check(name) || PyUnicode_GET_LENGTH(name) < 5 || !name_is_dunder(name))
		return 0;
	if (is(name, "__array_interface__") || is(name, "__array_struct__") || is(name, "__cuda_array_interface__") || is(name, "__dlpack__") ||
		is(name, "__array_finalize__") || is(name, "__buffer__"))
		return refuse(name);
	if (is(name, "__getattr__") || is(name, "__getattribute__"))
		return check_hook(name, value);
	return is(name, "__match_args__") ? check_match_args(name, value) : 0;
}

static PyObject *checked_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *dict = PyTuple_GET_SIZE(args) == 3 ? PyTuple_GET_ITEM(args, 2) : NULL, *name, *value;
	Py_ssize_t at = 0;
	if (!dict || !PyDict_Check(dict) || policy.trust || !asked_by_cell())
		return original_new(type, args, kwargs);
	while (PyDict_Next(dict, &at, &name, &value))
		if (check_entry(name, value) < 0)
			return NULL;
	return original_new(type, args, kwargs);
}

int types_guard(void)
{
	if (original_new)
		return 0;
	original_new = PyType_Type.tp_new;
	PyType_Type.tp_new = checked_new;
	return 0;
}
