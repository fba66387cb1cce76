#include "guest/run/final_answer.h"

#include <string.h>

#include "base/limits.h"
#include "wire/wire.h"

static PyObject *encoder, *variables, *stop_type;
static PyObject *given;    /* the answer of this cell, or NULL */
static PyObject *reported; /* the `answer` dict that was told already */
static bool stops;

static PyObject *keep(PyObject *value)
{
	Py_XSETREF(given, Py_NewRef(value));
	Py_RETURN_NONE;
}

/*
 * One value, in whatever way it is given: final_answer(x), final_answer(answer=x); tinyAgent adds
 * verified_by.
 */
static PyObject *only_argument(PyObject *args, PyObject *kwargs)
{
	PyObject *key, *value,
		*found = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : NULL;
	Py_ssize_t at = 0, n = PyTuple_GET_SIZE(args);

	while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
		if (PyUnicode_CompareWithASCIIString(key, "verified_by") == 0)
			continue;
		n++;
		found = value;
	}

	if (n == 0)
		return Py_None;
	if (n != 1)
		PyErr_SetString(PyExc_TypeError, "final_answer() takes one value");
	return n == 1 ? found : NULL;
}

static PyObject *final_answer(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)self;
	PyObject *value = only_argument(args, kwargs); /* borrowed */
	if (!value)
		return NULL;
	Py_XSETREF(given, Py_NewRef(value));
	if (!stops)
		return Py_NewRef(value); /* as tinyAgent's: `x = final_answer(9) + 1` */
	PyErr_SetObject(stop_type, value);
	return NULL;
}

/* OpenEnv's: the code goes on. */
static PyObject * final(PyObject *self, PyObject *value)
{
	(void)self;
	return keep(value);
}

static PyObject *final_var(PyObject *self, PyObject *name)
{
	(void)self;
	if (!PyUnicode_CheckExact(name))
		return PyErr_Format(
			PyExc_TypeError, "FINAL_VAR() takes the name of a variable, as a text");
	PyObject *value = PyDict_GetItemWithError(variables, name); /* borrowed */
	if (!value && !PyErr_Occurred())
		PyErr_Format(PyExc_NameError, "FINAL_VAR: there is no variable %R", name);
	return value ? keep(value) : NULL;
}

static PyMethodDef functions[] = {
	{ "final_answer", (PyCFunction)(void (*)(void))final_answer, METH_VARARGS | METH_KEYWORDS,
		"final_answer(value)\n--\n\nGives the value as the answer of the whole task, and returns it." },
	{ "FINAL", final, METH_O,
		"FINAL(value)\n--\n\nGives the value as the answer of the whole task." },
	{ "FINAL_VAR", final_var, METH_O,
		"FINAL_VAR(name)\n--\n\nGives the variable of that name as the answer of the whole task." },
};

int final_answer_prepare(PyObject *encode, PyObject *globals)
{
	encoder = Py_NewRef(encode);
	variables = Py_NewRef(globals);
	stop_type = PyErr_NewException("builtins.FinalAnswerException", PyExc_BaseException, NULL);
	return stop_type ? final_answer_add_builtins(PyEval_GetBuiltins()) : -1;
}

int final_answer_add_builtins(PyObject *builtins)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < sizeof(functions) / sizeof(functions[0]); i++) {
		PyObject *function = PyCFunction_New(&functions[i], NULL);
		r = function ? PyDict_SetItemString(builtins, functions[i].ml_name, function) : -1;
		Py_XDECREF(function);
	}
	return r;
}

void final_answer_stops(bool yes)
{
	stops = yes;
}

void final_answer_forget(void)
{
	Py_CLEAR(given);
}

bool final_answer_is_stop(PyObject *exception)
{
	return given && PyErr_GivenExceptionMatches(exception, stop_type);
}

/* answer = {"content": …, "ready": True}: told once for each such dict. */
static void look_at_variable(void)
{
	PyObject *d = PyDict_GetItemString(variables, "answer"); /* borrowed */
	if (given || !d || !PyDict_CheckExact(d) || d == reported)
		return;
	PyObject *ready = PyDict_GetItemString(d, "ready"),
		 *content = PyDict_GetItemString(d, "content");
	if (ready != Py_True || !content)
		return;
	Py_XSETREF(reported, Py_NewRef(d));
	given = Py_NewRef(content);
}

static int put(struct buffer *out, enum wire_tag tag, PyObject *text)
{
	PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
	int r = bytes ? wire_put(
				out, tag, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes))
		      : -1;
	Py_XDECREF(bytes);
	return r;
}

/*
 * Apart from `out`, as every frame during whose making code of the cell's may run; see put_frame()
 * in cell.c.
 */
static void put_answer(struct buffer *out, uint32_t serial, PyObject *said)
{
	_cleanup_buffer_ struct buffer frame = BUFFER_INIT(out->max);
	PyObject *encoded = PyTuple_GET_ITEM(said, 2);
	size_t start;
	int r = wire_begin(&frame, WIRE_ANSWER, serial, &start);
	if (r == 0)
		r = put(&frame, PyTuple_GET_ITEM(said, 0) == Py_True ? WIRE_JSON : WIRE_TEXT,
			PyTuple_GET_ITEM(said, 1));
	if (r == 0 && encoded != Py_None)
		r = put(&frame, WIRE_ENCODED, encoded);
	if (r < 0)
		return;
	wire_end(&frame, start);
	buffer_append(out, frame.data, frame.len);
}

void final_answer_report(struct buffer *out, uint32_t serial)
{
	look_at_variable();
	PyObject *said = given ? PyObject_CallOneArg(encoder, given) : NULL;
	if (said && PyTuple_Check(said) && PyTuple_GET_SIZE(said) == 3)
		put_answer(out, serial, said);
	PyErr_Clear();
	Py_XDECREF(said);
	Py_CLEAR(given);
}
