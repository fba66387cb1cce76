/* RestrictedPython's utility_builtins: same_type, test and reorder. */
#include "guest/policy/policy_internal.h"

/* Whether all are of one type. */
static PyObject *same_type(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	for (Py_ssize_t i = 1; i < n; i++)
		if (Py_TYPE(args[i]) != Py_TYPE(args[0]))
			Py_RETURN_FALSE;
	Py_RETURN_TRUE;
}

/* test(c1, v1, c2, v2, …, otherwise): the value after the first condition that holds. */
static PyObject *test(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	for (Py_ssize_t i = 1; i < n; i += 2) {
		int holds = PyObject_IsTrue(args[i - 1]);
		if (holds)
			return holds < 0 ? NULL : Py_NewRef(args[i]);
	}
	return Py_NewRef(n % 2 ? args[n - 1] : Py_None);
}

/* (key, value) of an item that is a pair, or the item twice; both borrowed. */
static void pair_of(PyObject *item, PyObject **ret_key, PyObject **ret_value)
{
	bool pair = PyTuple_CheckExact(item) && PyTuple_GET_SIZE(item) == 2;
	*ret_key = pair ? PyTuple_GET_ITEM(item, 0) : item;
	*ret_value = pair ? PyTuple_GET_ITEM(item, 1) : item;
}

static PyObject *pairs_in_order(PyObject *order, PyObject *values)
{
	PyObject *out = PyList_New(0);
	for (Py_ssize_t i = 0; out && i < PyList_GET_SIZE(order); i++) {
		PyObject *key, *unused, *value, *both;
		pair_of(PyList_GET_ITEM(order, i), &key, &unused);
		value = PyDict_GetItemWithError(values, key); /* borrowed */
		if (!value && !PyErr_Occurred())
			continue;
		both = value ? PyTuple_Pack(2, key, value) : NULL;
		if (!both || PyList_Append(out, both) < 0 || PyDict_DelItem(values, key) < 0)
			Py_CLEAR(out);
		Py_XDECREF(both);
	}
	return out;
}

/*
 * reorder(s, with_=None, without=()): pairs of s in the order of with_, without those of without.
 */
static PyObject *reorder(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keys[] = { (char *)"s", (char *)"with_", (char *)"without", NULL };
	PyObject *s, *with = NULL, *without = NULL, *key, *value;

	(void)self;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:reorder", keys, &s, &with, &without))
		return NULL;
	PyObject *list = PySequence_List(s),
		 *order = with && with != Py_None ? PySequence_List(with) : Py_XNewRef(list);
	PyObject *left_out = without ? PySequence_List(without) : PyList_New(0),
		 *values = PyDict_New(), *out = NULL;
	int r = list && order && left_out && values ? 0 : -1;
	for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(list); i++) {
		pair_of(PyList_GET_ITEM(list, i), &key, &value);
		r = PyDict_SetItem(values, key, value);
	}

	for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(left_out); i++) {
		pair_of(PyList_GET_ITEM(left_out, i), &key, &value);
		if (PyDict_Contains(values, key) == 1)
			r = PyDict_DelItem(values, key);
	}

	if (r == 0)
		out = pairs_in_order(order, values);
	Py_XDECREF(list);
	Py_XDECREF(order);
	Py_XDECREF(left_out);
	Py_XDECREF(values);
	return out;
}

static PyMethodDef utilities[] = {
	{ "same_type", (PyCFunction)(void (*)(void))same_type, METH_FASTCALL,
		"Whether all arguments are of one type." },
	{ "test", (PyCFunction)(void (*)(void))test, METH_FASTCALL,
		"The value after the first condition that holds." },
	{ "reorder", (PyCFunction)(void (*)(void))reorder, METH_VARARGS | METH_KEYWORDS,
		"Pairs in the order of with_, without those of without." },
};

int utilities_add(PyObject *builtins)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < sizeof(utilities) / sizeof(utilities[0]); i++) {
		PyObject *function = PyCFunction_New(&utilities[i], NULL);
		r = function ? PyDict_SetItemString(builtins, utilities[i].ml_name, function) : -1;
		Py_XDECREF(function);
	}
	return r;
}
