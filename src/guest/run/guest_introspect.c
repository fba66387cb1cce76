#include "guest/run/guest_introspect.h"

static PyObject *introspect, *globals;

void introspect_prepare(PyObject *function, PyObject *dict)
{
	introspect = function;
	globals = Py_NewRef(dict);
}

/* The answer as JSON text; NULL when the code could not give one. */
static PyObject *ask(const struct wire_field *request)
{
	PyObject *text = PyUnicode_DecodeUTF8(request->data, (Py_ssize_t)request->len, "replace");
	PyObject *said = text ? PyObject_CallFunctionObjArgs(introspect, text, globals, NULL)
			      : NULL;
	Py_XDECREF(text);
	if (said && !PyUnicode_Check(said))
		Py_CLEAR(said);
	PyErr_Clear();
	return said;
}

void introspect_answer(const struct wire_frame *f, struct buffer *out)
{
	struct wire_field field;
	size_t at = 0, start;
	PyObject *said = NULL;
	while (!said && wire_field_next(f, &at, &field) == 1)
		if (field.tag == WIRE_JSON)
			said = ask(&field);

	Py_ssize_t len = 0;
	const char *json = said ? PyUnicode_AsUTF8AndSize(said, &len) : NULL;
	PyErr_Clear();
	if (wire_begin(out, WIRE_INTROSPECTED, f->serial, &start) == 0) {
		if (json)
			wire_put(out, WIRE_JSON, json, (size_t)len);
		wire_end(out, start);
	}
	Py_XDECREF(said);
}
