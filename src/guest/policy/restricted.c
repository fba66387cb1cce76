/*
 * RestrictedPython's rules and texts on a tree. All violations of a cell are found and told
 * together.
 */
#include <string.h>

#include "guest/policy/check.h"

static const char *const reserved[] = { "print", "printed", "builtins", "breakpoint", NULL };
static const char *const magic_methods[] = { "__init__", "__contains__", "__lt__", "__le__",
	"__eq__", "__ne__", "__gt__", "__ge__", NULL };

/*
 * What classes of ordinary programs define, allowed by the permissive table. None of them answers
 * for other attributes.
 */
static const char *const ordinary_methods[] = { "__post_init__", "__repr__", "__str__", "__len__",
	"__iter__", "__next__", "__call__", "__getitem__", "__setitem__", "__delitem__", "__add__",
	"__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__neg__", "__abs__",
	"__bool__", "__hash__", "__enter__", "__exit__", NULL };

static bool among(PyObject *name, const char *const *list)
{
	for (; *list; list++)
		if (PyUnicode_CompareWithASCIIString(name, *list) == 0)
			return true;
	return false;
}

static bool equal(PyObject *name, const char *text)
{
	return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

static bool ends_with_roles(PyObject *name)
{
	const char *s = PyUnicode_AsUTF8(name);
	size_t n = s ? strlen(s) : 0;
	return !s || (n >= 9 && !strcmp(s + n - 9, "__roles__"));
}

/* RestrictedPython tells a method by its place: it does not stand at the beginning of a line. */
static bool is_indented(PyObject *node)
{
	PyObject *column = node_get(node, "col_offset");
	bool yes = column && PyLong_AsLong(column) > 0;
	PyErr_Clear();
	Py_XDECREF(column);
	return yes;
}

static int check_name(struct walk *w, PyObject *node, PyObject *name, bool magic)
{
	if (!name)
		return 0;
	if (!PyUnicode_CheckExact(name))
		return -1;
	Py_ssize_t n = PyUnicode_GET_LENGTH(name);
	bool method = magic && (among(name, magic_methods) ||
				       (policy.table->permissive && among(name, ordinary_methods)));
	if (n > 1 && PyUnicode_READ_CHAR(name, 0) == '_' && !method)
		return walk_error(w, node, POLICY_NAME, NULL,
			"\"%U\" is an invalid variable name because it starts with \"_\"", name);
	if (ends_with_roles(name))
		return walk_error(w, node, POLICY_NAME, NULL,
			"\"%U\" is an invalid variable name because it ends with \"__roles__\".",
			name);
	if (among(name, reserved))
		return walk_error(w, node, POLICY_NAME, NULL, "\"%U\" is a reserved name.", name);
	return 0;
}

static int check_field(struct walk *w, PyObject *node, const char *field, bool magic)
{
	PyObject *name = node_get(node, field);
	int r = check_name(w, node, name, magic);
	Py_XDECREF(name);
	return r;
}

static int check_attribute_name(struct walk *w, PyObject *node, PyObject *name)
{
	int r = PyUnicode_CheckExact(name) ? 0 : -1;
	if (r == 0 && PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == '_')
		r = walk_error(w, node, POLICY_ATTRIBUTE, NULL,
			"\"%U\" is an invalid attribute name because it starts with \"_\".", name);
	if (r == 0 && ends_with_roles(name))
		r = walk_error(w, node, POLICY_ATTRIBUTE, NULL,
			"\"%U\" is an invalid attribute name because it ends with \"__roles__\".",
			name);
	if (r == 0 && attribute_inspects(name))
		r = walk_error(w, node, POLICY_ATTRIBUTE, NULL,
			"\"%U\" is a restricted name, that is forbidden to access in RestrictedPython.",
			name);
	return r;
}

/* super().__init__ of a class that has a base with one. */
static bool is_super_init(PyObject *node, PyObject *name)
{
	PyObject *call = policy.table->permissive && equal(name, "__init__")
				 ? node_get(node, "value")
				 : NULL;
	PyObject *func = call && node_kind(call) == NODE_Call ? node_get(call, "func") : NULL;
	PyObject *id = func && node_kind(func) == NODE_Name ? node_get(func, "id") : NULL;
	bool yes = id && equal(id, "super") && !node_is_store(node);
	Py_XDECREF(call);
	Py_XDECREF(func);
	Py_XDECREF(id);
	return yes;
}

static int check_attribute(struct walk *w, PyObject *node)
{
	PyObject *name = node_get(node, "attr");
	int r = !name ? -1 : is_super_init(node, name) ? 0 : check_attribute_name(w, node, name);
	Py_XDECREF(name);
	return r;
}

static int check_pattern(struct walk *w, PyObject *node)
{
	PyObject *names = node_list(node, "kwd_attrs"); /* borrowed */
	int r = 0;
	for (Py_ssize_t i = 0; r == 0 && names && i < PyList_GET_SIZE(names); i++) {
		r = check_attribute_name(w, node, PyList_GET_ITEM(names, i));
		/* of an exception: no guard can stand here */
		if (r == 0 && equal(PyList_GET_ITEM(names, i), "obj"))
			r = walk_error(w, node, POLICY_ATTRIBUTE, NULL,
				"\"obj\" is a restricted name in a pattern.");
	}
	return r;
}

static int check_call(struct walk *w, PyObject *node)
{
	PyObject *func = node_get(node, "func"),
		 *name = func && node_kind(func) == NODE_Name ? node_get(func, "id") : NULL;
	int r = 0;
	if (name && equal(name, "exec"))
		r = walk_error(w, node, POLICY_CODE, NULL, "Exec calls are not allowed.");
	else if (name && equal(name, "eval"))
		r = walk_error(w, node, POLICY_CODE, NULL, "Eval calls are not allowed.");
	Py_XDECREF(func);
	Py_XDECREF(name);
	return r;
}

static int check_class(struct walk *w, PyObject *node)
{
	PyObject *keywords = node_list(node, "keywords"); /* borrowed */
	int r = check_field(w, node, "name", false);
	for (Py_ssize_t i = 0; r == 0 && keywords && i < PyList_GET_SIZE(keywords); i++) {
		PyObject *name = node_get(PyList_GET_ITEM(keywords, i), "arg");
		if (name && equal(name, "metaclass"))
			r = walk_error(w, node, POLICY_STATEMENT, NULL,
				"The keyword argument \"metaclass\" is not allowed.");
		Py_XDECREF(name);
	}
	return r;
}

static int check_augmented(struct walk *w, PyObject *node)
{
	PyObject *target = node_get(node, "target"),
		 *attr = target ? node_get(target, "attr") : NULL;
	enum node_kind kind = target ? node_kind(target) : NODE_UNKNOWN;

	/*
	 * e.obj is read by a guard elsewhere; an operator would hand it to the other operand
	 * unseen.
	 */
	bool allowed = policy.table->permissive && !(attr && equal(attr, "obj"));
	Py_XDECREF(target);
	Py_XDECREF(attr);
	if (allowed)
		return 0;
	if (kind == NODE_Attribute)
		return walk_error(w, node, POLICY_STATEMENT, NULL,
			"Augmented assignment of attributes is not allowed.");
	if (kind == NODE_Subscript)
		return walk_error(w, node, POLICY_STATEMENT, NULL,
			"Augmented assignment of object items and slices is not allowed.");
	return 0;
}

/* A dotted name as a whole, as RestrictedPython has it, and what is below its first part. */
static int check_module_name(struct walk *w, PyObject *node, PyObject *name)
{
	PyObject *dot = PyUnicode_FromString("."),
		 *parts = dot && name ? PyUnicode_Split(name, dot, -1) : NULL;
	int r = check_name(w, node, name, false);
	for (Py_ssize_t i = 1; parts && r == 0 && i < PyList_GET_SIZE(parts); i++)
		r = check_name(w, node, PyList_GET_ITEM(parts, i), false);
	Py_XDECREF(dot);
	Py_XDECREF(parts);
	return r;
}

/*
 * Names that an import binds. `from _a import b` binds no _a: whether there is one to import from
 * is the list's matter.
 */
static int check_import_names(struct walk *w, enum node_kind kind, PyObject *node)
{
	PyObject *names = node_list(node, "names"); /* borrowed */
	Py_ssize_t before = PyList_GET_SIZE(w->errors ? w->errors : names);
	int r = 0;

	for (Py_ssize_t i = 0; r == 0 && names && i < PyList_GET_SIZE(names); i++) {
		PyObject *name = node_get(PyList_GET_ITEM(names, i), "name"),
			 *as = node_get(PyList_GET_ITEM(names, i), "asname");
		if (name && equal(name, "*"))
			r = walk_error(
				w, node, POLICY_IMPORT, NULL, "\"*\" imports are not allowed.");
		else
			r = check_module_name(w, node, name);
		if (r == 0)
			r = check_name(w, node, as, false);
		Py_XDECREF(name);
		Py_XDECREF(as);
	}

	if (r < 0 || (w->errors && PyList_GET_SIZE(w->errors) > before))
		return r;
	return kind == NODE_Import ? check_import(w, node) : check_import_from(w, node);
}

/* ---- print and printed ------------------------------------------------------------- */

static const char collector_name[] = ".print"; /* no identifier: code cannot name it */

static struct scope *print_scope(struct walk *w)
{
	struct scope *s = w->scope;
	while ((s->kind == SCOPE_CLASS || s->is_lambda) && s->outer)
		s = s->outer;
	return s;
}

/* Does this body, without the functions in it, read `printed`? */
static bool reads_printed(PyObject *node, int depth)
{
	enum node_kind kind = PyList_CheckExact(node) ? NODE_Module : node_kind(node);
	bool found = false;

	if (depth > 200 || kind == NODE_UNKNOWN || kind > NODE_LAST_PART)
		return false;
	if (PyList_CheckExact(node)) {
		for (Py_ssize_t i = 0; !found && i < PyList_GET_SIZE(node); i++)
			found = reads_printed(PyList_GET_ITEM(node, i), depth + 1);
		return found;
	}

	if (kind == NODE_FunctionDef)
		return false;
	if (kind == NODE_Name) {
		PyObject *name = node_get(node, "id");
		found = name && equal(name, "printed") && !node_is_store(node);
		Py_XDECREF(name);
		return found;
	}

	PyObject *fields = node_fields(kind);
	for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(fields); i++) {
		PyObject *value = PyObject_GetAttr(node, PyTuple_GET_ITEM(fields, i));
		PyErr_Clear();
		if (value && (PyList_CheckExact(value) || node_kind(value) != NODE_UNKNOWN))
			found = reads_printed(value, depth + 1);
		Py_XDECREF(value);
	}

	return found;
}

static PyObject *collector_load(PyObject *like)
{
	return node_make(
		NODE_Name, like, 2, PyUnicode_FromString(collector_name), node_leaf(NODE_Load));
}

static bool is_future_import(PyObject *node)
{
	if (node_kind(node) != NODE_ImportFrom)
		return false;
	PyObject *module = node_get(node, "module");
	bool is = module && PyUnicode_Check(module) &&
		  PyUnicode_CompareWithASCIIString(module, "__future__") == 0;
	PyErr_Clear();
	Py_XDECREF(module);
	return is;
}

/* A scope that reads `printed` starts with a collector of its own. */
static int begin_collecting(PyObject *node)
{
	PyObject *body = node_list(node, "body"); /* borrowed */
	Py_ssize_t at = body && PyList_GET_SIZE(body) && is_docstring(PyList_GET_ITEM(body, 0)) ? 1
												: 0;
	PyObject *like = body && PyList_GET_SIZE(body) ? PyList_GET_ITEM(body, 0) : NULL;

	if (!like)
		return 0;
	/* nothing but a docstring may stand before these */
	while (at < PyList_GET_SIZE(body) && is_future_import(PyList_GET_ITEM(body, at)))
		at++;
	PyObject *none = node_make(NODE_Constant, like, 2, Py_NewRef(Py_None), Py_NewRef(Py_None));
	PyObject *target = node_make(
		NODE_Name, like, 2, PyUnicode_FromString(collector_name), node_leaf(NODE_Store));
	PyObject *targets = PyList_New(1);
	if (!targets || !target) {
		Py_XDECREF(target);
		Py_XDECREF(targets);
		Py_XDECREF(none);
		return -1;
	}

	PyList_SET_ITEM(targets, 0, target);
	PyObject *assign = node_make(NODE_Assign, like, 3, targets,
		guard_node(like, GUARD_COLLECT, NULL, 0, none), Py_NewRef(Py_None));
	int r = assign ? PyList_Insert(body, at, assign) : -1;
	Py_XDECREF(assign);
	return r;
}

static int check_read(struct walk *w, PyObject *node, PyObject *name)
{
	if (equal(name, "print") || equal(name, "printed") ||
		(policy.table->permissive && equal(name, "__name__")))
		return 0;
	return check_name(w, node, name, false);
}

static int check_variable(struct walk *w, PyObject *node)
{
	PyObject *name = node_get(node, "id");
	int r = name ? node_is_store(node) ? check_name(w, node, name, false)
					   : check_read(w, node, name)
		     : -1;
	Py_XDECREF(name);
	return r;
}

/* The names of parameters, told at the line of the function. */
static int check_parameters(struct walk *w, PyObject *node)
{
	static const char *const lists[] = { "posonlyargs", "args", "kwonlyargs" };
	static const char *const single[] = { "vararg", "kwarg" };
	PyObject *all = node_get(node, "args");
	int r = all ? 0 : -1;

	for (int k = 0; r == 0 && k < 3; k++) {
		PyObject *list = node_list(all, lists[k]); /* borrowed */
		for (Py_ssize_t i = 0; r == 0 && list && i < PyList_GET_SIZE(list); i++) {
			PyObject *name = node_get(PyList_GET_ITEM(list, i), "arg");
			r = check_name(w, node, name, false);
			Py_XDECREF(name);
		}
	}

	for (int k = 0; r == 0 && k < 2; k++) {
		PyObject *one = node_get(all, single[k]), *name = one ? node_get(one, "arg") : NULL;
		r = check_name(w, node, name, false);
		Py_XDECREF(one);
		Py_XDECREF(name);
	}

	Py_XDECREF(all);
	return r;
}

/* The names of a nonlocal statement. */
static int check_declared(struct walk *w, PyObject *node)
{
	PyObject *names = node_list(node, "names"); /* borrowed */
	int r = 0;
	for (Py_ssize_t i = 0; r == 0 && names && i < PyList_GET_SIZE(names); i++)
		r = check_name(w, node, PyList_GET_ITEM(names, i), false);
	return r;
}

/* As RestrictedPython does: what is inside is not looked at any more. */
static int refuse_statement(struct walk *w, PyObject *node)
{
	return walk_error(w, node, POLICY_STATEMENT, NULL, "%s statements are not allowed.",
		       node_name(node)) < 0
		       ? -1
		       : WALK_SKIP;
}

static int enter(struct walk *w, enum node_kind kind, PyObject *node)
{
	int r;
	switch (kind) {
	case NODE_Name:
		return check_variable(w, node);
	case NODE_Attribute:
		return check_attribute(w, node);
	case NODE_Call:
		return check_call(w, node);
	case NODE_Import:
	case NODE_ImportFrom:
		return check_import_names(w, kind, node);
	case NODE_FunctionDef:
		r = check_field(w, node, "name", is_indented(node));
		return r == 0 ? check_parameters(w, node) : r;
	case NODE_Lambda:
		return check_parameters(w, node);
	case NODE_ClassDef:
		return check_class(w, node);
	case NODE_ExceptHandler:
	case NODE_MatchAs:
	case NODE_MatchStar:
		return check_field(w, node, "name", false);
	case NODE_MatchMapping:
		return check_field(w, node, "rest", false);
	case NODE_MatchClass:
		return check_pattern(w, node);
	case NODE_AsyncFunctionDef:
	case NODE_AsyncFor:
	case NODE_AsyncWith:
	case NODE_Await:
	case NODE_TryStar:
	case NODE_TypeAlias:
	case NODE_TypeVar:
	case NODE_ParamSpec:
	case NODE_TypeVarTuple:
		return refuse_statement(w, node);
	case NODE_Nonlocal:
		return policy.table->permissive ? check_declared(w, node)
						: refuse_statement(w, node);
	case NODE_comprehension: {
		PyObject *is_async = node_get(node, "is_async");
		long yes = is_async ? PyLong_AsLong(is_async) : 1;
		Py_XDECREF(is_async);
		return yes ? walk_error(w, node, POLICY_STATEMENT, NULL,
				     "AsyncFor statements are not allowed.")
			   : 0;
	}

	default:
		return 0;
	}
}

/* print → the collector, printed → its text, in scopes that read it; e.obj by a guard. */
static int leave_name(struct walk *w, PyObject *node, PyObject **ret)
{
	PyObject *name = node_get(node, "id");
	if (name && !node_is_store(node) && print_scope(w)->collects) {
		if (equal(name, "print"))
			*ret = collector_load(node);
		else if (equal(name, "printed"))
			*ret = guard_node(node, GUARD_PRINTED, NULL, 0, collector_load(node));
	} else if (name && !node_is_store(node) && builtin_hidden(name)) {
		*ret = guard_node(node, GUARD_MISSING, name, 0, Py_NewRef(node));
	}
	Py_XDECREF(name);
	return PyErr_Occurred() ? -1 : 0;
}

static int leave(struct walk *w, enum node_kind kind, PyObject *node, PyObject **ret)
{
	PyObject *name;
	if (kind == NODE_AugAssign)
		return check_augmented(w, node);
	if (w->text_only)
		return 0;
	switch (kind) {
	case NODE_Name:
		return leave_name(w, node, ret);
	case NODE_Attribute:
		name = node_get(node, "attr");
		if (name && equal(name, "obj") && !node_is_store(node))
			*ret = guard_node(node, GUARD_ATTRIBUTE, name, 0, node_get(node, "value"));
		Py_XDECREF(name);
		return PyErr_Occurred() ? -1 : 0;
	default:
		return 0;
	}
}

static int open_scope(struct scope *scope, PyObject *node)
{
	PyObject *body = node_list(node, "body"); /* borrowed */
	if (scope->kind == SCOPE_CLASS || !body || !reads_printed(body, 0))
		return 0;
	scope->collects = true;
	return begin_collecting(node);
}

const struct rules restricted_rules = { .open = open_scope, .enter = enter, .leave = leave };
