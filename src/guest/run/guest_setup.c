/* The SETUP frame: environment, limits, network, profile, preloaded modules. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "guest/policy/policy.h"
#include "guest/run/cell_timing.h"
#include "guest/run/file_changes.h"
#include "guest/run/guest_internal.h"
#include "guest/run/memory.h"
#include "guest/run/own_limits.h"
#include "guest/run/package_requests.h"
#include "guest/snapshot/file_snapshot.h"

static int set_env(const struct wire_field *f)
{
	const char *equals = memchr(f->data, '=', f->len);
	PyObject *os = PyImport_ImportModule("os"),
		 *variables = os ? PyObject_GetAttrString(os, "environ") : NULL;
	PyObject *name = NULL, *value = NULL;
	int r = -1;

	if (equals && variables) {
		name = PyUnicode_DecodeUTF8(f->data, equals - f->data, "surrogateescape");
		value = PyUnicode_DecodeUTF8(
			equals + 1, f->data + f->len - equals - 1, "surrogateescape");
		r = name && value ? PyObject_SetItem(variables, name, value) : -1;
	}

	Py_XDECREF(name);
	Py_XDECREF(value);
	Py_XDECREF(variables);
	Py_XDECREF(os);
	return r;
}

static void reseed(const struct support *s, uint64_t seed)
{
	PyObject *number = PyLong_FromUnsignedLongLong(seed);
	PyObject *r = number ? PyObject_CallOneArg(s->reseed, number) : NULL;
	Py_XDECREF(number);
	Py_XDECREF(r);
}

static void set_network(const struct support *s, const struct wire_field *f)
{
	PyObject *mode = PyUnicode_DecodeUTF8(f->data, (Py_ssize_t)f->len, "replace");
	PyObject *r = mode ? PyObject_CallOneArg(s->set_network, mode) : NULL;
	Py_XDECREF(mode);
	Py_XDECREF(r);
}

static void preload(const struct support *s, PyObject *names)
{
	PyObject *problems = PyObject_CallOneArg(s->preload, names);
	if (problems && PyList_Check(problems)) {
		for (Py_ssize_t i = 0; i < PyList_GET_SIZE(problems); i++)
			PySys_FormatStderr("preload %U\n", PyList_GET_ITEM(problems, i));
	}
	Py_XDECREF(problems);
}

/*
 * Prepares the modules of a template: makes their typical first calls, and freezes all objects, so
 * that garbage collections in the copies do not visit them.
 */
static void become_template(const struct support *s)
{
	PyObject *problems = PyObject_CallNoArgs(s->warm_up);
	PyErr_Clear();
	cell_rehearse(CELL_ADAPTED);
	PyObject *gc = PyImport_ImportModule("gc");
	PyObject *collected = gc ? PyObject_CallMethod(gc, "collect", NULL) : NULL;
	PyObject *frozen = collected ? PyObject_CallMethod(gc, "freeze", NULL) : NULL;
	Py_XDECREF(frozen);
	Py_XDECREF(collected);
	Py_XDECREF(gc);
	Py_XDECREF(problems);
	PyErr_Clear();
}

/*
 * A session with a screen: figures become windows, and cells may be left in a main loop while
 * others run.
 */
static void use_display(const struct support *s)
{
	PyObject *r = PyObject_CallNoArgs(s->use_display);
	Py_XDECREF(r);
	PyErr_Clear();
	guest_catch_cell_signal();
}

void guest_setup(const struct wire_frame *f, const struct support *s)
{
	struct wire_field field;
	size_t at = 0;
	uint64_t n;
	bool template = false;

	steps_begin();
	PyObject *names = PyList_New(0);
	while (wire_field_next(f, &at, &field) == 1) {
		if (field.tag == WIRE_ENV) {
			set_env(&field);
		} else if (field.tag == WIRE_SEED && wire_field_u64(&field, &n) == 0) {
			reseed(s, n);
		} else if (field.tag == WIRE_MEMORY && wire_field_u64(&field, &n) == 0) {
			memory_limit(n);
		} else if (own_limits_apply(&field)) {
			continue;
		} else if (field.tag == WIRE_SCREEN) {
			use_display(s); /* comes behind the environment */
		} else if (field.tag == WIRE_NETWORK) {
			set_network(s, &field);
		} else if (field.tag == WIRE_PACKAGES) {
			packages_add(field.data, field.len);
		} else if (field.tag == WIRE_POLICY) {
			policy_rule(field.data, field.len);
		} else if (field.tag == WIRE_KEEP_FILES && wire_field_u64(&field, &n) == 0) {
			file_snapshot_allow(n);
		} else if (field.tag == WIRE_WIPE) {
			file_snapshot_wipe();
			files_forget_changes();
		} else if (field.tag == WIRE_TEMPLATE) {
			template = true;
		} else if (field.tag == WIRE_PRELOAD && names) {
			PyObject *name = PyUnicode_DecodeUTF8(
				field.data, (Py_ssize_t)field.len, "replace");
			if (name)
				PyList_Append(names, name);
			Py_XDECREF(name);
		}
		PyErr_Clear();
	}

	if (names && PyList_GET_SIZE(names))
		preload(s, names);
	PyErr_Clear();
	if (template)
		become_template(s);
	Py_XDECREF(names);
	steps_end(STEP_SETUP); /* told with the first cell */
	if (policy_apply() < 0)
		/* never without it */
		guest_fail(GUEST_CONTROL_FD, "applying the executor profile", EINVAL);
}
