/*
 * The value of the last statement, as smolagents gives it: assignments yield what they assign, `if`
 * and `for` the last value that is not None of the statements in them, everything else None.
 * Expressions are the interpreter's own matter.
 */
#include "guest/policy/check.h"

static PyObject *kept;

PyObject *value_keep(PyObject *value)
{
	if (value != Py_None)
		Py_XSETREF(kept, Py_NewRef(value));
	return Py_NewRef(value);
}

PyObject *value_kept(void)
{
	return Py_NewRef(kept ? kept : Py_None);
}

void value_forget(void)
{
	Py_CLEAR(kept);
}

/* guard @ expression (stolen) */
static PyObject *keep(PyObject *like, PyObject *expression)
{
	return expression ? guard_node(like, GUARD_KEEP, NULL, 0, expression) : NULL;
}

static int insert(PyObject *body, Py_ssize_t at, PyObject *statement)
{
	int r = statement ? PyList_Insert(body, at, statement) : -1;
	Py_XDECREF(statement);
	return r;
}

/* The statement's value is kept as it is assigned. */
static int keep_field(PyObject *statement, const char *field)
{
	PyObject *value = node_get(statement, field);
	if (!value)
		return 0; /* x: int */
	PyObject *kept_value = keep(statement, value);
	int r = kept_value ? PyObject_SetAttrString(statement, field, kept_value) : -1;
	Py_XDECREF(kept_value);
	return r;
}

static bool is_plain(PyObject *node)
{
	return node_kind(node) == NODE_Name || node_kind(node) == NODE_Constant;
}

/*
 * The target of an augmented assignment, to be read again: x, x.a, x[i] with nothing in them that
 * could do something twice.
 */
static PyObject *read_again(PyObject *target)
{
	PyObject *id = node_get(target, "id"), *value = node_get(target, "value"),
		 *attr = node_get(target, "attr");
	PyObject *index = node_get(target, "slice"), *node = NULL;

	if (node_kind(target) == NODE_Name)
		node = node_make(NODE_Name, target, 2, Py_NewRef(id), node_leaf(NODE_Load));
	else if (node_kind(target) == NODE_Attribute && value && is_plain(value))
		node = node_make(NODE_Attribute, target, 3, Py_NewRef(value), Py_NewRef(attr),
			node_leaf(NODE_Load));
	else if (node_kind(target) == NODE_Subscript && value && index && is_plain(value) &&
		 is_plain(index))
		node = node_make(NODE_Subscript, target, 3, Py_NewRef(value), Py_NewRef(index),
			node_leaf(NODE_Load));
	Py_XDECREF(id);
	Py_XDECREF(value);
	Py_XDECREF(attr);
	Py_XDECREF(index);
	return node;
}

/* After the statement: guard @ what it changed or made. Returns how many statements were added. */
static int keep_after(PyObject *body, Py_ssize_t at, PyObject *statement)
{
	PyObject *target = node_get(statement, "target"),
		 *name = target ? NULL : node_get(statement, "name");
	PyObject *read = target ? read_again(target)
				: node_make(NODE_Name, statement, 2, name, node_leaf(NODE_Load));
	Py_XDECREF(target);
	if (!read)
		return PyErr_Occurred() ? -1 : 0;
	return insert(body, at + 1, node_make(NODE_Expr, statement, 1, keep(statement, read))) < 0
		       ? -1
		       : 1;
}

/* A while loop that is counted has become a for loop with nothing to assign to. */
static bool was_while(PyObject *loop)
{
	/* parts is borrowed */
	PyObject *target = node_get(loop, "target"),
		 *parts = target ? node_list(target, "elts") : NULL;
	bool yes = parts && PyList_GET_SIZE(parts) == 0;
	Py_XDECREF(target);
	return yes;
}

static int keep_all(PyObject *body);

/* Returns how many statements were added after it. */
static int keep_statement(PyObject *body, Py_ssize_t at)
{
	PyObject *statement = PyList_GET_ITEM(body, at);
	switch (node_kind(statement)) {
	case NODE_Expr:
	case NODE_Assign:
	case NODE_AnnAssign:
		return keep_field(statement, "value");
	case NODE_AugAssign:
	case NODE_ClassDef:
		return keep_after(body, at, statement);
	case NODE_If:
		return keep_all(node_list(statement, "body")) < 0
			       ? -1
			       : keep_all(node_list(statement, "orelse"));
	case NODE_For:
		return was_while(statement) ? 0 : keep_all(node_list(statement, "body"));
	default:
		return 0;
	}
}

static int keep_all(PyObject *body)
{
	for (Py_ssize_t i = 0; body && i < PyList_GET_SIZE(body); i++) {
		int added = keep_statement(body, i);
		if (added < 0)
			return -1;
		i += added;
	}
	return 0;
}

int value_of_last_statement(PyObject *tree)
{
	PyObject *body = node_list(tree, "body"); /* borrowed */
	Py_ssize_t n = body ? PyList_GET_SIZE(body) : 0;
	PyObject *last = n ? PyList_GET_ITEM(body, n - 1) : NULL;

	if (!last || node_kind(last) == NODE_Expr)
		return 0;
	Py_INCREF(last);
	PyObject *none = node_make(NODE_Constant, last, 2, Py_NewRef(Py_None), Py_NewRef(Py_None));
	int r = keep_statement(body, n - 1);
	if (r >= 0)
		r = insert(body, PyList_GET_SIZE(body),
			node_make(NODE_Expr, last, 1, guard_node(last, GUARD_KEPT, NULL, 0, none)));
	else
		Py_XDECREF(none);
	Py_DECREF(last);
	return r < 0 ? -1 : 0;
}
