/* The rules of smolagents' executor (and of tinyAgent's) on a tree, and its counting. */
#include <string.h>

#include "guest/run/tool_calls.h"
#include "guest/policy/check.h"

/* Builtins that are never given; naming one is refused before anything runs, unless the code has a variable of that name. */
static const char *const refused_builtins[] = { "eval", "exec", "compile", "globals", "locals", "open", "input", "breakpoint",
	"vars", "dir", "__import__", NULL };

/* Called on super() these are how classes work together. */
static const char *const super_methods[] = { "__new__", "__init_subclass__", "__setattr__", "__delattr__", "__enter__", "__exit__",
	"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__len__", "__getitem__", "__setitem__", "__delitem__",
	"__contains__", "__iter__", "__next__", "__call__", "__prepare__", "__set_name__", "__add__", "__sub__", "__mul__", "__bool__",
	"__format__", "__missing__", "__aenter__", "__aexit__", "__post_init__", "__class_getitem__", "__instancecheck__", "__getattr__", NULL };

static bool among(PyObject *name, const char *const *list)
{
	for (; *list; list++)
		if (PyUnicode_CompareWithASCIIString(name, *list) == 0)
			return true;
	return false;
}

/* ---- names ------------------------------------------------------------------------ */

/* What smolagents gives as tools; builtins that it lacks may be names of variables, such as id. */
static const char *const base_tools[] = { "print", "isinstance", "range", "float", "int", "bool", "str", "set", "list", "dict", "tuple",
	"round", "ceil", "floor", "log", "exp", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "degrees", "radians", "pow", "sqrt",
	"len", "sum", "max", "min", "abs", "enumerate", "zip", "reversed", "sorted", "all", "any", "map", "filter", "ord", "chr", "next",
	"iter", "divmod", "callable", "getattr", "hasattr", "setattr", "issubclass", "type", "complex", "final_answer", "format_exc",
	"safe_json_dumps", NULL };

static bool is_tool(PyObject *name)
{
	return policy.base == PROFILE_SMOLAGENTS && (tools_has(name) || (among(name, base_tools) && PyDict_Contains(policy.builtins, name) == 1));
}

static bool declared_global(const struct walk *w, PyObject *name)
{
	return w->scope->globals && PySet_Contains(w->scope->globals, name) == 1;
}

static int check_store(struct walk *w, PyObject *node, PyObject *name)
{
	bool module_level = w->scope->kind == SCOPE_MODULE || declared_global(w, name);
	if (name_is_dunder(name) && !(w->scope->kind == SCOPE_CLASS && name_is_special(name)) &&
		PyUnicode_CompareWithASCIIString(name, "__all__") != 0)
		return walk_error(w, node, POLICY_NAME, "Use a name without two underscores at both ends.", "Forbidden access to dunder attribute: %U", name);
	/* A hook in a class is a function that this pass has seen. */
	if (w->scope->kind == SCOPE_CLASS && among(name, (const char *const[]){ "__getattr__", "__getattribute__", NULL }))
		return walk_error(w, node, POLICY_NAME, "Define it with def.", "Forbidden access to dunder attribute: %U", name);
	if (module_level && is_tool(name))
		return walk_error(w, node, POLICY_TOOL, "Choose another name for the variable.",
			"Cannot assign to name '%U': doing this would erase the existing tool!", name);
	return 0;
}

/* Is it a variable by now? */
static bool bound_before(PyObject *name)
{
	return PyDict_Contains(policy.globals, name) == 1 || builtin_given(name);
}

/* A builtin that is never given, and no variable. */
static bool is_refused(struct walk *w, PyObject *name)
{
	return among(name, refused_builtins) && !bound_before(name) && !walk_binds(w, name);
}

static int check_load(struct walk *w, PyObject *node, PyObject *name)
{
	if (name_is_dunder(name) && PyUnicode_CompareWithASCIIString(name, "__name__") != 0 &&
		PyUnicode_CompareWithASCIIString(name, "__debug__") != 0 && PyUnicode_CompareWithASCIIString(name, "__doc__") != 0 &&
		!(w->scope->kind == SCOPE_CLASS && name_is_special(name))) {
		bool import = PyUnicode_CompareWithASCIIString(name, "__import__") == 0;
		if (import && tinyagent_reads(w))
			return 0;
		if (import)
			return walk_error(w, node, POLICY_FUNCTION, "Use an import statement.", "Forbidden access to function: __import__");
		return walk_error(w, node, POLICY_NAME, NULL, "Forbidden access to dunder attribute: %U", name);
	}
	if (is_refused(w, name) && !tinyagent_reads(w))
		return walk_error(w, node, POLICY_FUNCTION, "Write the code itself, and use the authorized modules and functions.",
			"Forbidden function evaluation: '%U' is not among the explicitly allowed tools or defined/imported in the preceding code", name);
	return 0;
}

static int check_name(struct walk *w, PyObject *node)
{
	PyObject *name = node_get(node, "id");
	int r = name && PyUnicode_CheckExact(name) ? 0 : -1;
	if (r == 0)
		r = node_is_store(node) ? check_store(w, node, name) : check_load(w, node, name);
	if (r == 0 && w->called == node)
		r = PySet_Add(policy.called, name);
	Py_XDECREF(name);
	return r;
}

/* ---- attributes -------------------------------------------------------------------- */

static bool is_call_of(PyObject *node, const char *function)
{
	PyObject *f = node_kind(node) == NODE_Call ? node_get(node, "func") : NULL;
	PyObject *name = f && node_kind(f) == NODE_Name ? node_get(f, "id") : NULL;
	bool yes = name && PyUnicode_CompareWithASCIIString(name, function) == 0;
	Py_XDECREF(f);
	Py_XDECREF(name);
	return yes;
}

static bool is_name(PyObject *node, const char *text)
{
	PyObject *name = node_kind(node) == NODE_Name ? node_get(node, "id") : NULL;
	bool yes = name && PyUnicode_CompareWithASCIIString(name, text) == 0;
	Py_XDECREF(name);
	return yes;
}

/* x.__class__.__name__ tells a name. */
static bool only_tells_a_name(struct walk *w, PyObject *name)
{
	static const char *const tails[] = { "__name__", "__qualname__", "__module__", "__doc__", NULL };
	if (PyUnicode_CompareWithASCIIString(name, "__class__") != 0 || !w->parent || node_kind(w->parent) != NODE_Attribute)
		return false;
	PyObject *outer = node_get(w->parent, "attr");
	bool yes = outer && among(outer, tails) && !node_is_store(w->parent);
	Py_XDECREF(outer);
	return yes;
}

static int check_dunder_call(struct walk *w, PyObject *node, PyObject *name)
{
	static const char *const allowed[] = { "__init__", "__str__", "__repr__", NULL };
	static const char *const of_object[] = { "__new__", "__setattr__", NULL };
	PyObject *value = node_get(node, "value");
	bool ok = among(name, allowed) || (value && is_call_of(value, "super") && among(name, super_methods)) ||
		  (value && (is_name(value, "object") || is_name(value, "type")) && among(name, of_object));
	Py_XDECREF(value);
	if (ok)
		return 0;
	return walk_error(w, node, POLICY_ATTRIBUTE, "Use the builtin function or the operator instead: len(x), next(x), x + y.",
		"Forbidden call to dunder function: %U", name);
}

static int check_attribute(struct walk *w, PyObject *node)
{
	PyObject *name = node_get(node, "attr");
	if (!name || !PyUnicode_CheckExact(name)) {
		Py_XDECREF(name);
		return -1;
	}
	int r = 0;
	if ((w->called == node && name_is_dunder(name)) || attribute_inspects(name))
		r = 0; /* told after what stands before it, as smolagents would meet them: leave_attribute(), check_called() */
	else if (name_is_dunder(name) && node_is_store(node))
		r = walk_error(w, node, POLICY_ATTRIBUTE, NULL, "Forbidden access to dunder attribute: %U", name);
	else if (!only_tells_a_name(w, name) && attribute_check(name) < 0) {
		w->first_line = w->first_line ? w->first_line : w->line;
		r = -1;
	}
	Py_DECREF(name);
	return r;
}

/* Frames and code objects. */
static int check_inspecting(struct walk *w, PyObject *node)
{
	PyObject *name = node_get(node, "attr");
	int r = name ? 0 : -1;
	if (name && attribute_inspects(name) && attribute_check(name) < 0) {
		w->first_line = w->first_line ? w->first_line : w->line;
		r = -1;
	}
	Py_XDECREF(name);
	return r;
}

/* x.__name__(…) */
static int check_called(struct walk *w, PyObject *node)
{
	PyObject *func = node_get(node, "func"), *name = func && node_kind(func) == NODE_Attribute ? node_get(func, "attr") : NULL;
	int r = name && PyUnicode_CheckExact(name) && name_is_dunder(name) ? check_dunder_call(w, func, name) : 0;
	Py_XDECREF(func);
	Py_XDECREF(name);
	return r;
}

/* Names in patterns are attributes that Python reads. */
static int check_pattern(struct walk *w, PyObject *node)
{
	PyObject *names = node_list(node, "kwd_attrs"); /* borrowed */
	for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names); i++) {
		PyObject *name = PyList_GET_ITEM(names, i);
		/* What a guard would look at cannot be guarded here. */
		if (PyUnicode_READ_CHAR(name, 0) == '_' || PyUnicode_CompareWithASCIIString(name, "obj") == 0) {
			if (attribute_check(name) < 0) {
				w->first_line = w->first_line ? w->first_line : w->line;
				return -1;
			}
			return walk_error(w, node, POLICY_ATTRIBUTE, "Match the object, and read the attribute in the case.",
				"Forbidden access to attribute: %U in a pattern", name);
		}
		if (attribute_check(name) < 0) {
			w->first_line = w->first_line ? w->first_line : w->line;
			return -1;
		}
	}
	return 0;
}

/* ---- functions and classes ------------------------------------------------------------ */

static int check_field_name(struct walk *w, PyObject *node, const char *field)
{
	PyObject *name = node_get(node, field);
	int r = 0;
	if (name && PyUnicode_CheckExact(name) && name_is_dunder(name) && !(w->scope->kind == SCOPE_CLASS && name_is_special(name)))
		r = walk_error(w, node, POLICY_NAME, "Use a name without two underscores at both ends.", "Forbidden access to dunder attribute: %U", name);
	Py_XDECREF(name);
	return r;
}

static int note_globals(struct walk *w, PyObject *node)
{
	PyObject *names = node_list(node, "names"); /* borrowed */
	if (!w->scope->globals && !(w->scope->globals = PySet_New(NULL)))
		return -1;
	for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names); i++) {
		PyObject *name = PyList_GET_ITEM(names, i);
		if (PySet_Add(w->scope->globals, name) < 0)
			return -1;
		if (name_is_dunder(name))
			return walk_error(w, node, POLICY_NAME, NULL, "Forbidden access to dunder attribute: %U", name);
	}
	return 0;
}

/* import a.__b__, import x as __builtins__ */
static int check_alias(struct walk *w, PyObject *node)
{
	int r = check_field_name(w, node, "asname");
	PyObject *name = node_get(node, "name"), *as = node_get(node, "asname");
	if (r == 0 && name && PyUnicode_CheckExact(name) && name_is_dunder(name) && node_kind(w->parent) == NODE_ImportFrom)
		r = attribute_check(name);
	PyObject *bound = as ? as : name;
	if (r == 0 && bound && PyUnicode_CheckExact(bound) && w->scope->kind == SCOPE_MODULE && is_tool(bound) && as)
		r = walk_error(w, node, POLICY_TOOL, "Choose another name.", "Cannot assign to name '%U': doing this would erase the existing tool!", bound);
	Py_XDECREF(name);
	Py_XDECREF(as);
	return r;
}

static int enter(struct walk *w, enum node_kind kind, PyObject *node)
{
	switch (kind) {
	case NODE_Name:
		return check_name(w, node);
	case NODE_Attribute:
		return check_attribute(w, node);
	case NODE_Call:
		w->called = node_get(node, "func");
		Py_XDECREF(w->called); /* the node holds it */
		return 0;
	case NODE_Import:
		return check_import(w, node);
	case NODE_ImportFrom:
		return check_import_from(w, node);
	case NODE_alias:
		return check_alias(w, node);
	case NODE_FunctionDef:
	case NODE_AsyncFunctionDef:
	case NODE_ClassDef:
	case NODE_ExceptHandler:
	case NODE_MatchAs:
	case NODE_MatchStar:
	case NODE_TypeVar:
		return check_field_name(w, node, "name");
	case NODE_MatchMapping:
		return check_field_name(w, node, "rest");
	case NODE_MatchClass:
		return check_pattern(w, node);
	case NODE_arg:
		return check_field_name(w, node, "arg");
	case NODE_keyword:
		return node_kind(w->parent) == NODE_ClassDef ? 0 : check_field_name(w, node, "arg");
	case NODE_Global:
	case NODE_Nonlocal:
		return note_globals(w, node);
	case NODE_TryStar:
		return walk_error(w, node, POLICY_STATEMENT, "Use except, and look at e.exceptions.", "TryStar statements are not allowed.");
	default:
		return 0;
	}
}

/* ---- guards and counting ------------------------------------------------------------------ */

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
	return guard_node(like, GUARD_TICK, NULL, weight, node_make(NODE_Constant, like, 2, Py_NewRef(Py_None), Py_NewRef(Py_None)));
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
	PyObject *arguments = node_get(node, "args"), *list = arguments ? node_list(arguments, "args") : NULL;
	PyObject *second = list && PyList_GET_SIZE(list) > 1 ? PyList_GET_ITEM(list, 1) : NULL;
	PyObject *name = second ? node_get(second, "arg") : NULL;
	int r = 0;
	Py_XDECREF(arguments);
	if (!name)
		return violation(NULL, POLICY_NAME, "Write it as def __getattr__(self, name).", "__getattr__ needs a parameter for the name");
	PyObject *load = node_make(NODE_Name, second, 2, name, node_leaf(NODE_Load));
	r = insert(body, at, node_make(NODE_Expr, second, 1, guard_node(second, GUARD_HOOK, NULL, 0, load)));
	return r;
}

static int finish_function(struct walk *w, PyObject *node)
{
	PyObject *body = node_list(node, "body"), *name = node_get(node, "name"); /* body is borrowed */
	Py_ssize_t at = body && PyList_GET_SIZE(body) && is_docstring(PyList_GET_ITEM(body, 0)) ? 1 : 0;
	int r = body && name ? 0 : -1;
	(void)w;
	if (r == 0 && policy.max_operations)
		r = insert(body, at, node_make(NODE_Expr, node, 1, tick(node, weight_of(node))));
	if (r == 0 && among(name, (const char *const[]){ "__getattr__", "__getattribute__", NULL }))
		r = guard_hook(node, body, at);
	Py_XDECREF(name);
	return r;
}

/* lambda: (tick) or body */
static int finish_lambda(PyObject *node)
{
	PyObject *body = node_get(node, "body"), *values = PyList_New(2), *count = tick(node, weight_of(node));
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
	PyObject *guarded = iterable ? guard_node(iterable, GUARD_LOOP, NULL, weight, Py_NewRef(iterable)) : NULL;
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
		if (kind == NODE_FunctionDef || kind == NODE_ClassDef || kind == NODE_AsyncFunctionDef)
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
	PyObject *body = node_list(node, "body"), *orelse = node_list(node, "orelse"); /* borrowed */
	PyObject *test = node_get(node, "test");
	PyObject *end = orelse ? PyList_GetSlice(orelse, 0, PyList_GET_SIZE(orelse)) : PyList_New(0), *loop = NULL;
	if (!body || !test || !end || insert(end, PyList_GET_SIZE(end), node_make(NODE_Break, test, 0)) < 0) {
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
	loop = node_make(NODE_For, node, 5, nothing, iterable, rounds, PyList_New(0), Py_NewRef(Py_None));
	return loop;
}

static int finish_while(PyObject *node, PyObject **ret)
{
	if (!leaves_loop(node_list(node, "orelse")))
		return (*ret = count_while_node(node)) ? 0 : -1;
	PyObject *body = node_list(node, "body"); /* borrowed; rare: counted without a limit of its own */
	return insert(body, 0, node_make(NODE_Expr, node, 1, tick(node, weight_of(node))));
}

/* object.__setattr__(x, name, v), super().__setattr__(name, v): the name is checked when it runs. */
static int guard_setattr_call(PyObject *node)
{
	PyObject *func = node_get(node, "func"), *args = node_list(node, "args"); /* args is borrowed */
	PyObject *name = func && node_kind(func) == NODE_Attribute ? node_get(func, "attr") : NULL;
	bool is_setter = name && among(name, (const char *const[]){ "__setattr__", "__delattr__", NULL });
	PyObject *value = is_setter ? node_get(func, "value") : NULL;
	Py_ssize_t at = value && is_call_of(value, "super") ? 0 : 1;
	int r = 0;
	if (is_setter && (!args || PyList_GET_SIZE(args) <= at || node_kind(PyList_GET_ITEM(args, at)) == NODE_Starred ||
				 node_kind(PyList_GET_ITEM(args, 0)) == NODE_Starred)) {
		r = violation(NULL, POLICY_ATTRIBUTE, "Give object, name and value one by one.", "Forbidden call to dunder function: %U", name);
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

/* __x inside class C is _C__x, as the compiler would have made it. Takes and returns a reference. */
static PyObject *mangled(const struct walk *w, PyObject *name)
{
	const char *class_name = w->scope->class_name ? PyUnicode_AsUTF8(w->scope->class_name) : NULL;
	if (!name || !class_name || PyUnicode_GET_LENGTH(name) < 3 || PyUnicode_READ_CHAR(name, 0) != '_' ||
		PyUnicode_READ_CHAR(name, 1) != '_' || name_is_dunder(name))
		return name;
	while (*class_name == '_')
		class_name++;
	if (!*class_name)
		return name;
	PyObject *full = PyUnicode_FromFormat("_%s%U", class_name, name);
	Py_DECREF(name);
	return full;
}

/* o._x: the guard looks at o, and the interpreter reads. e.obj: read by a guard that looks at what comes. */
static int guard_attribute(struct walk *w, PyObject *node, PyObject **ret)
{
	PyObject *name = mangled(w, node_get(node, "attr"));
	bool private = name && PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '_' && !name_is_dunder(name);
	bool guarded = name && PyUnicode_CompareWithASCIIString(name, "obj") == 0;
	int r = 0;
	if (private) {
		PyObject *owner = node_get(node, "value"), *checked = guard_node(node, GUARD_OWNER, name, 0, owner);
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
	int r = name ? tinyagent_leave_name(w, node, name, is_refused(w, name), ret) : 0;
	if (r == 0 && name && !*ret && builtin_hidden(name))
		*ret = guard_node(node, GUARD_MISSING, name, 0, Py_NewRef(node));
	Py_XDECREF(name);
	return PyErr_Occurred() ? -1 : r;
}

/* Plain assert says what failed. */
static int name_assertion(struct walk *w, PyObject *node)
{
	PyObject *msg = node_get(node, "msg"), *test = node_get(node, "test");
	PyObject *first = test ? PyObject_GetAttrString(test, "lineno") : NULL, *last = test ? PyObject_GetAttrString(test, "end_lineno") : NULL;
	PyObject *from = test ? PyObject_GetAttrString(test, "col_offset") : NULL, *to = test ? PyObject_GetAttrString(test, "end_col_offset") : NULL;
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
			PyObject *text = source ? PyUnicode_FromFormat("Assertion failed: %U", source) : NULL;
			PyObject *constant = node_make(NODE_Constant, test, 2, text, Py_NewRef(Py_None));
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

static int leave(struct walk *w, enum node_kind kind, PyObject *node, PyObject **ret)
{
	bool counting = policy.max_operations != 0;
	if ((kind == NODE_Attribute && check_inspecting(w, node) < 0) || (kind == NODE_Call && check_called(w, node) < 0))
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
		return counting ? insert(node_list(node, "body"), 0, node_make(NODE_Expr, node, 1, tick(node, weight_of(node)))) : 0;
	case NODE_While:
		return policy.max_operations || policy.max_while ? finish_while(node, ret) : 0;
	case NODE_Call:
		return guard_setattr_call(node);
	case NODE_Name:
		return guard_hidden(w, node, ret);
	case NODE_Attribute:
		return guard_attribute(w, node, ret);
	case NODE_Assert:
		return policy.base == PROFILE_SMOLAGENTS ? name_assertion(w, node) : 0;
	default:
		return 0;
	}
}

const struct rules smolagents_rules = { .enter = enter, .leave = leave };
