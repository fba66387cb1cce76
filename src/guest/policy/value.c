/*
 * The value of the last statement, as smolagents gives it: assignments yield what they assign, if, for and with what their last
 * statement yields. Expressions are the interpreter's own matter.
 */
#include "guest/policy/check.h"

static const char hidden[] = ".value"; /* no identifier: code cannot name it */

static PyObject *name_node(PyObject *like, const char *name, enum node_kind context)
{
	return node_make(NODE_Name, like, 2, PyUnicode_FromString(name), node_leaf(context));
}

static int append(PyObject *body, PyObject *statement)
{
	int r = statement ? PyList_Append(body, statement) : -1;
	Py_XDECREF(statement);
	return r;
}

/* .value = <expression> (stolen) */
static PyObject *store(PyObject *like, PyObject *expression)
{
	PyObject *targets = PyList_New(1), *target = name_node(like, hidden, NODE_Store);
	if (!targets || !target) {
		Py_XDECREF(targets);
		Py_XDECREF(target);
		Py_XDECREF(expression);
		return NULL;
	}
	PyList_SET_ITEM(targets, 0, target);
	return node_make(NODE_Assign, like, 3, targets, expression, Py_NewRef(Py_None));
}

/* The name an assignment is to, when it is to one (a new reference). */
static PyObject *only_name(PyObject *statement)
{
	PyObject *targets = node_list(statement, "targets"); /* borrowed */
	PyObject *target = targets && PyList_GET_SIZE(targets) ? Py_NewRef(PyList_GET_ITEM(targets, 0)) : node_get(statement, "target");
	PyObject *name = target && node_kind(target) == NODE_Name ? node_get(target, "id") : NULL;
	Py_XDECREF(target);
	return name;
}

/* After the statement: .value = name */
static int store_name(PyObject *body, PyObject *statement)
{
	PyObject *name = node_kind(statement) == NODE_ClassDef ? node_get(statement, "name") : only_name(statement);
	if (!name)
		return 0;
	return append(body, store(statement, node_make(NODE_Name, statement, 2, name, node_leaf(NODE_Load))));
}

static int store_last(PyObject *body)
{
	Py_ssize_t n = body ? PyList_GET_SIZE(body) : 0;
	PyObject *last = n ? PyList_GET_ITEM(body, n - 1) : NULL, *value;
	switch (last ? node_kind(last) : NODE_UNKNOWN) {
	case NODE_Expr:
		value = store(last, node_get(last, "value"));
		return value ? PyList_SetItem(body, n - 1, value) : -1;
	case NODE_Assign:
		return append(node_list(last, "targets"), name_node(last, hidden, NODE_Store));
	case NODE_AugAssign:
	case NODE_ClassDef:
		return store_name(body, last);
	case NODE_AnnAssign:
		value = node_get(last, "value");
		Py_XDECREF(value);
		return value ? store_name(body, last) : 0;
	case NODE_If:
		return store_last(node_list(last, "body")) < 0 ? -1 : store_last(node_list(last, "orelse"));
	case NODE_For:
	case NODE_With:
		return store_last(node_list(last, "body"));
	default:
		return 0;
	}
}

int value_of_last_statement(PyObject *tree)
{
	PyObject *body = node_list(tree, "body"); /* borrowed */
	Py_ssize_t n = body ? PyList_GET_SIZE(body) : 0;
	PyObject *last = n ? PyList_GET_ITEM(body, n - 1) : NULL;
	switch (last ? node_kind(last) : NODE_UNKNOWN) {
	case NODE_Assign:
	case NODE_AugAssign:
	case NODE_AnnAssign:
	case NODE_ClassDef:
	case NODE_If:
	case NODE_For:
	case NODE_With:
		break;
	default:
		return 0;
	}
	Py_INCREF(last);
	PyObject *none = node_make(NODE_Constant, last, 2, Py_NewRef(Py_None), Py_NewRef(Py_None));
	PyObject *begin = store(last, none);
	int r = begin ? PyList_Insert(body, n - 1, begin) : -1;
	if (r == 0)
		r = store_last(body);
	if (r == 0)
		r = append(body, node_make(NODE_Expr, last, 1, name_node(last, hidden, NODE_Load)));
	Py_XDECREF(begin);
	Py_DECREF(last);
	return r;
}

void value_forget(void)
{
	if (policy.globals && PyDict_DelItemString(policy.globals, hidden) < 0)
		PyErr_Clear();
}
