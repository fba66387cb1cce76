#include "guest/run/compile.h"

#include <stdlib.h>
#include <string.h>

#include "guest/policy/policy.h"
#include "guest/run/cell_timing.h"
#include "guest/run/last_expression.h"
#include "guest/run/memory.h"

static PyObject *find_commands_in, *translate_cell, *run_command,
	*run_async_cell; /* of guest/support/ */
static PyObject *compile_builtin, *ast_expr, *ast_expression, *globals;
static PyObject *warnings, *filters_name; /* the module's names; "filters" */
/* `from __future__` of earlier cells goes on, as in the interactive interpreter */
static int future_flags;

struct parts {
	PyObject *statements, *expression; /* code; either may be NULL */
};

static void parts_drop(struct parts *p)
{
	Py_CLEAR(p->statements);
	Py_CLEAR(p->expression);
}

/* ---- compiling text ------------------------------------------------------------ */

static const int text_flags = PyCF_SOURCE_IS_UTF8 | PyCF_IGNORE_COOKIE | PyCF_ALLOW_TOP_LEVEL_AWAIT;

static PyObject *compile_text(const char *text, PyObject *filename, int start)
{
	PyCompilerFlags flags = _PyCompilerFlags_INIT;
	flags.cf_flags = text_flags | future_flags;
	return Py_CompileStringObject(text, filename, start, &flags, -1);
}

/* The expression on its own, in the line where it was. */
static PyObject *compile_closing(const char *code, size_t len, size_t start, PyObject *filename)
{
	size_t lines = 0;
	while (strchr(" \t\n", code[len - 1])) /* an indented empty line would be an error there */
		len--;
	for (const char *p = code; (p = memchr(p, '\n', (size_t)(code + start - p))); p++)
		lines++;
	char *text = malloc(lines + len - start + 1);
	if (!text)
		return PyErr_NoMemory();
	memset(text, '\n', lines);
	memcpy(text + lines, code + start, len - start);
	text[lines + len - start] = '\0';
	PyObject *expression = compile_text(text, filename, Py_eval_input);
	free(text);
	return expression;
}

static void compile_parts(enum closing closing, const char *code, size_t len, size_t start,
	PyObject *filename, struct parts *ret)
{
	char *before;
	if (closing == CLOSING_STATEMENT) {
		ret->statements = compile_text(code, filename, Py_file_input);
		return;
	}
	ret->expression = compile_closing(code, len, start, filename);
	if (ret->expression && start) {
		before = strndup(code, start);
		ret->statements = before ? compile_text(before, filename, Py_file_input) : NULL;
		free(before);
		if (!ret->statements)
			Py_CLEAR(ret->expression);
	}
}

/*
 * The filters with one before them that makes an error of every warning about this file. Others go
 * on: a collection may run somebody's finalizer meanwhile.
 */
static PyObject *refusing(PyObject *filters, PyObject *filename)
{
	PyObject *list = Py_BuildValue("[(sOOOi)]", "error", Py_None, PyExc_Warning, filename, 0);
	if (list && PyList_SetSlice(list, 1, 1, filters) < 0)
		Py_CLEAR(list);
	return list;
}

/*
 * Without a tree, where the text is plain enough. False when it is not, and when it does not
 * compile or the compiler has a warning: then the tree's way has the error, and warns. So a warning
 * is an error here, and is not shown.
 */
static bool compile_plain(const char *code, size_t len, PyObject *filename, struct parts *ret)
{
	size_t start = 0;
	enum closing closing = last_expression_find(code, len, &start);
	PyObject *filters = PyDict_GetItem(warnings, filters_name); /* borrowed */
	if (closing == CLOSING_UNSURE || !filters || memmem(code, len, "__future__", 10))
		return false;
	PyObject *stricter = refusing(filters, filename);
	Py_INCREF(filters);
	if (stricter && PyDict_SetItem(warnings, filters_name, stricter) == 0)
		compile_parts(closing, code, len, start, filename, ret);
	PyErr_Clear();
	/* it has the place already: nothing can fail */
	PyDict_SetItem(warnings, filters_name, filters);
	Py_DECREF(filters);
	Py_XDECREF(stricter);
	return ret->statements || ret->expression;
}

/* ---- compiling a tree ---------------------------------------------------------- */

static PyObject *compile_ast(PyObject *tree, PyObject *filename, const char *mode)
{
	int flags = future_flags | PyCF_ALLOW_TOP_LEVEL_AWAIT;
	policy_trust(true);
	PyObject *code = PyObject_CallFunction(
		compile_builtin, "OOsii", tree, filename, mode, flags, 1);
	policy_trust(false);
	if (code && PyCode_Check(code))
		future_flags |= ((PyCodeObject *)code)->co_flags & PyCF_MASK;
	if (code && policy_seal(code) < 0)
		Py_CLEAR(code);
	return code;
}

static PyObject *parse(const char *code, PyObject *filename)
{
	PyCompilerFlags flags = _PyCompilerFlags_INIT;
	flags.cf_flags = PyCF_ONLY_AST | text_flags | future_flags;
	policy_trust(true);
	PyObject *tree = Py_CompileStringObject(code, filename, Py_file_input, &flags, -1);
	policy_trust(false);
	return tree;
}

/*
 * True when the statement that ends at (line, column) is followed by a semicolon: its value is not
 * wanted, as in notebooks.
 */
static bool value_muted(const char *code, size_t len, PyObject *last)
{
	if (!memchr(code, ';', len))
		return false;
	PyObject *line = PyObject_GetAttrString(last, "end_lineno"),
		 *column = PyObject_GetAttrString(last, "end_col_offset");
	const char *p = code, *end = code + len;
	bool muted = false;
	if (line && column) {
		for (long n = PyLong_AsLong(line); n > 1 && p < end; n--) {
			const char *eol = memchr(p, '\n', (size_t)(end - p));
			p = eol ? eol + 1 : end;
		}
		for (p += PyLong_AsLong(column); p < end && (*p == ' ' || *p == '\t' || *p == ')');
			p++)
			;
		muted = p < end && *p == ';';
	}

	PyErr_Clear();
	Py_XDECREF(line);
	Py_XDECREF(column);
	return muted;
}

/*
 * Takes the closing expression out of the module's body; NULL without an error when there is none.
 */
static PyObject *split_last(PyObject *body, const char *code, size_t len)
{
	Py_ssize_t n = PyList_GET_SIZE(body);
	PyObject *last = n ? PyList_GET_ITEM(body, n - 1) : NULL;
	if (!last || !Py_IS_TYPE(last, (PyTypeObject *)ast_expr) || value_muted(code, len, last))
		return NULL;
	PyObject *value = PyObject_GetAttrString(last, "value");
	PyObject *expression = value ? PyObject_CallOneArg(ast_expression, value) : NULL;
	Py_XDECREF(value);
	if (expression && PyList_SetSlice(body, n - 1, n, NULL) < 0)
		Py_CLEAR(expression);
	return expression;
}

/* Both parts, or -1 with an error: a cell with an error in its last line runs nothing. */
static int compile_tree(
	PyObject *tree, PyObject *filename, const char *code, size_t len, struct parts *ret)
{
	PyObject *body = PyObject_GetAttrString(tree, "body");
	PyObject *expression = body ? split_last(body, code, len) : NULL;
	if (!PyErr_Occurred() && PyList_GET_SIZE(body))
		ret->statements = compile_ast(tree, filename, "exec");
	if (!PyErr_Occurred() && expression)
		ret->expression = compile_ast(expression, filename, "eval");
	Py_XDECREF(expression);
	Py_XDECREF(body);
	if (!PyErr_Occurred())
		return 0;
	parts_drop(ret);
	return -1;
}

/* ---- running ------------------------------------------------------------------ */

static bool awaits(PyObject *code)
{
	return code && ((PyCodeObject *)code)->co_flags & CO_COROUTINE;
}

/*
 * Runs the statements and then the closing expression in __main__. A cell with a top-level await
 * anywhere runs as a whole on the session's event loop. Returns the value of the expression (a new
 * reference, None when there is none), or NULL with an error.
 */
static PyObject *run_parts(const struct parts *p)
{
	memory_lend(false);
	if (awaits(p->statements) || awaits(p->expression))
		return PyObject_CallFunctionObjArgs(run_async_cell,
			p->statements ? p->statements : Py_None,
			p->expression ? p->expression : Py_None, globals, NULL);
	PyObject *value = p->statements ? PyEval_EvalCode(p->statements, globals, globals)
					: Py_NewRef(Py_None);
	if (!value || !p->expression)
		return value;
	Py_DECREF(value);
	return PyEval_EvalCode(p->expression, globals, globals);
}

/* ---- lines that are no Python --------------------------------------------------- */

static PyObject *find_commands(const char *code, size_t len)
{
	PyObject *source = PyUnicode_DecodeUTF8(code, (Py_ssize_t)len, "replace");
	policy_trust(true);
	PyObject *found = source ? PyObject_CallOneArg(find_commands_in, source) : NULL;
	policy_trust(false);
	Py_XDECREF(source);
	if (found && (!PyTuple_Check(found) || PyTuple_GET_SIZE(found) != 2 ||
			     !PyList_Check(PyTuple_GET_ITEM(found, 1))))
		Py_CLEAR(found); /* none */
	return found;
}

static int run_commands(PyObject *commands)
{
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(commands); i++) {
		PyObject *done = PyObject_CallOneArg(run_command, PyList_GET_ITEM(commands, i));
		if (!done)
			return -1;
		Py_DECREF(done);
	}
	return 0;
}

/*
 * The source did not compile: perhaps because of lines such as `%pip install x`. They are carried
 * out first, and the source without them is returned; NULL with the first error, or that of a line
 * that failed.
 */
static PyObject *after_commands(const char *code, size_t len)
{
	PyObject *type, *value, *trace;
	if (!PyErr_ExceptionMatches(PyExc_SyntaxError) || !memmem(code, len, "pip", 3) ||
		(!memchr(code, '!', len) && !memchr(code, '%', len)))
		return NULL;
	PyErr_Fetch(&type, &value, &trace);
	PyObject *found = find_commands(code, len), *rest = NULL;
	if (!found) {
		PyErr_Restore(type, value, trace);
		return NULL;
	}

	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	if (run_commands(PyTuple_GET_ITEM(found, 1)) == 0)
		rest = Py_NewRef(PyTuple_GET_ITEM(found, 0));
	Py_DECREF(found);
	return rest;
}

/* The error of `python3 file.py`. */
static int refuse_nul(PyObject *filename)
{
	PyObject *args = Py_BuildValue(
		"s(OiiO)", "source code cannot contain null bytes", filename, 1, 0, Py_None);
	if (args)
		PyErr_SetObject(PyExc_SyntaxError, args);
	Py_XDECREF(args);
	return -1;
}

/* The same without a profile: all that notebooks write beside Python, in its own place. */
static PyObject *after_translation(const char *code, size_t len)
{
	PyObject *type, *value, *trace;
	if (!PyErr_ExceptionMatches(PyExc_SyntaxError))
		return NULL;
	PyErr_Fetch(&type, &value, &trace);
	PyObject *source = PyUnicode_DecodeUTF8(code, (Py_ssize_t)len, "replace");
	PyObject *text = source ? PyObject_CallOneArg(translate_cell, source) : NULL;
	Py_XDECREF(source);
	if (!text || !PyUnicode_Check(text)) {
		Py_XDECREF(text);
		PyErr_Restore(type, value, trace);
		return NULL;
	}

	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return text;
}

static PyObject *python_of(const char *code, size_t len)
{
	PyObject *rest = after_commands(code, len);
	return rest || policy_active() ? rest : after_translation(code, len);
}

static int compile_cell(const char *code, size_t len, PyObject *filename, struct parts *ret)
{
	if (memchr(code, '\0', len))
		return refuse_nul(filename);
	if (!policy_active() && compile_plain(code, len, filename, ret))
		return 0;
	PyObject *tree = parse(code, filename), *rest = tree ? NULL : python_of(code, len);
	Py_ssize_t rest_len = (Py_ssize_t)len;
	int r = -1;
	if (rest && (code = PyUnicode_AsUTF8AndSize(rest, &rest_len)))
		tree = parse(code, filename);
	if (tree && (!policy_active() || policy_check(tree, code, (size_t)rest_len) == 0))
		r = compile_tree(tree, filename, code, (size_t)rest_len, ret);
	Py_XDECREF(tree);
	Py_XDECREF(rest);
	return r;
}

PyObject *compile_run(const char *code, size_t len, PyObject *filename)
{
	struct parts parts = { 0 };
	if (compile_cell(code, len, filename, &parts) < 0)
		return NULL;
	steps_end(STEP_COMPILE);
	PyObject *value = run_parts(&parts);
	steps_end(STEP_RUN);
	parts_drop(&parts);
	return value;
}

static PyObject *get(const char *module, const char *name)
{
	PyObject *m = PyImport_ImportModule(module);
	PyObject *o = m ? PyObject_GetAttrString(m, name) : NULL;
	Py_XDECREF(m);
	return o;
}

int compile_prepare(const struct support *support, PyObject *main_globals)
{
	find_commands_in = support->find_commands;
	translate_cell = support->translate_cell;
	run_command = support->run_command;
	run_async_cell = support->run_async_cell;
	globals = main_globals;
	compile_builtin = get("builtins", "compile");
	ast_expr = get("ast", "Expr");
	ast_expression = get("ast", "Expression");
	warnings = get("warnings", "__dict__");
	filters_name = PyUnicode_InternFromString("filters");
	return compile_builtin && ast_expr && ast_expression && warnings && filters_name ? 0 : -1;
}
