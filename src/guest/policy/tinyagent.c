/*
 * What tinyAgent's executor does in its own way: __import__ is a function of the code, and builtins
 * beyond its list do not exist.
 */
#include "guest/policy/check.h"

static const char import_name[] = ".import"; /* not an identifier: code cannot name it */

/*
 * __import__() as code calls it. The import function of the statements trusts a fromlist that is a
 * list, which only C code of a library gives it; a call from the code itself must never look like
 * that, so its fromlist is always a tuple.
 */
static PyObject *named_import(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keys[] = { (char *)"name", (char *)"globals", (char *)"locals",
		(char *)"fromlist", (char *)"level", NULL };
	PyObject *name, *globals = NULL, *locals = NULL, *names = NULL;
	int level = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|OOOi:__import__", keys, &name, &globals,
		    &locals, &names, &level))
		return NULL;
	if (PyUnicode_CheckExact(name) && !level && !import_allowed(name)) {
		import_refuse(name, false);
		return NULL;
	}

	PyObject *tuple = names && names != Py_None ? PySequence_Tuple(names) : PyTuple_New(0);
	PyObject *import = PyDict_GetItemString(policy.builtins, "__import__"); /* borrowed */
	PyObject *module = tuple && import ? PyObject_CallFunction(import, "OOOOi", name, Py_None,
						     Py_None, tuple, level)
					   : NULL;
	(void)self;
	Py_XDECREF(tuple);
	return module;
}

static PyMethodDef import_def = { "__import__", (PyCFunction)(void (*)(void))named_import,
	METH_VARARGS | METH_KEYWORDS, NULL };

int tinyagent_add_builtins(PyObject *builtins)
{
	PyObject *function = PyCFunction_New(&import_def, NULL);
	int r = function ? PyDict_SetItemString(builtins, import_name, function) : -1;
	Py_XDECREF(function);
	return r;
}

bool tinyagent_reads(const struct walk *w)
{
	return policy.base == PROFILE_TINYAGENT && !w->text_only;
}

int tinyagent_leave_name(
	struct walk *w, PyObject *node, PyObject *name, bool refused, PyObject **ret)
{
	if (!tinyagent_reads(w))
		return 0;
	if (PyUnicode_CompareWithASCIIString(name, "__import__") == 0)
		*ret = node_make(NODE_Name, node, 2, PyUnicode_FromString(import_name),
			node_leaf(NODE_Load));
	else if (refused)
		*ret = guard_node(node, GUARD_MISSING, name, 1,
			node_make(NODE_Constant, node, 2, Py_NewRef(Py_None), Py_NewRef(Py_None)));
	return PyErr_Occurred() ? -1 : 0;
}
