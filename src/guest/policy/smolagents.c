/* The rules of smolagents' executor (and of tinyAgent's) on a tree, and its counting. */
#include <string.h>

#include "guest/policy/check.h"
#include "guest/policy/smolagents.h"
#include "guest/run/tool_calls.h"

/*
 * Builtins that are never given; naming one is refused before anything runs, unless the code has a
 * variable of that name.
 */
static const char *const refused_builtins[] = { "eval", "exec", "compile", "globals", "locals",
	"open", "input", "breakpoint", "vars", "dir", "__import__", NULL };

/* Called on super() these are how classes work together. */
static const char *const super_methods[] = { "__new__", "__init_subclass__", "__setattr__",
	"__delattr__", "__enter__", "__exit__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
	"__ge__", "__hash__", "__len__", "__getitem__", "__setitem__", "__delitem__",
	"__contains__", "__iter__", "__next__", "__call__", "__prepare__", "__set_name__",
	"__add__", "__sub__", "__mul__", "__bool__", "__format__", "__missing__", "__aenter__",
	"__aexit__", "__post_init__", "__class_getitem__", "__instancecheck__", "__getattr__",
	NULL };

bool name_among(PyObject *name, const char *const *list)
{
	for (; *list; list++)
		if (PyUnicode_CompareWithASCIIString(name, *list) == 0)
			return true;
	return false;
}

/* ---- names ------------------------------------------------------------------------ */

/* What smolagents gives as tools; builtins that it lacks may be names of variables, such as id. */
static const char *const base_tools[] = { "print", "isinstance", "range", "float", "int", "bool",
	"str", "set", "list", "dict", "tuple", "round", "ceil", "floor", "log", "exp", "sin", "cos",
	"tan", "asin", "acos", "atan", "atan2", "degrees", "radians", "pow", "sqrt", "len", "sum",
	"max", "min", "abs", "enumerate", "zip", "reversed", "sorted", "all", "any", "map",
	"filter", "ord", "chr", "next", "iter", "divmod", "callable", "getattr", "hasattr",
	"setattr", "issubclass", "type", "complex", "final_answer", "format_exc", "safe_json_dumps",
	NULL };

static bool is_tool(PyObject *name)
{
	return policy.base == PROFILE_SMOLAGENTS &&
	       (tools_has(name) || (name_among(name, base_tools) &&
					   PyDict_Contains(policy.builtins, name) == 1));
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
		return walk_error(w, node, POLICY_NAME,
			"Use a name without two underscores at both ends.",
			"Forbidden access to dunder attribute: %U", name);
	/* A hook in a class is a function that this pass has seen. */
	if (w->scope->kind == SCOPE_CLASS &&
		name_among(name, (const char *const[]){ "__getattr__", "__getattribute__", NULL }))
		return walk_error(w, node, POLICY_NAME, "Define it with def.",
			"Forbidden access to dunder attribute: %U", name);
	if (module_level && is_tool(name))
		return walk_error(w, node, POLICY_TOOL, "Choose another name for the variable.",
			"Cannot assign to name '%U': doing this would erase the existing tool!",
			name);
	return 0;
}

/* Is it a variable by now? */
static bool bound_before(PyObject *name)
{
	return PyDict_Contains(policy.globals, name) == 1 || builtin_given(name);
}

/* A builtin that is never given, and no variable. */
bool smolagents_refuses(struct walk *w, PyObject *name)
{
	return name_among(name, refused_builtins) && !bound_before(name) && !walk_binds(w, name);
}

static int check_load(struct walk *w, PyObject *node, PyObject *name)
{
	if (name_is_dunder(name) && PyUnicode_CompareWithASCIIString(name, "__name__") != 0 &&
		PyUnicode_CompareWithASCIIString(name, "__debug__") != 0 &&
		PyUnicode_CompareWithASCIIString(name, "__doc__") != 0 &&
		!(w->scope->kind == SCOPE_CLASS && name_is_special(name))) {
		bool import = PyUnicode_CompareWithASCIIString(name, "__import__") == 0;
		if (import && tinyagent_reads(w))
			return 0;
		if (import)
			return walk_error(w, node, POLICY_FUNCTION, "Use an import statement.",
				"Forbidden access to function: __import__");
		return walk_error(w, node, POLICY_NAME, NULL,
			"Forbidden access to dunder attribute: %U", name);
	}

	if (smolagents_refuses(w, name) && !tinyagent_reads(w))
		return walk_error(w, node, POLICY_FUNCTION,
			"Write the code itself, and use the authorized modules and functions.",
			"Forbidden function evaluation: '%U' is not among the explicitly allowed tools or defined/imported in the preceding code",
			name);
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

bool node_calls(PyObject *node, const char *function)
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
	static const char *const tails[] = { "__name__", "__qualname__", "__module__", "__doc__",
		NULL };
	if (PyUnicode_CompareWithASCIIString(name, "__class__") != 0 || !w->parent ||
		node_kind(w->parent) != NODE_Attribute)
		return false;
	PyObject *outer = node_get(w->parent, "attr");
	bool yes = outer && name_among(outer, tails) && !node_is_store(w->parent);
	Py_XDECREF(outer);
	return yes;
}

static int check_dunder_call(struct walk *w, PyObject *node, PyObject *name)
{
	static const char *const allowed[] = { "__init__", "__str__", "__repr__", NULL };
	static const char *const of_object[] = { "__new__", "__setattr__", NULL };
	PyObject *value = node_get(node, "value");
	bool ok = name_among(name, allowed) ||
		  (value && node_calls(value, "super") && name_among(name, super_methods)) ||
		  (value && (is_name(value, "object") || is_name(value, "type")) &&
			  name_among(name, of_object));
	Py_XDECREF(value);
	if (ok)
		return 0;
	return walk_error(w, node, POLICY_ATTRIBUTE,
		"Use the builtin function or the operator instead: len(x), next(x), x + y.",
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
		/* told after what stands before it, as smolagents would meet them:
		 * leave_attribute(), smolagents_check_called() */
		r = 0;
	else if (name_is_dunder(name) && node_is_store(node))
		r = walk_error(w, node, POLICY_ATTRIBUTE, NULL,
			"Forbidden access to dunder attribute: %U", name);
	else if (!only_tells_a_name(w, name) && attribute_check(name) < 0) {
		w->first_line = w->first_line ? w->first_line : w->line;
		r = -1;
	}

	Py_DECREF(name);
	return r;
}

/* Frames and code objects. */
int smolagents_check_inspecting(struct walk *w, PyObject *node)
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
int smolagents_check_called(struct walk *w, PyObject *node)
{
	PyObject *func = node_get(node, "func"),
		 *name = func && node_kind(func) == NODE_Attribute ? node_get(func, "attr") : NULL;
	int r = name && PyUnicode_CheckExact(name) && name_is_dunder(name)
			? check_dunder_call(w, func, name)
			: 0;
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
		if (PyUnicode_READ_CHAR(name, 0) == '_' ||
			PyUnicode_CompareWithASCIIString(name, "obj") == 0) {
			if (attribute_check(name) < 0) {
				w->first_line = w->first_line ? w->first_line : w->line;
				return -1;
			}
			return walk_error(w, node, POLICY_ATTRIBUTE,
				"Match the object, and read the attribute in the case.",
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
	if (name && PyUnicode_CheckExact(name) && name_is_dunder(name) &&
		!(w->scope->kind == SCOPE_CLASS && name_is_special(name)))
		r = walk_error(w, node, POLICY_NAME,
			"Use a name without two underscores at both ends.",
			"Forbidden access to dunder attribute: %U", name);
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
			return walk_error(w, node, POLICY_NAME, NULL,
				"Forbidden access to dunder attribute: %U", name);
	}
	return 0;
}

/* import a.__b__, import x as __builtins__ */
static int check_alias(struct walk *w, PyObject *node)
{
	int r = check_field_name(w, node, "asname");
	PyObject *name = node_get(node, "name"), *as = node_get(node, "asname");

	if (r == 0 && name && PyUnicode_CheckExact(name) && name_is_dunder(name) &&
		node_kind(w->parent) == NODE_ImportFrom)
		r = attribute_check(name);
	PyObject *bound = as ? as : name;
	if (r == 0 && bound && PyUnicode_CheckExact(bound) && w->scope->kind == SCOPE_MODULE &&
		is_tool(bound) && as)
		r = walk_error(w, node, POLICY_TOOL, "Choose another name.",
			"Cannot assign to name '%U': doing this would erase the existing tool!",
			bound);
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
	default:
		return 0;
	}
}

const struct rules smolagents_rules = { .enter = enter, .leave = smolagents_leave };
