#include "guest/cell.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/limits.h"
#include "guest/answer.h"
#include "guest/files.h"
#include "guest/memory.h"
#include "guest/steps.h"
#include "guest/policy/policy.h"
#include "guest/stream.h"
#include "guest/tools.h"
#include "wire/wire.h"

static struct support support;
static PyObject *compile_builtin, *ast_expr, *ast_expression, *globals, *figure_managers_name;
static bool forked;
static bool typed_results;
static const char *variables; /* JSON text, of the cell that comes next */
static size_t variables_len;
static int future_flags; /* `from __future__` of earlier cells goes on, as in the interactive interpreter */

/* The cell that runs now, for displays; the innermost when one was left in a main loop. */
static struct current {
	struct buffer *out;
	uint32_t serial;
	unsigned displays;
	enum wire_loop loop;
	cell_send send;
} now;

static PyObject *get(const char *module, const char *name)
{
	PyObject *m = PyImport_ImportModule(module);
	PyObject *o = m ? PyObject_GetAttrString(m, name) : NULL;
	Py_XDECREF(m);
	return o;
}

/* ---- bundles ---------------------------------------------------------------- */

/* Appends one (mime, kind, text) of a bundle. */
static int put_form(struct buffer *out, PyObject *form)
{
	PyObject *mime, *kind, *text;
	Py_ssize_t mime_len, text_len;
	if (!PyTuple_Check(form) || PyTuple_GET_SIZE(form) != 3)
		return -1;
	mime = PyTuple_GET_ITEM(form, 0);
	kind = PyTuple_GET_ITEM(form, 1);
	text = PyTuple_GET_ITEM(form, 2);
	if (!PyUnicode_Check(mime) || !PyUnicode_Check(kind) || !PyUnicode_Check(text))
		return -1;
	const char *m = PyUnicode_AsUTF8AndSize(mime, &mime_len);
	PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"); /* lone surrogates are legal in str */
	if (!m || !bytes) {
		PyErr_Clear();
		Py_XDECREF(bytes);
		return -1;
	}
	text_len = PyBytes_GET_SIZE(bytes);
	bool json = PyUnicode_CompareWithASCIIString(kind, "j") == 0;
	int r = wire_put(out, WIRE_MIME, m, (size_t)mime_len);
	if (r == 0)
		r = wire_put(out, json ? WIRE_JSON : WIRE_TEXT, PyBytes_AS_STRING(bytes), (size_t)text_len);
	Py_DECREF(bytes);
	return r;
}

/*
 * A frame is made apart and goes out whole: while it is made, code of the cell's may run (a text's error handler, __str__ of an exception) or
 * another thread, and a display() there sends a frame of its own. A frame that does not fit is left out.
 */
static void put_frame(struct buffer *out, struct buffer *frame, size_t start)
{
	wire_end(frame, start);
	buffer_append(out, frame->data, frame->len);
}

static void put_bundle(struct buffer *out, enum wire_type type, uint32_t serial, PyObject *forms)
{
	_cleanup_buffer_ struct buffer frame = BUFFER_INIT(out->max);
	size_t start;
	if (!PyList_Check(forms) || wire_begin(&frame, type, serial, &start) < 0)
		return;
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(forms); i++)
		if (put_form(&frame, PyList_GET_ITEM(forms, i)) < 0)
			return; /* too large for the wire, or not a bundle: leave it out whole */
	put_frame(out, &frame, start);
}

/* _glovebox._emit(forms): a display goes out at once, after what was printed before it. */
static PyObject *emit(PyObject *self, PyObject *forms)
{
	(void)self;
	if (!now.out || now.displays > LIMIT_DISPLAYS)
		Py_RETURN_NONE; /* between cells, or more than the daemon takes */
	now.displays++;
	stream_flush_all();
	put_bundle(now.out, WIRE_DISPLAY, now.serial, forms);
	now.send(now.out);
	Py_RETURN_NONE;
}

static PyMethodDef emit_def = { "_emit", emit, METH_O, NULL };

/* _glovebox._tell_loop(how): enum wire_loop, told when it changes. Called for every event of a game, so it must cost nothing. */
static PyObject *tell_loop(PyObject *self, PyObject *how)
{
	long loop = PyLong_AsLong(how);
	size_t start;
	(void)self;
	if (loop < 0 || loop >= WIRE_LOOP_COUNT) {
		PyErr_Clear();
		Py_RETURN_NONE;
	}
	if (!now.out || now.loop == (enum wire_loop)loop || wire_begin(now.out, WIRE_WAITS, now.serial, &start) < 0)
		Py_RETURN_NONE;
	now.loop = (enum wire_loop)loop;
	if (wire_put_u64(now.out, WIRE_LOOP, (uint64_t)loop) < 0)
		now.out->len = start;
	else
		wire_end(now.out, start);
	now.send(now.out);
	Py_RETURN_NONE;
}

static PyMethodDef tell_loop_def = { "_tell_loop", tell_loop, METH_O, NULL };

/* ---- running ------------------------------------------------------------------ */

static PyObject *compile_ast(PyObject *tree, PyObject *filename, const char *mode)
{
	int flags = future_flags | PyCF_ALLOW_TOP_LEVEL_AWAIT;
	policy_trust(true);
	PyObject *code = PyObject_CallFunction(compile_builtin, "OOsii", tree, filename, mode, flags, 1);
	policy_trust(false);
	if (code && PyCode_Check(code))
		future_flags |= ((PyCodeObject *)code)->co_flags & PyCF_MASK;
	if (code && policy_seal(code) < 0)
		Py_CLEAR(code);
	return code;
}

/* True when the statement that ends at (line, column) is followed by a semicolon: its value is not wanted, as in notebooks. */
static bool value_muted(const char *code, size_t len, PyObject *last)
{
	if (!memchr(code, ';', len))
		return false;
	PyObject *line = PyObject_GetAttrString(last, "end_lineno"), *column = PyObject_GetAttrString(last, "end_col_offset");
	const char *p = code, *end = code + len;
	bool muted = false;
	if (line && column) {
		for (long n = PyLong_AsLong(line); n > 1 && p < end; n--) {
			const char *eol = memchr(p, '\n', (size_t)(end - p));
			p = eol ? eol + 1 : end;
		}
		for (p += PyLong_AsLong(column); p < end && (*p == ' ' || *p == '\t' || *p == ')'); p++)
			;
		muted = p < end && *p == ';';
	}
	PyErr_Clear();
	Py_XDECREF(line);
	Py_XDECREF(column);
	return muted;
}

/* Takes the closing expression out of the module's body; NULL without an error when there is none. */
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

static bool awaits(PyObject *code)
{
	return code && ((PyCodeObject *)code)->co_flags & CO_COROUTINE;
}

/* Runs the statements and then the closing expression (either may be NULL) in __main__. A cell with a top-level await anywhere
 * runs as a whole on the session's event loop. */
static PyObject *run_parts(PyObject *first, PyObject *second)
{
	memory_lend(false);
	if (awaits(first) || awaits(second))
		return PyObject_CallFunctionObjArgs(support.run_async_cell, first ? first : Py_None, second ? second : Py_None,
			globals, NULL);
	PyObject *value = first ? PyEval_EvalCode(first, globals, globals) : Py_NewRef(Py_None);
	if (!value || !second)
		return value;
	Py_DECREF(value);
	return PyEval_EvalCode(second, globals, globals);
}

/* The value of the last expression (a new reference, None when there is none), or NULL with an error. */
static PyObject *run_tree(PyObject *tree, PyObject *filename, const char *code, size_t len)
{
	PyObject *body = PyObject_GetAttrString(tree, "body"), *expression = NULL, *value = NULL;
	PyObject *first = NULL, *second = NULL;
	if (!body)
		return NULL;
	expression = split_last(body, code, len);
	if (!expression && PyErr_Occurred())
		goto out;
	/* Both are compiled before either runs: a cell with an error in its last line runs nothing. */
	if (PyList_GET_SIZE(body) && !(first = compile_ast(tree, filename, "exec")))
		goto out;
	if (expression && !(second = compile_ast(expression, filename, "eval")))
		goto out;
	steps_end(STEP_COMPILE);
	value = run_parts(first, second);
	steps_end(STEP_RUN);
out:
	Py_XDECREF(first);
	Py_XDECREF(second);
	Py_XDECREF(expression);
	Py_DECREF(body);
	return value;
}

static PyObject *parse(const char *code, PyObject *filename)
{
	PyCompilerFlags flags = _PyCompilerFlags_INIT;
	flags.cf_flags = PyCF_ONLY_AST | PyCF_SOURCE_IS_UTF8 | PyCF_IGNORE_COOKIE | PyCF_ALLOW_TOP_LEVEL_AWAIT | future_flags;
	policy_trust(true);
	PyObject *tree = Py_CompileStringObject(code, filename, Py_file_input, &flags, -1);
	policy_trust(false);
	return tree;
}

static PyObject *find_commands(const char *code, size_t len)
{
	PyObject *source = PyUnicode_DecodeUTF8(code, (Py_ssize_t)len, "replace");
	policy_trust(true);
	PyObject *found = source ? PyObject_CallOneArg(support.find_commands, source) : NULL;
	policy_trust(false);
	Py_XDECREF(source);
	if (found && (!PyTuple_Check(found) || PyTuple_GET_SIZE(found) != 2 || !PyList_Check(PyTuple_GET_ITEM(found, 1))))
		Py_CLEAR(found); /* none */
	return found;
}

static int run_commands(PyObject *commands)
{
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(commands); i++) {
		PyObject *done = PyObject_CallOneArg(support.run_command, PyList_GET_ITEM(commands, i));
		if (!done)
			return -1;
		Py_DECREF(done);
	}
	return 0;
}

/*
 * The source did not compile: perhaps because of lines such as `%pip install x`. They are carried out first, and the source without
 * them is returned; NULL with the first error, or that of a line that failed.
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

static PyObject *run_source(const char *code, size_t len, PyObject *filename)
{
	PyObject *tree = parse(code, filename), *rest = tree ? NULL : after_commands(code, len), *value = NULL;
	Py_ssize_t rest_len = (Py_ssize_t)len;
	if (rest && (code = PyUnicode_AsUTF8AndSize(rest, &rest_len)))
		tree = parse(code, filename);
	if (tree && (!policy_active() || policy_check(tree, code, (size_t)rest_len) == 0))
		value = run_tree(tree, filename, code, (size_t)rest_len);
	Py_XDECREF(tree);
	Py_XDECREF(rest);
	return value;
}

/* ---- outcomes ------------------------------------------------------------------ */

struct outcome {
	enum wire_outcome kind;
	int exit_code;
};

static void put_text(struct buffer *out, enum wire_tag tag, PyObject *text, size_t max)
{
	PyObject *bytes = PyUnicode_Check(text) ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace") : NULL;
	if (!bytes) {
		PyErr_Clear();
		return;
	}
	size_t len = (size_t)PyBytes_GET_SIZE(bytes);
	wire_put(out, tag, PyBytes_AS_STRING(bytes), len < max ? len : max);
	Py_DECREF(bytes);
}

/* When even formatting failed (no memory, an interrupt in between), the bare type must do. */
static void put_plain_error(struct buffer *out, PyObject *exception)
{
	const char *name = Py_TYPE(exception)->tp_name;
	wire_put(out, WIRE_ERROR_TYPE, name, strlen(name));
	wire_put(out, WIRE_TEXT, "", 0);
	wire_put(out, WIRE_TRACEBACK, name, strlen(name));
}

/* As python3 does with an error that nobody caught. */
static void print_error(PyObject *exception, PyObject *filename)
{
	PyObject *err = PySys_GetObject("stderr"); /* borrowed */
	PyObject *said = PyObject_CallFunctionObjArgs(support.format_error, exception, filename, NULL);
	if (said && PyTuple_Check(said) && PyTuple_GET_SIZE(said) >= 3 && err)
		PyFile_WriteObject(PyTuple_GET_ITEM(said, 2), err, Py_PRINT_RAW);
	PyErr_Clear();
	Py_XDECREF(said);
}

/* What to do about it, where the support code knows. */
static void put_advice(struct buffer *out, PyObject *exception)
{
	PyObject *advice = PyObject_CallOneArg(support.advise, exception);
	if (advice && PyTuple_Check(advice) && PyTuple_GET_SIZE(advice) == 2) {
		put_text(out, WIRE_ERROR_CODE, PyTuple_GET_ITEM(advice, 0), LIMIT_ADVICE_BYTES);
		put_text(out, WIRE_REMEDY, PyTuple_GET_ITEM(advice, 1), LIMIT_ADVICE_BYTES);
	}
	PyErr_Clear();
	Py_XDECREF(advice);
}

/* 0 unless it is an OSError of the kernel's making; a subclass may have put anything there. */
static uint64_t errno_of(PyObject *exception)
{
	if (!PyErr_GivenExceptionMatches(exception, PyExc_OSError))
		return 0;
	PyObject *number = ((PyOSErrorObject *)exception)->myerrno;
	long n = number && PyLong_CheckExact(number) ? PyLong_AsLong(number) : 0;
	PyErr_Clear();
	return n > 0 ? (uint64_t)n : 0;
}

/* Type and message as the executor that the profile stands for would put them. `said` is format_error()'s. */
static void use_profile_words(struct policy_words *w, PyObject *exception, PyObject *filename, PyObject *said)
{
	PyObject *type = w->type ? w->type : PyTuple_GET_ITEM(said, 0), *message = w->message ? w->message : PyTuple_GET_ITEM(said, 1);
	PyObject *better = PyObject_CallFunction(support.profile_words, "sOOOOOl", policy_profile(), exception, filename, said, type, message,
		w->line);
	if (better && PyTuple_Check(better) && PyTuple_GET_SIZE(better) == 3) {
		Py_XSETREF(w->type, Py_NewRef(PyTuple_GET_ITEM(better, 0)));
		Py_XSETREF(w->message, Py_NewRef(PyTuple_GET_ITEM(better, 1)));
		Py_XSETREF(w->traceback, Py_NewRef(PyTuple_GET_ITEM(better, 2)));
	}
	PyErr_Clear();
	Py_XDECREF(better);
}

static void put_error(struct buffer *out, uint32_t serial, PyObject *exception, PyObject *filename)
{
	_cleanup_buffer_ struct buffer frame = BUFFER_INIT(out->max);
	size_t start;
	if (wire_begin(&frame, WIRE_ERROR, serial, &start) < 0)
		return;
	struct policy_words words;
	policy_explain(exception, &words);
	policy_trust(true);
	PyObject *said = PyObject_CallFunctionObjArgs(support.format_error, exception, filename, NULL);
	if (said && PyTuple_Check(said) && PyTuple_GET_SIZE(said) >= 4 && policy_active())
		use_profile_words(&words, exception, filename, said);
	policy_trust(false);
	if (said && PyTuple_Check(said) && PyTuple_GET_SIZE(said) >= 4) {
		long line = words.line ? words.line : PyLong_AsLong(PyTuple_GET_ITEM(said, 3));
		put_text(&frame, WIRE_ERROR_TYPE, words.type ? words.type : PyTuple_GET_ITEM(said, 0), 1024);
		put_text(&frame, WIRE_TEXT, words.message ? words.message : PyTuple_GET_ITEM(said, 1), LIMIT_MESSAGE_BYTES);
		put_text(&frame, WIRE_TRACEBACK, words.traceback ? words.traceback : PyTuple_GET_ITEM(said, 2), LIMIT_ERROR_BYTES);
		wire_put_u64(&frame, WIRE_LINE, line > 0 ? (uint64_t)line : 0);
		if (words.rule == POLICY_RULES)
			put_advice(&frame, exception);
		wire_put_u64(&frame, WIRE_ERRNO, errno_of(exception));
	} else {
		put_plain_error(&frame, exception);
	}
	PyErr_Clear();
	if (words.rule < POLICY_RULES)
		wire_put_u64(&frame, WIRE_RULE, words.rule);
	if (words.remedy)
		put_text(&frame, WIRE_REMEDY, words.remedy, LIMIT_ADVICE_BYTES);
	policy_words_finish(&words);
	Py_XDECREF(said);
	put_frame(out, &frame, start);
}

/* sys.exit(): None is 0, a number is itself, anything else is printed to stderr and counts as 1. */
static int exit_code_of(PyObject *exception)
{
	PyObject *code = PyObject_GetAttrString(exception, "code");
	int status = 1;
	if (!code || code == Py_None) {
		status = 0;
	} else if (PyLong_Check(code)) {
		status = (int)(PyLong_AsUnsignedLongMask(code) & 0xff);
	} else {
		PyObject *err = PySys_GetObject("stderr"); /* borrowed */
		if (err && PyFile_WriteObject(code, err, Py_PRINT_RAW) == 0)
			PyFile_WriteString("\n", err);
	}
	PyErr_Clear();
	Py_XDECREF(code);
	return status;
}

/* An exit is not a fault: it has a type and a code, and no traceback. */
static void put_exit(struct buffer *out, uint32_t serial, int code)
{
	size_t start;
	char text[32];
	if (wire_begin(out, WIRE_ERROR, serial, &start) < 0)
		return;
	snprintf(text, sizeof(text), "exit code %d", code);
	wire_put(out, WIRE_ERROR_TYPE, "SystemExit", strlen("SystemExit"));
	wire_put(out, WIRE_TEXT, text, strlen(text));
	wire_put(out, WIRE_TRACEBACK, "", 0);
	wire_end(out, start);
}

/* Fetches the raised exception, normalised, with its traceback attached. */
static PyObject *take_exception(void)
{
#if PY_VERSION_HEX >= 0x030c0000
	return PyErr_GetRaisedException();
#else
	PyObject *type, *value, *traceback;
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	if (traceback)
		PyException_SetTraceback(value, traceback);
	Py_XDECREF(type);
	Py_XDECREF(traceback);
	return value;
#endif
}

static struct outcome report_exception(struct buffer *out, uint32_t serial, PyObject *filename)
{
	PyObject *exception = take_exception();
	struct outcome o = { policy_refused() ? WIRE_OUTCOME_REFUSED : WIRE_OUTCOME_ERROR, 1 };
	if (answer_is_stop(exception)) {
		Py_DECREF(exception);
		return (struct outcome){ WIRE_OUTCOME_OK, 0 };
	}
	if (PyErr_GivenExceptionMatches(exception, PyExc_SystemExit)) {
		o = (struct outcome){ WIRE_OUTCOME_EXIT, exit_code_of(exception) };
		if (o.exit_code)
			put_exit(out, serial, o.exit_code);
		Py_DECREF(exception);
		return o;
	} else if (PyErr_GivenExceptionMatches(exception, PyExc_KeyboardInterrupt)) {
		o = (struct outcome){ WIRE_OUTCOME_INTERRUPT, 130 };
	} else if (PyErr_GivenExceptionMatches(exception, PyExc_MemoryError)) {
		o.kind = WIRE_OUTCOME_MEMORY;
	}
	memory_lend(true); /* formatting needs memory that may be what ran out */
	if (forked)
		print_error(exception, filename);
	else
		put_error(out, serial, exception, filename);
	/* sys.last_value keeps post-mortem tools working, as in the interactive interpreter. */
	PySys_SetObject("last_value", exception);
	PySys_SetObject("last_type", (PyObject *)Py_TYPE(exception));
	PyObject *tb = PyException_GetTraceback(exception);
	PySys_SetObject("last_traceback", tb ? tb : Py_None);
	Py_XDECREF(tb);
	Py_DECREF(exception);
	memory_lend(false);
	return o;
}

/* Open figures become displays, as notebooks do; asked only where pyplot is in use. */
static int flush_figures(void)
{
	PyObject *helpers = PyDict_GetItem(PyImport_GetModuleDict(), figure_managers_name);
	if (!helpers)
		return 0;
	PyObject *gcf = PyObject_GetAttrString(helpers, "Gcf");
	PyObject *figures = gcf ? PyObject_GetAttrString(gcf, "figs") : NULL;
	int any = figures ? PyObject_IsTrue(figures) : 0;
	Py_XDECREF(gcf);
	Py_XDECREF(figures);
	if (any <= 0) {
		PyErr_Clear();
		return 0;
	}
	PyObject *r = PyObject_CallNoArgs(support.flush_figures);
	Py_XDECREF(r);
	return r ? 0 : -1;
}

static int show_value(PyObject *value, struct buffer *out, uint32_t serial)
{
	if (value == Py_None)
		return 0;
	PyObject *forms = PyObject_CallOneArg(support.bundle, value);
	if (!forms)
		return -1;
	if (typed_results)
		Py_XDECREF(PyObject_CallFunctionObjArgs(support.add_typed, forms, value, NULL));
	PyErr_Clear();
	put_bundle(out, WIRE_RESULT, serial, forms);
	Py_DECREF(forms);
	PyObject *builtins = PyEval_GetBuiltins(); /* `_` is the last value, as in the interactive interpreter */
	return PyDict_SetItemString(builtins, "_", value);
}

/* CPU time of the process and of the children it waited for; also its highest memory since the reset. */
static uint64_t cpu_ns(uint64_t *ret_peak)
{
	struct rusage self, children;
	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	uint64_t us = (uint64_t)(self.ru_utime.tv_usec + self.ru_stime.tv_usec + children.ru_utime.tv_usec +
				 children.ru_stime.tv_usec);
	uint64_t s = (uint64_t)(self.ru_utime.tv_sec + self.ru_stime.tv_sec + children.ru_utime.tv_sec +
				children.ru_stime.tv_sec);
	*ret_peak = (uint64_t)self.ru_maxrss * 1024;
	return s * 1000000000ULL + us * 1000ULL;
}

static void put_done(struct buffer *out, uint32_t serial, struct outcome o, uint64_t cpu_before)
{
	size_t start;
	uint64_t peak, cpu = cpu_ns(&peak) - cpu_before;
	if (wire_begin(out, WIRE_DONE, serial, &start) < 0)
		return;
	wire_put_u64(out, WIRE_OUTCOME, o.kind);
	wire_put_u64(out, WIRE_EXIT_CODE, (uint64_t)o.exit_code);
	wire_put_u64(out, WIRE_CPU_NS, cpu);
	wire_put_u64(out, WIRE_PEAK, peak);
	steps_end(STEP_REPORT);
	steps_put(out);
	wire_end(out, start);
}

/* The end of the program, in the cell's own time and with its own error. */
static int end_program(void)
{
	PyObject *r = PyObject_CallNoArgs(support.end_program);
	Py_XDECREF(r);
	return r ? 0 : -1;
}

void cell_set_variables(const char *json, size_t len)
{
	variables = json;
	variables_len = len;
}

void cell_type_result(bool yes)
{
	typed_results = yes;
}

void cell_forked(void)
{
	forked = true;
}

int cell_run(const char *code, size_t len, uint32_t serial, bool final, struct buffer *out, cell_send send)
{
	char name[32];
	struct outcome o = { WIRE_OUTCOME_OK, 0 };
	uint64_t peak, cpu = cpu_ns(&peak);
	const struct current outer = now;
	steps_begin();

	if (len >= 3 && memcmp(code, "\xef\xbb\xbf", 3) == 0) { /* editors put it in front of files; no part of the program */
		code += 3;
		len -= 3;
	}
	memory_reset_peak();
	answer_forget();
	policy_begin();
	if (variables)
		tools_give(variables, variables_len, support.set_variables); /* after a profile with fresh names emptied it */
	variables = NULL;
	now.out = out;
	now.serial = serial;
	now.displays = 0;
	now.loop = WIRE_LOOP_NONE;
	now.send = send;
	tools_begin_cell(serial);
	snprintf(name, sizeof(name), "<cell %u>", serial);
	memory_lend(true); /* until the code runs: a session that used up its memory can still be told to let go of some */
	PyObject *filename = PyUnicode_FromString(name), *value = NULL;
	PyObject *source = PyUnicode_DecodeUTF8(code, (Py_ssize_t)len, "replace");
	PyObject *known = filename && source ? PyObject_CallFunctionObjArgs(support.register_source, filename, source, NULL) : NULL;
	Py_XDECREF(source);
	if (known)
		value = run_source(code, len, filename);
	memory_lend(false); /* when it did not compile */
	Py_XDECREF(known);
	if (!value || show_value(value, out, serial) < 0)
		o = report_exception(out, serial, filename);
	Py_XDECREF(value);
	if (flush_figures() < 0 && o.kind == WIRE_OUTCOME_OK)
		o = report_exception(out, serial, filename);
	PyErr_Clear();
	if (final && !forked && end_program() < 0 && o.kind == WIRE_OUTCOME_OK)
		o = report_exception(out, serial, filename);
	PyErr_Clear();
	Py_XDECREF(filename);
	tools_end_cell();
	steps_end(STEP_VALUE);
	policy_end();
	answer_report(out, serial);
	stream_flush_all();
	fflush(NULL); /* what C code printed */
	now = outer;
	if (outer.out)
		tools_begin_cell(outer.serial);
	files_report(out, serial);
	put_done(out, serial, o, cpu);
	return o.exit_code;
}

const char *cell_check(const char *code, size_t len)
{
	static const char *const verdicts[] = { "complete", "incomplete", "invalid" };
	PyObject *source = PyUnicode_DecodeUTF8(code, (Py_ssize_t)len, "replace");
	PyObject *said = source ? PyObject_CallOneArg(support.is_complete, source) : NULL;
	const char *verdict = verdicts[2];
	for (int i = 0; said && PyUnicode_Check(said) && i < 3; i++)
		if (PyUnicode_CompareWithASCIIString(said, verdicts[i]) == 0)
			verdict = verdicts[i];
	PyErr_Clear();
	Py_XDECREF(source);
	Py_XDECREF(said);
	return verdict;
}

int cell_prepare(const struct support *s)
{
	support = *s;
	PyObject *module = PyImport_ImportModule("_glovebox");
	PyObject *function = PyCFunction_New(&emit_def, NULL), *loop = PyCFunction_New(&tell_loop_def, NULL);
	if (!module || !function || !loop || PyObject_SetAttrString(module, "_emit", function) < 0 ||
		PyObject_SetAttrString(module, "_tell_loop", loop) < 0)
		return -1;
	Py_DECREF(module);
	Py_DECREF(function);
	Py_DECREF(loop);
	compile_builtin = get("builtins", "compile");
	ast_expr = get("ast", "Expr");
	ast_expression = get("ast", "Expression");
	figure_managers_name = PyUnicode_InternFromString("matplotlib._pylab_helpers");
	PyObject *main = PyImport_AddModule("__main__"); /* borrowed */
	globals = main ? Py_NewRef(PyModule_GetDict(main)) : NULL;
	if (!compile_builtin || !ast_expr || !ast_expression || !figure_managers_name || !globals)
		return -1;
	return answer_prepare(support.encode_answer, globals) < 0 || policy_prepare(globals) < 0 ? -1 : 0;
}
