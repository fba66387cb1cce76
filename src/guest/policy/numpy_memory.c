/*
 * numpy and memory: whatever tells it where its bytes lie could tell it anything.
 *
 * An object hands memory to numpy by an attribute, which C code looks for in instances, classes and
 * through __getattr__ hooks of libraries: there are more ways to give an object an attribute of any
 * name than could be closed one by one. So the name itself is changed: the interned text that
 * numpy, its own types and libraries loaded so far share is the same object for all of them, and
 * found by its address; a text that a cell makes is another one, and no longer equal to it.
 */
#include <string.h>

#include "guest/policy/policy_internal.h"

static const char interface_name[] = "__array_interface__";
static PyObject *name_object; /* the interned text, for the life of the process */

void arrays_name(bool known)
{
	if (!name_object)
		return;
	char *text = (char *)PyUnicode_1BYTE_DATA(name_object);
	/* its hash, computed long ago, stays what numpy's types know it by */
	text[2] = known ? interface_name[2] : 'A';
}

static int take_name(void)
{
	if (name_object || !PyDict_GetItemString(PyImport_GetModuleDict(), "numpy"))
		return 0;
	PyObject *text = PyUnicode_InternFromString(interface_name);
	if (!text || PyObject_Hash(text) == -1)
		return -1;
	name_object = text;
	arrays_name(false);
	return 0;
}

/* ---- constructors and pickled states ------------------------------------------------- */

static newfunc original_array;
static PyObject *array_state, *dtype_state; /* the real __setstate__ of both */

static bool has_objects(PyObject *dtype)
{
	PyObject *yes = PyObject_GetAttrString(dtype, "hasobject");
	bool plain = yes == Py_False;
	Py_XDECREF(yes);
	PyErr_Clear();
	return !plain;
}

static PyObject *refuse_memory(void)
{
	return violation_null(NULL, POLICY_NATIVE, "Make the array from a list.",
		"memory cannot be read as objects");
}

/* An offset before the buffer is memory of somebody else's, and numpy looks at its end only. */
static bool lies_before(PyObject *args, PyObject *kwargs)
{
	PyObject *offset = PyTuple_GET_SIZE(args) > 3 ? PyTuple_GET_ITEM(args, 3)
			   : kwargs                   ? PyDict_GetItemString(kwargs, "offset")
						      : NULL;
	if (!offset)
		return false;
	/* another's __index__ may answer differently the next time */
	Py_ssize_t n = PyLong_CheckExact(offset) ? PyLong_AsSsize_t(offset) : -1;
	PyErr_Clear();
	return n < 0;
}

/*
 * numpy.ndarray(shape, dtype, buffer, offset): bytes as objects would be addresses of the code's
 * choice.
 */
static PyObject *checked_array(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *dtype = PyTuple_GET_SIZE(args) > 1 ? PyTuple_GET_ITEM(args, 1)
			  : kwargs                   ? PyDict_GetItemString(kwargs, "dtype")
						     : NULL;
	PyObject *buffer = PyTuple_GET_SIZE(args) > 2 ? PyTuple_GET_ITEM(args, 2)
			   : kwargs                   ? PyDict_GetItemString(kwargs, "buffer")
						      : NULL;

	if (buffer && buffer != Py_None && lies_before(args, kwargs))
		return violation_null(NULL, POLICY_NATIVE,
			"Give a plain number of bytes from the buffer's beginning.",
			"an array cannot lie outside its buffer");
	if (!buffer || buffer == Py_None || !dtype)
		return original_array(type, args, kwargs);
	PyObject *numpy = import_real("numpy"),
		 *make = numpy ? PyObject_GetAttrString(numpy, "dtype") : NULL;
	PyObject *kind = make ? PyObject_CallOneArg(make, dtype) : NULL,
		 *objects = kind ? PyObject_GetAttrString(kind, "hasobject") : NULL;
	bool plain = objects == Py_False;
	/*
	 * What was looked at is what is used: a dtype can be made by anything with a dtype
	 * attribute.
	 */
	PyObject *options = plain && kwargs ? PyDict_Copy(kwargs) : PyDict_New(), *words = NULL,
		 *made = NULL;
	if (plain && options && PyTuple_GET_SIZE(args) > 1) {
		PyObject *list = PySequence_List(args);
		if (list && PyList_SetItem(list, 1, Py_NewRef(kind)) == 0)
			words = PyList_AsTuple(list);
		Py_XDECREF(list);
	} else if (plain && options && PyDict_SetItemString(options, "dtype", kind) == 0) {
		words = Py_NewRef(args);
	}

	if (words)
		made = original_array(type, words, options);
	else if (!plain && objects)
		refuse_memory();
	Py_XDECREF(words);
	Py_XDECREF(options);
	Py_XDECREF(objects);
	Py_XDECREF(kind);
	Py_XDECREF(make);
	Py_XDECREF(numpy);
	return made;
}

/* Number of elements of a shape, or -1. */
static Py_ssize_t elements(PyObject *shape)
{
	Py_ssize_t n = PyTuple_CheckExact(shape) ? 1 : -1;
	for (Py_ssize_t i = 0; n > 0 && i < PyTuple_GET_SIZE(shape); i++) {
		Py_ssize_t side = PyLong_CheckExact(PyTuple_GET_ITEM(shape, i))
					  ? PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i))
					  : -1;
		n = side < 0 || (side && n > PY_SSIZE_T_MAX / side) ? -1 : n * side;
	}
	PyErr_Clear();
	return n;
}

static PyObject *call_state(PyObject *original, PyObject *self, PyObject *state)
{
	return PyObject_CallFunctionObjArgs(original, self, state, NULL);
}

/* (version, shape, dtype, fortran, data): objects come as a list, which numpy does not count. */
static PyObject *checked_array_state(PyObject *self, PyObject *state)
{
	Py_ssize_t n = PyTuple_CheckExact(state) ? PyTuple_GET_SIZE(state) : 0;
	if (n < 4)
		return refuse_memory();
	PyObject *shape = PyTuple_GET_ITEM(state, n - 4), *dtype = PyTuple_GET_ITEM(state, n - 3),
		 *data = PyTuple_GET_ITEM(state, n - 1);
	if (has_objects(dtype) &&
		!(PyList_CheckExact(data) && PyList_GET_SIZE(data) == elements(shape)))
		return refuse_memory();
	return call_state(array_state, self, state);
}

/*
 * (version, order, subdtype, names, fields, size, alignment, flags…): fields could lie anywhere,
 * and be objects that nobody knows of.
 */
static PyObject *checked_dtype_state(PyObject *self, PyObject *state)
{
	Py_ssize_t n = PyTuple_CheckExact(state) ? PyTuple_GET_SIZE(state) : 0;
	bool plain = n >= 7 && PyTuple_GET_ITEM(state, 2) == Py_None &&
		     PyTuple_GET_ITEM(state, 3) == Py_None && PyTuple_GET_ITEM(state, 4) == Py_None;
	long size = plain && PyLong_CheckExact(PyTuple_GET_ITEM(state, 5))
			    ? PyLong_AsLong(PyTuple_GET_ITEM(state, 5))
			    : -2;
	PyErr_Clear();
	return size >= -1 && size < 1 << 30 ? call_state(dtype_state, self, state)
					    : refuse_memory();
}

static PyMethodDef state_defs[] = {
	{ "__setstate__", checked_array_state, METH_O, NULL },
	{ "__setstate__", checked_dtype_state, METH_O, NULL },
};

static int replace_method(PyObject *type, PyMethodDef *def, PyObject **original)
{
	PyTypeObject *t = PyType_Check(type) ? (PyTypeObject *)type : NULL;
	return t ? replace_entry(t, def->ml_name, PyDescr_NewMethod(t, def), original) : -1;
}

int arrays_guard(void)
{
	PyObject *numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy"); /* borrowed */
	if (take_name() < 0)
		return -1;
	PyObject *array = numpy && !original_array ? PyObject_GetAttrString(numpy, "ndarray")
						   : NULL;
	PyObject *dtype = array ? PyObject_GetAttrString(numpy, "dtype") : NULL;
	PyErr_Clear(); /* a numpy that is half imported: the next time */
	int r = 0;
	if (array && dtype) {
		replace_new(numpy, "ndarray", &original_array, checked_array);
		r = replace_method(array, &state_defs[0], &array_state);
		if (r == 0)
			r = views_guard(numpy);
		if (r == 0)
			r = replace_method(dtype, &state_defs[1], &dtype_state);
	}

	Py_XDECREF(array);
	Py_XDECREF(dtype);
	return r;
}
