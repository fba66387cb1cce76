/*
 * What smolagents' rules put into a tree: guards where the tree cannot decide, and counting of
 * operations.
 */
#include <string.h>

#include "guest/policy/check.h"
#include "guest/policy/smolagents.h"

static uint64_t weight_of(PyObject *node)
{
	PyObject *n = PyObject_GetAttrString(node, "_weight");
	uint64_t weight = n ? PyLong_AsUnsignedLongLong(n) : 1;
	if (PyErr_Occurred())
		PyErr_Clear();
	Py_XDECREF(n);
	return weight ? weight : 1;
}

static PyObject *tick(PyObject *like, uint64_t weight)
{
	return guard_node(like, GUARD_TICK, NULL, weight,
		node_make(NODE_Constant, like, 2, Py_NewRef(Py_None), Py_NewRef(Py_None)));
}

static int insert(PyObject *list, Py_ssize_t at, PyObject *statement)
{
	int r = statement ? PyList_Insert(list, at, statement) : -1;
	Py_XDECREF(statement);
	return r;
}

/* guard @ <second parameter>, first thing in a __getattr__. */
static int guard_hook(PyObject *node, PyObject *body, Py_ssize_t at)
{
	PyObject *arguments = node_get(node, "args"),
		 *list = arguments ? node_list(arguments, "args") : NULL;
	PyObject *second = list && PyList_GET_SIZE(list) > 1 ? PyList_GET_ITEM(list, 1) : NULL;
	PyObject *name = second ? node_get(second, "arg") : NULL;
	int r = 0;
	Py_XDECREF(arguments);
	if (!name)
		return violation(NULL, POLICY_NAME, "Write it as def __getattr__(self, name).",
			"__getattr__ needs a parameter for the name");
	PyObject *load = node_make(NODE_Name, second, 2, name, node_leaf(NODE_Load));
	r = insert(body, at,
		node_make(NODE_Expr, second, 1, guard_node(second, GUARD_HOOK, NULL, 0, load)));
	return r;
}

static int finish_function(struct walk *w, PyObject *node)
{
	/* body is borrowed */
	PyObject *body = node_list(node, "body"), *name = node_get(node, "name");
	Py_ssize_t at = body && PyList_GET_SIZE(body) && is_docstring(PyList_GET_ITEM(body, 0)) ? 1
												: 0;
	int r = body && name ? 0 : -1;
	(void)w;
	if (r == 0 && policy.max_operations)
		r = insert(body, at, node_make(NODE_Expr, node, 1, tick(node, weight_of(node))));
	if (r == 0 &&
		name_among(name, (const char *const[]){ "__getattr__", "__getattribute__", NULL }))
		r = guard_hook(node, body, at);
	Py_XDECREF(name);
	return r;
}

/* lambda: (tick) or body */
static int finish_lambda(PyObject *node)
{
	PyObject *body = node_get(node, "body"), *values = PyList_New(2),
		 *count = tick(node, weight_of(node));

	if (!body || !values || !count) {
		Py_XDECREF(body);
		Py_XDECREF(values);
		Py_XDECREF(count);
		return -1;
	}

	PyList_SET_ITEM(values, 0, count);
	PyList_SET_ITEM(values, 1, body);
	PyObject *both = node_make(NODE_BoolOp, node, 2, node_leaf(NODE_Or), values);
	int r = both ? PyObject_SetAttrString(node, "body", both) : -1;
	Py_XDECREF(both);
	return r;
}

static int count_iterable(PyObject *node, uint64_t weight)
{
	PyObject *iterable = node_get(node, "iter");
	PyObject *guarded = iterable ? guard_node(iterable, GUARD_LOOP, NULL, weight,
					       Py_NewRef(iterable))
				     : NULL;
	int r = guarded ? PyObject_SetAttrString(node, "iter", guarded) : -1;
	Py_XDECREF(iterable);
	Py_XDECREF(guarded);
	return r;
}

/* break or continue in an else belong to the loop outside. */
static bool leaves_loop(PyObject *list)
{
	for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
		PyObject *s = PyList_GET_ITEM(list, i);
		enum node_kind kind = node_kind(s);
		if (kind == NODE_Break || kind == NODE_Continue)
			return true;
		if (kind == NODE_FunctionDef || kind == NODE_ClassDef ||
			kind == NODE_AsyncFunctionDef)
			continue;
		static const char *const parts[] = { "body", "orelse", "finalbody" };
		for (int p = 0; p < 3; p++)
			if (leaves_loop(node_list(s, parts[p])))
				return true;
		static const char *const groups[] = { "handlers", "cases" };
		for (int p = 0; p < 2; p++) {
			PyObject *group = node_list(s, groups[p]);
			for (Py_ssize_t j = 0; group && j < PyList_GET_SIZE(group); j++)
				if (leaves_loop(node_list(PyList_GET_ITEM(group, j), "body")))
					return true;
		}
	}

	return false;
}

/* while T: B else: E   →   for () in guard: if not T: E; break; B */
static PyObject *count_while_node(PyObject *node)
{
	/* borrowed */
	PyObject *body = node_list(node, "body"), *orelse = node_list(node, "orelse");
	PyObject *test = node_get(node, "test");
	PyObject *end = orelse ? PyList_GetSlice(orelse, 0, PyList_GET_SIZE(orelse))
			       : PyList_New(0),
		 *loop = NULL;
	if (!body || !test || !end ||
		insert(end, PyList_GET_SIZE(end), node_make(NODE_Break, test, 0)) < 0) {
		Py_XDECREF(test);
		Py_XDECREF(end);
		return NULL;
	}

	PyObject *not_test = node_make(NODE_UnaryOp, test, 2, node_leaf(NODE_Not), test);
	PyObject *leave = node_make(NODE_If, not_test, 3, not_test, end, PyList_New(0));
	PyObject *rounds = PyList_GetSlice(body, 0, PyList_GET_SIZE(body));
	if (rounds && insert(rounds, 0, leave) < 0)
		Py_CLEAR(rounds);
	PyObject *nothing = node_make(NODE_Tuple, node, 2, PyList_New(0), node_leaf(NODE_Store));
	PyObject *none = node_make(NODE_Constant, node, 2, Py_NewRef(Py_None), Py_NewRef(Py_None));
	PyObject *iterable = guard_node(node, GUARD_WHILE, NULL, weight_of(node), none);
	loop = node_make(
		NODE_For, node, 5, nothing, iterable, rounds, PyList_New(0), Py_NewRef(Py_None));
	return loop;
}

static int finish_while(PyObject *node, PyObject **ret)
{
	if (!leaves_loop(node_list(node, "orelse")))
		return (*ret = count_while_node(node)) ? 0 : -1;
	/* borrowed; rare: counted without a limit of its own */
	PyObject *body = node_list(node, "body");
	return insert(body, 0, node_make(NODE_Expr, node, 1, tick(node, weight_of(node))));
}

/*
 * object.__setattr__(x, name, v), super().__setattr__(name, v): the name is checked when it runs.
 */
static int guard_setattr_call(PyObject *node)
{
	/* args is borrowed */
	PyObject *func = node_get(node, "func"), *args = node_list(node, "args");
	PyObject *name = func && node_kind(func) == NODE_Attribute ? node_get(func, "attr") : NULL;
	bool is_setter = name && name_among(name, (const char *const[]){
							  "__setattr__", "__delattr__", NULL });
	PyObject *value = is_setter ? node_get(func, "value") : NULL;
	Py_ssize_t at = value && node_calls(value, "super") ? 0 : 1;
	int r = 0;
	if (is_setter && (!args || PyList_GET_SIZE(args) <= at ||
				 node_kind(PyList_GET_ITEM(args, at)) == NODE_Starred ||
				 node_kind(PyList_GET_ITEM(args, 0)) == NODE_Starred)) {
		r = violation(NULL, POLICY_ATTRIBUTE, "Give object, name and value one by one.",
			"Forbidden call to dunder function: %U", name);
	} else if (is_setter) {
		PyObject *text = PyList_GET_ITEM(args, at);
		PyObject *guarded = guard_node(text, GUARD_NAME, NULL, 0, Py_NewRef(text));
		r = guarded ? PyList_SetItem(args, at, guarded) : -1;
	}

	Py_XDECREF(func);
	Py_XDECREF(name);
	Py_XDECREF(value);
	return r;
}

/*
 * __x inside class C is _C__x, as the compiler would have made it. Takes and returns a reference.
 */
static PyObject *mangled(const struct walk *w, PyObject *name)
{
	const char *class_name = w->scope->class_name ? PyUnicode_AsUTF8(w->scope->class_name)
						      : NULL;
	if (!name || !class_name || PyUnicode_GET_LENGTH(name) < 3 ||
		PyUnicode_READ_CHAR(name, 0) != '_' || PyUnicode_READ_CHAR(name, 1) != '_' ||
		name_is_dunder(name))
		return name;
	while (*class_name == '_')
		class_name++;
	if (!*class_name)
		return name;
	PyObject *full = PyUnicode_FromFormat("_%s%U", class_name, name);
	Py_DECREF(name);
	return full;
}

/*
 * o._x: the guard looks at o, and the interpreter reads. e.obj: read by a guard that looks at what
 * comes.
 */
static int guard_attribute(struct walk *w, PyObject *node, PyObject **ret)
{
	PyObject *name = mangled(w, node_get(node, "attr"));
	bool private = name && PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '_' &&
		       !name_is_dunder(name);
	bool guarded = name && PyUnicode_CompareWithASCIIString(name, "obj") == 0;
	int r = 0;

	if (private) {
		PyObject *owner = node_get(node, "value"),
			 *checked = guard_node(node, GUARD_OWNER, name, 0, owner);
		r = checked ? PyObject_SetAttrString(node, "value", checked) : -1;
		Py_XDECREF(checked);
	} else if (guarded && !node_is_store(node)) {
		PyObject *value = node_get(node, "value");
		*ret = guard_node(node, GUARD_ATTRIBUTE, name, 0, value);
		r = *ret ? 0 : -1;
	}

	Py_XDECREF(name);
	return r;
}

/* A variable that has the name of a builtin which is only there for libraries. */
static int guard_hidden(struct walk *w, PyObject *node, PyObject **ret)
{
	PyObject *name = node_is_store(node) ? NULL : node_get(node, "id");
	int r = name ? tinyagent_leave_name(w, node, name, smolagents_refuses(w, name), ret) : 0;
	if (r == 0 && name && !*ret && builtin_hidden(name))
		*ret = guard_node(node, GUARD_MISSING, name, 0, Py_NewRef(node));
	Py_XDECREF(name);
	return PyErr_Occurred() ? -1 : r;
}

/* Plain assert says what failed. */
static int name_assertion(struct walk *w, PyObject *node)
{
	PyObject *msg = node_get(node, "msg"), *test = node_get(node, "test");
	PyObject *first = test ? PyObject_GetAttrString(test, "lineno") : NULL,
		 *last = test ? PyObject_GetAttrString(test, "end_lineno") : NULL;
	PyObject *from = test ? PyObject_GetAttrString(test, "col_offset") : NULL,
		 *to = test ? PyObject_GetAttrString(test, "end_col_offset") : NULL;
	int r = 0;

	if (!msg && first && last && from && to && PyLong_AsLong(first) == PyLong_AsLong(last)) {
		const char *line = w->code, *end = w->code + w->len;
		for (long n = PyLong_AsLong(first); line && n > 1; n--) {
			const char *eol = memchr(line, '\n', (size_t)(end - line));
			line = eol ? eol + 1 : NULL;
		}
		long a = PyLong_AsLong(from), b = PyLong_AsLong(to);
		if (line && b > a && line + b <= end) {
			PyObject *source = PyUnicode_DecodeUTF8(line + a, b - a, "replace");
			PyObject *text = source ? PyUnicode_FromFormat(
							  "Assertion failed: %U", source)
						: NULL;
			PyObject *constant = node_make(
				NODE_Constant, test, 2, text, Py_NewRef(Py_None));
			r = constant ? PyObject_SetAttrString(node, "msg", constant) : -1;
			Py_XDECREF(source);
			Py_XDECREF(constant);
		}
	}

	if (PyErr_Occurred() && r == 0)
		PyErr_Clear();
	Py_XDECREF(msg);
	Py_XDECREF(test);
	Py_XDECREF(first);
	Py_XDECREF(last);
	Py_XDECREF(from);
	Py_XDECREF(to);
	return r;
}

/* except* T: the guard looks at the group before the interpreter has it split. */
static int guard_handlers(PyObject *node)
{
	PyObject *handlers = node_list(node, "handlers"); /* borrowed */
	int r = handlers ? 0 : -1;
	for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(handlers); i++) {
		PyObject *handler = PyList_GET_ITEM(handlers, i), *type = node_get(handler, "type");
		PyObject *guarded = type ? guard_node(type, GUARD_GROUP, NULL, 0, Py_NewRef(type))
					 : NULL;
		r = guarded ? PyObject_SetAttrString(handler, "type", guarded) : -1;
		Py_XDECREF(type);
		Py_XDECREF(guarded);
	}
	return r;
}

int smolagents_leave(struct walk *w, enum node_kind kind, PyObject *node, PyObject **ret)
{
	bool counting = policy.max_operations != 0;
	if ((kind == NODE_Attribute && smolagents_check_inspecting(w, node) < 0) ||
		(kind == NODE_Call && smolagents_check_called(w, node) < 0))
		return -1;
	if (w->text_only)
		return 0;
	switch (kind) {
	case NODE_FunctionDef:
	case NODE_AsyncFunctionDef:
		return finish_function(w, node);
	case NODE_Lambda:
		return counting ? finish_lambda(node) : 0;
	case NODE_For:
		return counting ? count_iterable(node, weight_of(node)) : 0;
	case NODE_comprehension: {
		PyObject *is_async = counting ? node_get(node, "is_async") : NULL;
		bool plain = is_async && PyLong_AsLong(is_async) == 0;
		Py_XDECREF(is_async);
		return plain ? count_iterable(node, 4) : 0;
	}

	case NODE_AsyncFor:
		return counting
			       ? insert(node_list(node, "body"), 0,
					 node_make(NODE_Expr, node, 1, tick(node, weight_of(node))))
			       : 0;
	case NODE_While:
		return policy.max_operations || policy.max_while ? finish_while(node, ret) : 0;
	case NODE_Call:
		return guard_setattr_call(node);
	case NODE_Name:
		return guard_hidden(w, node, ret);
	case NODE_Attribute:
		return guard_attribute(w, node, ret);
	case NODE_TryStar:
		return guard_handlers(node);
	case NODE_Assert:
		return policy.base == PROFILE_SMOLAGENTS ? name_assertion(w, node) : 0;
	default:
		return 0;
	}
}
