#include "guest/run/cell_error.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "guest/policy/policy.h"
#include "guest/run/final_answer.h"
#include "guest/run/frame.h"
#include "guest/run/memory.h"
#include "guest/run/memory_error.h"

static PyObject *format_error, *advise, *profile_words; /* of guest/support/ */
static bool forked, program;

static void put_text(struct buffer *out, enum wire_tag tag, PyObject *text, size_t max)
{
	PyObject *bytes = PyUnicode_Check(text)
				  ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace")
				  : NULL;
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
	PyObject *said = PyObject_CallFunctionObjArgs(format_error, exception, filename, NULL);
	if (said && PyTuple_Check(said) && PyTuple_GET_SIZE(said) >= 3 && err)
		PyFile_WriteObject(PyTuple_GET_ITEM(said, 2), err, Py_PRINT_RAW);
	PyErr_Clear();
	Py_XDECREF(said);
}

/* What to do about it, where the support code knows. */
static void put_advice(struct buffer *out, PyObject *exception)
{
	PyObject *advice = PyObject_CallOneArg(advise, exception);
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

/*
 * Type and message as the executor that the profile stands for would put them. `said` is
 * format_error()'s.
 */
static void use_profile_words(
	struct policy_words *w, PyObject *exception, PyObject *filename, PyObject *said)
{
	PyObject *type = w->type ? w->type : PyTuple_GET_ITEM(said, 0),
		 *message = w->message ? w->message : PyTuple_GET_ITEM(said, 1);
	PyObject *better = PyObject_CallFunction(profile_words, "sOOOOOl", policy_profile(),
		exception, filename, said, type, message, w->line);
	if (better && PyTuple_Check(better) && PyTuple_GET_SIZE(better) == 3) {
		Py_XSETREF(w->type, Py_NewRef(PyTuple_GET_ITEM(better, 0)));
		Py_XSETREF(w->message, Py_NewRef(PyTuple_GET_ITEM(better, 1)));
		Py_XSETREF(w->traceback, Py_NewRef(PyTuple_GET_ITEM(better, 2)));
	}
	PyErr_Clear();
	Py_XDECREF(better);
}

static void put_error(
	struct buffer *out, uint32_t serial, PyObject *exception, PyObject *filename, bool shown)
{
	_cleanup_buffer_ struct buffer frame = BUFFER_INIT(out->max);
	size_t start;

	if (wire_begin(&frame, WIRE_ERROR, serial, &start) < 0)
		return;
	struct policy_words words;
	policy_explain(exception, &words);
	policy_trust(true);
	PyObject *said = PyObject_CallFunctionObjArgs(format_error, exception, filename, NULL);
	if (said && PyTuple_Check(said) && PyTuple_GET_SIZE(said) >= 4 && policy_active())
		use_profile_words(&words, exception, filename, said);
	policy_trust(false);
	if (said && PyTuple_Check(said) && PyTuple_GET_SIZE(said) >= 4) {
		long line = words.line ? words.line : PyLong_AsLong(PyTuple_GET_ITEM(said, 3));
		put_text(&frame, WIRE_ERROR_TYPE,
			words.type ? words.type : PyTuple_GET_ITEM(said, 0), 1024);
		put_text(&frame, WIRE_TEXT,
			words.message ? words.message : PyTuple_GET_ITEM(said, 1),
			LIMIT_MESSAGE_BYTES);
		put_text(&frame, WIRE_TRACEBACK,
			words.traceback ? words.traceback : PyTuple_GET_ITEM(said, 2),
			shown ? 0 : LIMIT_ERROR_BYTES);
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
	frame_put(out, &frame, start);
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

/*
 * Says whether the hook is the code's own and has shown the error. One that fails is told as by
 * python3, and the error is shown as without it.
 */
static bool call_hook(PyObject *exception, PyObject *filename)
{
	/* borrowed */
	PyObject *hook = PySys_GetObject("excepthook"), *plain = PySys_GetObject("__excepthook__");
	if (!program || forked || !hook || hook == plain || policy_active())
		return false;
	PyObject *traceback = PyException_GetTraceback(exception);
	Py_INCREF(hook);
	PyObject *r = PyObject_CallFunctionObjArgs(hook, (PyObject *)Py_TYPE(exception), exception,
		traceback ? traceback : Py_None, NULL);
	Py_DECREF(hook);
	Py_XDECREF(traceback);
	Py_XDECREF(r);
	if (r)
		return true;
	PyObject *second = take_exception();
	PySys_FormatStderr("Error in sys.excepthook:\n");
	print_error(second, filename);
	PySys_FormatStderr("\nOriginal exception was:\n");
	Py_XDECREF(second);
	return false;
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

struct outcome cell_error_report(struct buffer *out, uint32_t serial, PyObject *filename)
{
	PyObject *exception = take_exception();
	struct outcome o = { policy_refused() ? WIRE_OUTCOME_REFUSED : WIRE_OUTCOME_ERROR, 1 };

	if (final_answer_is_stop(exception)) {
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
		put_error(out, serial, exception, filename, call_hook(exception, filename));
	/* sys.last_value keeps post-mortem tools working, as in the interactive interpreter. */
	PySys_SetObject("last_value", exception);
	PySys_SetObject("last_type", (PyObject *)Py_TYPE(exception));
	PyObject *tb = PyException_GetTraceback(exception);
	PySys_SetObject("last_traceback", tb ? tb : Py_None);
	Py_XDECREF(tb);
	if (memory_error_in(exception)) {
		memory_error_release(exception);
		memory_leave_room();
	}

	Py_DECREF(exception);
	memory_lend(false);
	return o;
}

void fault_set_program(bool yes)
{
	program = yes;
}

void cell_error_forked(void)
{
	forked = true;
}

void cell_error_prepare(const struct support *support)
{
	format_error = support->format_error;
	advise = support->advise;
	profile_words = support->profile_words;
}
