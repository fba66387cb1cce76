/* Violations: exceptions that know which rule they are about and what would be right. */
#include <string.h>

#include "guest/policy/policy_internal.h"

PyObject *violation_interpreter_error;

static PyObject *rule_key, *remedy_key;

int violation_prepare(void)
{
	violation_interpreter_error = PyErr_NewExceptionWithDoc("builtins.InterpreterError",
		"The profile of this session refused an operation of the code.", PyExc_ValueError,
		NULL);
	rule_key = PyUnicode_InternFromString("policy_rule");
	remedy_key = PyUnicode_InternFromString("policy_remedy");
	return violation_interpreter_error && rule_key && remedy_key ? 0 : -1;
}

static PyObject *default_type(enum policy_rule rule)
{
	if (policy.base == PROFILE_SMOLAGENTS)
		return violation_interpreter_error;
	switch (rule) {
	case POLICY_IMPORT:
	case POLICY_MODULE:
		return PyExc_ImportError;
	case POLICY_ATTRIBUTE:
		return PyExc_AttributeError;
	case POLICY_FORMAT:
		return PyExc_NotImplementedError;
	case POLICY_OPERATIONS:
		return PyExc_RuntimeError;
	default:
		return PyExc_PermissionError;
	}
}

int violation(PyObject *type, enum policy_rule rule, const char *remedy, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	PyObject *text = PyUnicode_FromFormatV(fmt, ap);
	va_end(ap);
	PyErr_Clear();
	if (!type)
		type = default_type(rule);
	PyObject *exception = text ? PyObject_CallOneArg(type, text) : NULL;
	PyObject *number = PyLong_FromLong(rule),
		 *words = PyUnicode_FromString(remedy ? remedy : "");
	if (exception && number && words) {
		if (PyObject_SetAttr(exception, rule_key, number) < 0 ||
			PyObject_SetAttr(exception, remedy_key, words) < 0)
			PyErr_Clear();
		PyErr_SetObject(type, exception);
	}

	Py_XDECREF(text);
	Py_XDECREF(exception);
	Py_XDECREF(number);
	Py_XDECREF(words);
	return -1;
}

void policy_words_finish(struct policy_words *w)
{
	Py_XDECREF(w->type);
	Py_XDECREF(w->message);
	Py_XDECREF(w->remedy);
	Py_XDECREF(w->traceback);
	*w = (struct policy_words){ .rule = POLICY_RULES };
}

/*
 * smolagents' words for a name that is not there: of a function that was called, or of a variable.
 */
static void explain_name(PyObject *exception, struct policy_words *w)
{
	PyObject *name = PyObject_GetAttrString(exception, "name");
	if (!name || !PyUnicode_CheckExact(name) ||
		Py_TYPE(exception) != (PyTypeObject *)PyExc_NameError) {
		PyErr_Clear();
		Py_XDECREF(name);
		return;
	}

	w->type = PyUnicode_FromString("InterpreterError");
	if (policy.called && PySet_Contains(policy.called, name) == 1)
		w->message = PyUnicode_FromFormat(
			"Forbidden function evaluation: '%U' is not among the explicitly allowed tools or "
			"defined/imported in the preceding code",
			name);
	else
		w->message = PyUnicode_FromFormat("The variable `%U` is not defined.", name);
	Py_DECREF(name);
}

void policy_explain(PyObject *exception, struct policy_words *ret)
{
	*ret = (struct policy_words){ .rule = POLICY_RULES };
	if (!policy.active)
		return;
	PyObject *rule = PyObject_GetAttr(exception, rule_key);
	PyErr_Clear();
	if (rule && PyLong_CheckExact(rule)) {
		long n = PyLong_AsLong(rule);
		ret->rule = n >= 0 && n < POLICY_RULES ? (enum policy_rule)n : POLICY_RULES;
		ret->remedy = PyObject_GetAttr(exception, remedy_key);
		PyErr_Clear();
		PyObject *line = PyObject_GetAttrString(exception, "policy_line");
		ret->line = line && PyLong_CheckExact(line) ? PyLong_AsLong(line) : 0;
		Py_XDECREF(line);
		if (ret->remedy && !PyUnicode_CheckExact(ret->remedy))
			Py_CLEAR(ret->remedy);
	} else if (policy.base == PROFILE_SMOLAGENTS) {
		explain_name(exception, ret);
	}

	PyErr_Clear();
	Py_XDECREF(rule);
}
