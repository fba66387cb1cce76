#include "guest/run/cell.h"
#include "guest/run/guest_introspect.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/limits.h"
#include "guest/policy/policy.h"
#include "guest/run/cell_error.h"
#include "guest/run/cell_timing.h"
#include "guest/run/compile.h"
#include "guest/run/effects.h"
#include "guest/run/file_changes.h"
#include "guest/run/final_answer.h"
#include "guest/run/frame.h"
#include "guest/run/memory.h"
#include "guest/run/paint.h"
#include "guest/run/stream.h"
#include "guest/run/tool_calls.h"
#include "wire/wire.h"

static struct support support;
static PyObject *figure_managers_name;
static bool forked;
static bool typed_results;
static bool paints; /* the cell that comes next does */
static PyObject *support_module;
static const char *variables; /* JSON text, of the cell that comes next */
static size_t variables_len;
static PyObject *arguments; /* the arguments of the next program, as a list; or NULL */

/* The cell that runs now, for displays; the innermost when one was left in a main loop. */
static struct current {
	struct buffer *out;
	uint32_t serial;
	unsigned displays;
	enum wire_loop loop;
	cell_send send;
} now;

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
	/* lone surrogates are legal in str */
	PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
	if (!m || !bytes) {
		PyErr_Clear();
		Py_XDECREF(bytes);
		return -1;
	}

	text_len = PyBytes_GET_SIZE(bytes);
	bool json = PyUnicode_CompareWithASCIIString(kind, "j") == 0;
	int r = wire_put(out, WIRE_MIME, m, (size_t)mime_len);
	if (r == 0)
		r = wire_put(out, json ? WIRE_JSON : WIRE_TEXT, PyBytes_AS_STRING(bytes),
			(size_t)text_len);
	Py_DECREF(bytes);
	return r;
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
	frame_put(out, &frame, start);
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

void cell_tell_loop(enum wire_loop loop)
{
	size_t start;
	if (!now.out || now.loop == loop || wire_begin(now.out, WIRE_WAITS, now.serial, &start) < 0)
		return;
	now.loop = loop;
	if (wire_put_u64(now.out, WIRE_LOOP, (uint64_t)loop) < 0)
		now.out->len = start;
	else
		wire_end(now.out, start);
	now.send(now.out);
}

/*
 * _glovebox._tell_loop(how): enum wire_loop, told when it changes. Called for every event of a
 * game, so it must cost nothing.
 */
static PyObject *tell_loop(PyObject *self, PyObject *how)
{
	long loop = PyLong_AsLong(how);
	(void)self;
	if (loop < 0 || loop >= WIRE_LOOP_COUNT)
		PyErr_Clear();
	else
		cell_tell_loop((enum wire_loop)loop);
	Py_RETURN_NONE;
}

static PyMethodDef tell_loop_def = { "_tell_loop", tell_loop, METH_O, NULL };

/* ---- outcomes ------------------------------------------------------------------ */

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
	/* `_` is the last value, as in the interactive interpreter */
	PyObject *builtins = PyEval_GetBuiltins();
	return PyDict_SetItemString(builtins, "_", value);
}

/*
 * CPU time of the process and of the children it waited for; also its highest memory since the
 * reset.
 */
static uint64_t cpu_ns(uint64_t *ret_peak)
{
	struct rusage self, children;
	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	uint64_t us = (uint64_t)(self.ru_utime.tv_usec + self.ru_stime.tv_usec +
				 children.ru_utime.tv_usec + children.ru_stime.tv_usec);
	uint64_t s = (uint64_t)(self.ru_utime.tv_sec + self.ru_stime.tv_sec +
				children.ru_utime.tv_sec + children.ru_stime.tv_sec);
	*ret_peak = (uint64_t)self.ru_maxrss * 1024;
	return s * 1000000000ULL + us * 1000ULL;
}

static void put_done(struct buffer *out, uint32_t serial, struct outcome o, uint64_t cpu_before,
	unsigned effects)
{
	size_t start;
	uint64_t peak, cpu = cpu_ns(&peak) - cpu_before;
	if (wire_begin(out, WIRE_DONE, serial, &start) < 0)
		return;
	wire_put_u64(out, WIRE_OUTCOME, o.kind);
	wire_put_u64(out, WIRE_EXIT_CODE, (uint64_t)o.exit_code);
	wire_put_u64(out, WIRE_CPU_NS, cpu);
	wire_put_u64(out, WIRE_PEAK, peak);
	if (effects)
		wire_put_u64(out, WIRE_EFFECTS, effects);
	steps_end(STEP_REPORT);
	steps_put(out);
	wire_end(out, start);
}

void cell_add_argument(const char *text, size_t len)
{
	PyObject *word = PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, "surrogateescape");
	if (!arguments)
		arguments = PyList_New(0);
	if (!word || !arguments || PyList_Append(arguments, word) < 0)
		PyErr_Clear();
	Py_XDECREF(word);
}

/*
 * sys.argv of a program: its file and the request's arguments. `glovebox run` sets sys.argv in a
 * cell before; that stays.
 */
static void set_arguments(PyObject *path)
{
	PyObject *before = PySys_GetObject("argv"); /* borrowed */
	if (!arguments && before && PyList_Check(before) && PyList_GET_SIZE(before) > 1)
		return;

	PyObject *argv = arguments ? arguments : PyList_New(0);
	arguments = NULL;
	if (!argv || PyList_Insert(argv, 0, path) < 0 || PySys_SetObject("argv", argv) < 0)
		PyErr_Clear();
	Py_XDECREF(argv);
}

/*
 * A program has a file: __file__ is its path. It is written only when the code names it, or for
 * processes that it starts; what looks for data beside the program finds the session's files there.
 */
static void begin_program(const char *code, size_t len)
{
	if (policy_active())
		/* names with underscores are not for the code, and neither are other processes */
		return;
	PyObject *path = PyUnicode_FromString("/workspace/main.py");
	if (path && PyDict_SetItemString(PyModule_GetDict(PyImport_AddModule("__main__")),
			    "__file__", path) == 0)
		PyObject_SetAttrString(support_module, "_is_program", Py_True);
	if (path)
		set_arguments(path);
	if (memmem(code, len, "__file__", strlen("__file__"))) {
		Py_XDECREF(PyObject_CallNoArgs(support.write_program));
		files_forget_changes(); /* the file is not a result of the code */
	}

	PyErr_Clear();
	Py_XDECREF(path);
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

void cell_paint(bool yes)
{
	paints = yes;
}

void cell_set_unwatched(bool yes)
{
	static bool last;
	if (yes != last && support_module)
		PyObject_SetAttrString(support_module, "_unwatched", yes ? Py_True : Py_False);
	last = yes;
}

void cell_set_data_forms(bool yes)
{
	static bool last;
	if (yes != last && support_module)
		PyObject_SetAttrString(support_module, "_data_forms", yes ? Py_True : Py_False);
	last = yes;
}

void cell_forked(void)
{
	forked = true;
	cell_error_forked();
}

static void begin_cell(uint32_t serial, bool final, struct buffer *out, cell_send send)
{
	memory_reset_peak();
	final_answer_forget();
	policy_begin();
	if (variables)
		/* after a profile with fresh names emptied it */
		tools_give(variables, variables_len, support.set_variables);
	variables = NULL;

	now.out = out;
	now.serial = serial;
	now.displays = 0;
	now.loop = WIRE_LOOP_NONE;
	now.send = send;
	tools_begin_cell(serial);
	fault_set_program(final);
}

/*
 * Compiles and runs the code; the value of its last expression (a new reference), or NULL with an
 * error.
 */
static PyObject *run_source(const char *code, size_t len, bool final, PyObject *filename)
{
	PyObject *value = NULL;
	PyObject *source = PyUnicode_DecodeUTF8(code, (Py_ssize_t)len, "replace");
	PyObject *known = filename && source ? PyObject_CallFunctionObjArgs(support.register_source,
						       filename, source, NULL)
					     : NULL;
	if (final && known)
		begin_program(code, len);
	Py_XDECREF(source);

	if (known)
		value = compile_run(code, len, filename);
	memory_lend(false); /* when it did not compile */
	Py_XDECREF(known);
	return value;
}

/*
 * Shows the value, or reports the error; paints windows, shows figures, and ends the program where
 * the cell is one.
 */
static struct outcome conclude(PyObject *value, uint32_t serial, bool final, bool paint,
	struct buffer *out, PyObject *filename)
{
	struct outcome o = { WIRE_OUTCOME_OK, 0 };
	if (!value || show_value(value, out, serial) < 0)
		o = cell_error_report(out, serial, filename);
	Py_XDECREF(value);

	if (paint && !forked)
		/* while the process is there to paint them, and before its figures are closed */
		paint_windows();
	if (flush_figures() < 0 && o.kind == WIRE_OUTCOME_OK)
		o = cell_error_report(out, serial, filename);
	PyErr_Clear();

	if (final && !forked && end_program() < 0 && o.kind == WIRE_OUTCOME_OK)
		o = cell_error_report(out, serial, filename);
	PyErr_Clear();
	return o;
}

int cell_run(const char *code, size_t len, uint32_t serial, bool final, struct buffer *out,
	cell_send send)
{
	char name[32];
	uint64_t peak, cpu = cpu_ns(&peak);
	const struct current outer = now;
	const bool paint = paints;
	steps_begin();
	if (!outer.out)
		effects_begin();

	/* editors put it in front of files; no part of the program */
	if (len >= 3 && memcmp(code, "\xef\xbb\xbf", 3) == 0) {
		code += 3;
		len -= 3;
	}
	begin_cell(serial, final, out, send);

	snprintf(name, sizeof(name), "<cell %u>", serial);
	/* until the code runs: a session that used up its memory can still be told to let go of
	 * some */
	memory_lend(true);
	PyObject *filename = PyUnicode_FromString(name);
	PyObject *value = run_source(code, len, final, filename);
	struct outcome o = conclude(value, serial, final, paint, out, filename);
	Py_XDECREF(filename);

	tools_end_cell();
	steps_end(STEP_VALUE);
	policy_end();
	final_answer_report(out, serial);
	stream_flush_all();
	fflush(NULL); /* what C code printed */

	now = outer;
	if (outer.out)
		tools_begin_cell(outer.serial);
	files_report(out, serial);
	put_done(out, serial, o, cpu, effects_end());
	return o.exit_code;
}

static void say_nothing(struct buffer *frames)
{
	(void)frames;
}

static void rehearse_once(const char *code)
{
	static const char *const left[] = { "last_type", "last_value", "last_traceback",
		"last_exc" };
	_cleanup_buffer_ struct buffer unread = BUFFER_INIT(LIMIT_CODE_BYTES);
	int failed = cell_run(code, strlen(code), 0, false, &unread, say_nothing);

	for (size_t i = 0; failed && i < sizeof(left) / sizeof(left[0]); i++)
		PySys_SetObject(left[i], NULL);
	Py_XDECREF(PyObject_CallNoArgs(support.nothing_to_end)); /* as a program does at its end */
	PyErr_Clear();
	PyObject *filename = PyUnicode_FromString("<cell 0>");
	PyObject *forgotten = filename ? PyObject_CallOneArg(support.forget_source, filename)
				       : NULL;
	PyDict_DelItemString(PyModule_GetDict(PyImport_AddModule("__main__")), "pd");
	PyErr_Clear();
	PyDict_DelItemString(PyEval_GetBuiltins(), "_");
	PyErr_Clear();
	Py_XDECREF(forgotten);
	Py_XDECREF(filename);
}

void cell_rehearse(unsigned times)
{
	const char *code =
		PyDict_GetItemString(PyImport_GetModuleDict(), "pandas")
			? "import pandas as pd\npd.DataFrame({\"a\": [1, 2, 3]})[\"a\"].sum()"
			: "pd = 1\npd + 1";
	for (unsigned i = 0; i < times; i++)
		rehearse_once(code);
	rehearse_once("pd = 1;"); /* compiled by way of a tree, as some are */
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
	PyObject *function = PyCFunction_New(&emit_def, NULL),
		 *loop = PyCFunction_New(&tell_loop_def, NULL);
	if (!module || !function || !loop ||
		PyObject_SetAttrString(module, "_emit", function) < 0 ||
		PyObject_SetAttrString(module, "_tell_loop", loop) < 0)
		return -1;
	support_module = module; /* for good */
	Py_DECREF(function);
	Py_DECREF(loop);
	figure_managers_name = PyUnicode_InternFromString("matplotlib._pylab_helpers");
	if (paint_prepare(s->paint_screen) < 0)
		return -1;
	PyObject *main = PyImport_AddModule("__main__"); /* borrowed */
	/* for good: cells run in it */
	PyObject *globals = main ? Py_NewRef(PyModule_GetDict(main)) : NULL;
	if (!figure_managers_name || !globals || compile_prepare(s, globals) < 0)
		return -1;
	cell_error_prepare(s);
	introspect_prepare(s->introspect, globals);
	return final_answer_prepare(support.encode_answer, globals) < 0 ||
			       policy_prepare(globals) < 0
		       ? -1
		       : 0;
}
