#include "guest/run/python.h"

#include <string.h>

#include "guest/run/package_requests.h"

/* Where in sys.path the system's packages begin; its end when there are none. */
static Py_ssize_t system_packages(PyObject *path)
{
	Py_ssize_t n = PyList_GET_SIZE(path);
	for (Py_ssize_t i = 0; i < n; i++) {
		const char *entry = PyUnicode_Check(PyList_GET_ITEM(path, i))
					    ? PyUnicode_AsUTF8(PyList_GET_ITEM(path, i))
					    : NULL;
		if (entry && (strstr(entry, "dist-packages") || strstr(entry, "site-packages") ||
				     !strncmp(entry, "/packages/", 10)))
			return i;
		PyErr_Clear();
	}
	return n;
}

static void extend_pythonpath(PyObject *entry)
{
	PyObject *os = PyImport_ImportModule("os"),
		 *all = os ? PyObject_GetAttrString(os, "environ") : NULL;
	PyObject *old = all ? PyMapping_GetItemString(all, "PYTHONPATH") : NULL;

	PyErr_Clear();
	PyObject *value = old && PyUnicode_Check(old) && PyUnicode_GET_LENGTH(old)
				  ? PyUnicode_FromFormat("%U:%U", entry, old)
				  : Py_NewRef(entry);
	if (all && value)
		PyMapping_SetItemString(all, "PYTHONPATH", value);
	PyErr_Clear();
	Py_XDECREF(value);
	Py_XDECREF(old);
	Py_XDECREF(all);
	Py_XDECREF(os);
}

/*
 * No cache of a finder is to be forgotten: a set is whole before anybody hears of it, so nobody has
 * looked there.
 */
void packages_add(const char *path, size_t len)
{
	PyObject *list = PySys_GetObject("path"); /* borrowed */
	PyObject *entry = PyUnicode_DecodeUTF8(path, (Py_ssize_t)len, "strict");

	if (!list || !PyList_Check(list) || !entry) {
		PyErr_Clear();
		Py_XDECREF(entry);
		return;
	}

	/*
	 * One that is there already, as in a session from a template, goes before those that were
	 * added since.
	 */
	Py_ssize_t before = PySequence_Index(list, entry), first = system_packages(list);
	PyErr_Clear();
	if (before > first)
		PySequence_DelItem(list, before);
	if (before != first && PyList_Insert(list, first, entry) == 0)
		extend_pythonpath(entry);
	PyErr_Clear();
	Py_DECREF(entry);
}

static PyObject *use_packages(PyObject *self, PyObject *path)
{
	Py_ssize_t len;
	const char *text = PyUnicode_AsUTF8AndSize(path, &len);
	(void)self;
	if (!text)
		return NULL;
	packages_add(text, (size_t)len);
	Py_RETURN_NONE;
}

int packages_prepare(void)
{
	static PyMethodDef method = { "_use_packages", use_packages, METH_O, NULL };
	PyObject *module = PyImport_ImportModule("_glovebox"),
		 *function = PyCFunction_New(&method, NULL);
	int r = module && function ? PyObject_SetAttrString(module, method.ml_name, function) : -1;
	Py_XDECREF(function);
	Py_XDECREF(module);
	return r;
}
