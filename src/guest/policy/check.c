/* The static pass: every node of a cell's tree, of every kind; what is not known is refused. */
#include "guest/policy/check.h"

#include <stdarg.h>
#include <string.h>

enum { DEPTH_MAX = 5000, ERRORS_MAX = 50 };

int walk_error(struct walk *w, PyObject *node, enum policy_rule rule, const char *remedy,
	const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	PyObject *text = PyUnicode_FromFormatV(fmt, ap);
	va_end(ap);
	int line = node ? node_line(node) : 0, r = -1;
	if (!line)
		line = w->line; /* parts without a place of their own */
	if (!text)
		return -1;
	if (!w->first_line) {
		w->first_line = line;
		w->first_rule = rule;
	}

	if (!w->errors) {
		violation(NULL, rule, remedy, "%U", text);
	} else if (PyList_GET_SIZE(w->errors) < ERRORS_MAX) {
		PyObject *full = PyUnicode_FromFormat("Line %d: %U", line, text);
		r = full ? PyList_Append(w->errors, full) : -1;
		Py_XDECREF(full);
	} else {
		r = 0;
	}

	Py_DECREF(text);
	return r;
}

/* ---- imports --------------------------------------------------------------- */

/*
 * Where all errors are collected, RestrictedPython's own come first: it leaves modules to the host.
 * One that is not even there is met when the code runs.
 */
static int note_import(struct walk *w, PyObject *name, bool from)
{
	if (w->refused_import || !import_exists(name))
		return 0;
	w->refused_import = Py_NewRef(name);
	w->refused_from = from;
	w->refused_line = w->line;
	return 0;
}

int check_import(struct walk *w, PyObject *node)
{
	PyObject *names = node_list(node, "names"); /* borrowed */
	for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names); i++) {
		PyObject *name = node_get(PyList_GET_ITEM(names, i), "name");
		int allowed = name ? import_allowed(name) : 0;
		if (name && !allowed && w->errors)
			allowed = note_import(w, name, false) == 0;
		else if (name && !allowed)
			import_refuse(name, false);
		Py_XDECREF(name);
		if (!allowed) {
			w->first_line = w->line;
			return -1;
		}
	}

	return names ? 0 : -1;
}

int check_import_from(struct walk *w, PyObject *node)
{
	PyObject *name = node_get(node, "module"), *level = node_get(node, "level");
	int allowed = name && PyUnicode_CheckExact(name) ? import_allowed(name) : 0;

	if (level && PyLong_AsLong(level) > 0)
		allowed = 0;
	if (!allowed && name && w->errors)
		allowed = note_import(w, name, true) == 0;
	w->first_line = w->line;
	if (!allowed && name)
		import_refuse(name, true);
	else if (!allowed)
		violation(PyExc_ImportError, POLICY_IMPORT, "Import modules by their full names.",
			"relative imports are not allowed");
	else
		w->first_line = 0;
	Py_XDECREF(name);
	Py_XDECREF(level);
	return allowed ? 0 : -1;
}

/* ---- names that a tree binds ------------------------------------------------- */

static int collect_bound(PyObject *set, PyObject *node, int depth)
{
	static const char *const fields[] = { "arg", "name", "asname", "rest" };
	enum node_kind kind = node_kind(node);
	int r = 0;

	if (kind == NODE_UNKNOWN || kind > NODE_LAST_PART || depth > DEPTH_MAX)
		return 0;
	PyObject *name = kind == NODE_Name && node_is_store(node) ? node_get(node, "id") : NULL;
	for (int i = 0; !name && kind != NODE_Name && kind != NODE_keyword && i < 4; i++)
		name = node_get(node, fields[i]);
	if (name && PyUnicode_Check(name))
		r = PySet_Add(set, name);
	Py_XDECREF(name);
	PyObject *all = node_fields(kind);
	for (Py_ssize_t i = 0; r == 0 && i < PyTuple_GET_SIZE(all); i++) {
		PyObject *value = PyObject_GetAttr(node, PyTuple_GET_ITEM(all, i));
		if (!value)
			PyErr_Clear();
		else if (PyList_CheckExact(value))
			for (Py_ssize_t j = 0; r == 0 && j < PyList_GET_SIZE(value); j++)
				r = collect_bound(set, PyList_GET_ITEM(value, j), depth + 1);
		else
			r = collect_bound(set, value, depth + 1);
		Py_XDECREF(value);
	}

	return r;
}

bool walk_binds(struct walk *w, PyObject *name)
{
	if (!w->bound) {
		w->bound = PySet_New(NULL);
		if (!w->bound || collect_bound(w->bound, w->tree, 0) < 0)
			PyErr_Clear();
	}
	return w->bound && PySet_Contains(w->bound, name) == 1;
}

/* ---- making nodes ------------------------------------------------------------- */

PyObject *guard_node(
	PyObject *like, enum guard_kind kind, PyObject *name, uint64_t weight, PyObject *operand)
{
	PyObject *text = guard_placeholder(kind, name, weight);
	PyObject *constant = node_make(NODE_Constant, like, 2, text, Py_NewRef(Py_None));
	return node_make(NODE_BinOp, like, 3, constant, node_leaf(NODE_MatMult), operand);
}

bool is_docstring(PyObject *statement)
{
	PyObject *value = node_kind(statement) == NODE_Expr ? node_get(statement, "value") : NULL;
	PyObject *text = value && node_kind(value) == NODE_Constant ? node_get(value, "value")
								    : NULL;
	bool yes = text && PyUnicode_Check(text);
	Py_XDECREF(value);
	Py_XDECREF(text);
	return yes;
}

/* ---- walking -------------------------------------------------------------------- */

static int walk_list(struct walk *w, PyObject *list)
{
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
		PyObject *replacement = NULL, *item = PyList_GET_ITEM(list, i);
		if (item == Py_None || PyUnicode_Check(item))
			continue; /* {**x} has no key; names of Global */
		if (walk_node(w, item, &replacement) < 0)
			return -1;
		if (replacement && PyList_SetItem(list, i, replacement) < 0)
			return -1;
	}
	return 0;
}

int walk_field(struct walk *w, PyObject *node, PyObject *field)
{
	PyObject *value = PyObject_GetAttr(node, field), *replacement = NULL;
	int r = 0;

	if (!value) {
		PyErr_Clear(); /* optional fields of trees that are made by hand */
		return 0;
	}

	if (PyList_CheckExact(value))
		r = walk_list(w, value);
	else if (node_kind(value) != NODE_UNKNOWN)
		r = walk_node(w, value, &replacement);
	else if (value != Py_None && !PyUnicode_Check(value) && !PyLong_Check(value) &&
		 node_kind(node) != NODE_Constant && node_kind(node) != NODE_MatchSingleton)
		r = walk_error(w, node, POLICY_STATEMENT, NULL, "%s statements are not allowed.",
			Py_TYPE(value)->tp_name);
	if (r == 0 && replacement)
		r = PyObject_SetAttr(node, field, replacement);
	Py_XDECREF(replacement);
	Py_DECREF(value);
	return r;
}

static bool opens_scope(enum node_kind kind)
{
	return kind == NODE_FunctionDef || kind == NODE_AsyncFunctionDef || kind == NODE_ClassDef ||
	       kind == NODE_Lambda;
}

/* For the guards that count: put beside the node's own fields. */
static int set_weight(PyObject *node, uint64_t weight)
{
	PyObject *n = PyLong_FromUnsignedLongLong(weight);
	int r = n ? PyObject_SetAttrString(node, "_weight", n) : -1;
	Py_XDECREF(n);
	return r;
}

/*
 * The body of a function or class is a scope of its own; its decorators, defaults and bases are not
 * part of it.
 */
static int walk_scope(struct walk *w, enum node_kind kind, PyObject *node, PyObject *body)
{
	struct scope scope = { .outer = w->scope,
		.kind = kind == NODE_ClassDef ? SCOPE_CLASS : SCOPE_FUNCTION };
	uint64_t weight = w->weight;

	scope.is_lambda = kind == NODE_Lambda;
	scope.class_name = kind == NODE_ClassDef ? node_get(node, "name")
						 : Py_XNewRef(w->scope->class_name);
	w->scope = &scope;
	w->weight = 0;
	int r = w->rules->open && kind != NODE_Lambda && !w->text_only
			? w->rules->open(&scope, node)
			: 0;
	if (r == 0)
		r = walk_field(w, node, body);
	w->scope = scope.outer;
	if (r == 0 && kind != NODE_ClassDef)
		r = set_weight(node, w->weight) < 0 ? -1 : r;
	w->weight = kind == NODE_ClassDef ? weight + w->weight : weight;
	Py_XDECREF(scope.globals);
	Py_XDECREF(scope.class_name);
	return r;
}

static bool is_loop(enum node_kind kind)
{
	return kind == NODE_For || kind == NODE_AsyncFor || kind == NODE_While;
}

static int walk_loop(struct walk *w, PyObject *node, PyObject *body)
{
	uint64_t weight = w->weight;
	w->weight = 0;
	int r = walk_field(w, node, body);
	if (r == 0)
		r = set_weight(node, w->weight);
	w->weight = weight;
	return r;
}

static int walk_fields(struct walk *w, enum node_kind kind, PyObject *node)
{
	PyObject *fields = node_fields(kind);
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields); i++) {
		PyObject *field = PyTuple_GET_ITEM(fields, i);
		bool body = PyUnicode_CompareWithASCIIString(field, "body") == 0;
		int r;
		if (body && opens_scope(kind))
			r = walk_scope(w, kind, node, field);
		else if (body && is_loop(kind))
			r = walk_loop(w, node, field);
		else
			r = walk_field(w, node, field);
		if (r < 0)
			return -1;
	}

	return 0;
}

int walk_node(struct walk *w, PyObject *node, PyObject **ret)
{
	enum node_kind kind = node_kind(node);
	*ret = NULL;
	if (kind == NODE_UNKNOWN)
		return walk_error(w, node, POLICY_STATEMENT, NULL, "%s statements are not allowed.",
			node_name(node));
	if (kind > NODE_LAST_PART)
		return 0; /* operators and contexts */
	if (++w->depth > DEPTH_MAX) {
		PyErr_SetString(PyExc_RecursionError, "the code is nested too deeply");
		return -1;
	}

	int line = node_line(node), outer_line = w->line;
	if (line)
		w->line = line;
	PyObject *parent = w->parent;
	if (kind <= NODE_LAST_EXPRESSION)
		w->weight++;
	int r = w->rules->enter(w, kind, node);
	w->parent = node;
	if (r == 0)
		r = walk_fields(w, kind, node);
	w->parent = parent;
	if (r == 0 && w->rules->leave)
		r = w->rules->leave(w, kind, node, ret);
	w->depth--;
	w->line = outer_line;
	return r < 0 ? -1 : 0;
}

/* ---- profiles that only hold imports ---------------------------------------------- */

static int enter_import(struct walk *w, enum node_kind kind, PyObject *node)
{
	if (kind == NODE_Import)
		return check_import(w, node);
	return kind == NODE_ImportFrom ? check_import_from(w, node) : 0;
}

const struct rules import_rules = { .enter = enter_import };

/* ---- entry ---------------------------------------------------------------------------- */

static const struct rules *rules_of_profile(void)
{
	switch (policy.base) {
	case PROFILE_SMOLAGENTS:
	case PROFILE_TINYAGENT:
		return &smolagents_rules;
	case PROFILE_RESTRICTED:
		return &restricted_rules;
	case PROFILE_PYTHON:
		break;
	}
	return &import_rules;
}

/* All that was found, as RestrictedPython says it: one SyntaxError. */
static int raise_errors(struct walk *w)
{
	PyObject *newline = PyUnicode_FromString("\n");
	PyObject *text = newline ? PyUnicode_Join(newline, w->errors) : NULL;
	if (text)
		violation(PyExc_SyntaxError, w->first_rule,
			"Write the code without the construct that the error names; {list_profiles}.",
			"%U", text);
	Py_XDECREF(newline);
	Py_XDECREF(text);
	return -1;
}

/* The error says where it is, as one of the compiler's does. */
static void place_error(int line)
{
#if PY_VERSION_HEX >= 0x030c0000
	PyObject *value = PyErr_GetRaisedException();
#else
	PyObject *type, *value, *traceback;
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
#endif
	PyObject *number = PyLong_FromLong(line);
	if (value && number && PyObject_SetAttrString(value, "policy_line", number) < 0)
		PyErr_Clear();
	Py_XDECREF(number);
#if PY_VERSION_HEX >= 0x030c0000
	PyErr_SetRaisedException(value);
#else
	PyErr_Restore(type, value, traceback);
#endif
}

static int walk_tree(struct walk *w, PyObject *tree)
{
	struct scope module = { .kind = SCOPE_MODULE };
	PyObject *replacement = NULL;

	w->scope = &module;
	w->tree = tree;
	int r = w->rules->open && !w->text_only ? w->rules->open(&module, tree) : 0;
	if (r == 0)
		r = walk_node(w, tree, &replacement);
	Py_XDECREF(replacement);
	Py_XDECREF(module.globals);
	Py_CLEAR(w->bound);
	if (r == 0 && w->errors && PyList_GET_SIZE(w->errors)) {
		r = raise_errors(w);
	} else if (r == 0 && w->refused_import) {
		w->first_line = w->refused_line;
		r = import_refuse(w->refused_import, w->refused_from);
	}

	Py_CLEAR(w->refused_import);
	if (r < 0 && !PyErr_Occurred())
		PyErr_SetString(PyExc_SystemError, "the code could not be checked");
	return r;
}

int policy_check(PyObject *tree, const char *code, size_t len)
{
	struct walk w = { .rules = rules_of_profile(), .code = code, .len = len };
	if (policy.base == PROFILE_RESTRICTED && !(w.errors = PyList_New(0)))
		return -1;
	int r = walk_tree(&w, tree);
	if (r == 0 && policy.base == PROFILE_SMOLAGENTS)
		r = value_of_last_statement(tree);
	if (r < 0) {
		policy.was_refused = true;
		place_error(w.first_line ? w.first_line : 1);
	}
	Py_XDECREF(w.errors);
	return r;
}

int check_text(PyObject *text, const struct rules *rules)
{
	const char *code = PyUnicode_AsUTF8(text);
	PyCompilerFlags flags = _PyCompilerFlags_INIT;

	flags.cf_flags = PyCF_ONLY_AST | PyCF_SOURCE_IS_UTF8 | PyCF_IGNORE_COOKIE;
	policy_trust(true);
	PyObject *name = PyUnicode_FromString("<text>");
	PyObject *tree = code && name
				 ? Py_CompileStringObject(code, name, Py_file_input, &flags, -1)
				 : NULL;
	policy_trust(false);
	Py_XDECREF(name);
	if (!tree) {
		PyErr_Clear();
		return 0; /* it will not compile for the library either */
	}

	struct walk w = { .rules = rules ? rules : rules_of_profile(), .text_only = true };
	int r = walk_tree(&w, tree);
	Py_DECREF(tree);
	return r;
}
