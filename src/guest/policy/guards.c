/*
 * Guards: constants of a cell's compiled code that act where its tree could not be decided.
 *
 * They are written `guard @ operand` in the tree: an operator on a constant needs no name that code
 * could bind to something else, and costs a third of a call. compile() takes no foreign objects as
 * constants, so a secret text stands in the tree for each guard, and policy_seal() puts the guard
 * in its place.
 */
#include <stdio.h>

#include "base/text.h"
#include "guest/policy/policy_internal.h"

struct guard {
	PyObject_HEAD enum guard_kind kind;
	PyObject *name;
	uint64_t weight;
	/*
	 * The class whose instances were let through the last time, as it was then: its number
	 * changes with it and with its bases.
	 */
	PyTypeObject *known_type;
	unsigned int known_version;
};

static PyTypeObject guard_type;
static PyObject *known;    /* placeholder → guard */
static char secret[33];    /* a secret that code cannot guess; created at first use */
static PyObject *obj_name; /* "obj" */

bool guard_is(PyObject *o, enum guard_kind kind)
{
	return Py_IS_TYPE(o, &guard_type) && ((struct guard *)o)->kind == kind;
}

/*
 * Private names of a cell's own objects are read in loops: what was found out about a class holds
 * until it changes.
 */
static int check_private(struct guard *g, PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	if (type == g->known_type && type->tp_version_tag == g->known_version && g->known_version)
		return 0;
	if (private_check(object, g->name) < 0 || module_owner_check(object) < 0)
		return -1;
	if (private_by_class(object)) {
		g->known_type = type; /* only compared */
		g->known_version = PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)
					   ? type->tp_version_tag
					   : 0;
	}
	return 0;
}

/* obj of an AttributeError or NameError is whatever an access was refused on. */
static PyObject *read_attribute(struct guard *g, PyObject *object)
{
	if (g->name == obj_name && PyExceptionInstance_Check(object))
		return violation_null(NULL, POLICY_ATTRIBUTE, "Use str(e) to see what was wrong.",
			"\"obj\" of an exception cannot be read");
	if (check_private(g, object) < 0)
		return NULL;
	PyObject *value = PyObject_GetAttr(object, g->name);
	if (!value || (!PyModule_Check(value) && !PyCapsule_CheckExact(value)))
		return value;
	PyObject *copy = module_guard(value);
	Py_DECREF(value);
	return copy;
}

/*
 * Memory that numpy would take from a class of the cell's own making; attributes that patterns
 * would read.
 */
static PyObject *hook_name(PyObject *name)
{
	static const char *const refused[] = { "__array_interface__", "__array_struct__",
		"__cuda_array_interface__", "__dlpack__", "__match_args__" };
	if (!PyUnicode_Check(name))
		return Py_NewRef(Py_None);
	for (int i = 0; i < 5; i++)
		if (PyUnicode_CompareWithASCIIString(name, refused[i]) == 0)
			return PyErr_Format(PyExc_AttributeError, "%U", name);
	return Py_NewRef(Py_None);
}

/* Does a class or an object put something in the place of a method of BaseExceptionGroup? */
static bool overrides(PyObject *group, const char *method)
{
	PyObject *name = PyUnicode_InternFromString(method);
	PyObject **dict = _PyObject_GetDictPtr(group);
	/* all borrowed */
	PyObject *own = name ? _PyType_Lookup((PyTypeObject *)PyExc_BaseExceptionGroup, name)
			     : NULL;
	bool other = !own || _PyType_Lookup(Py_TYPE(group), name) != own ||
		     (dict && *dict && PyDict_Contains(*dict, name) != 0);
	Py_XDECREF(name);
	PyErr_Clear();
	return other;
}

/*
 * except* calls split() of the group and takes what it returns for exceptions without a look
 * (CVE-2025-22153): a split() of the cell's own makes the interpreter read any object as an
 * exception. derive() makes the group that the next handler splits.
 */
static PyObject *check_group(PyObject *type)
{
	PyObject *group = PyErr_GetHandledException();
	bool is_group = group &&
			PyObject_TypeCheck(group, (PyTypeObject *)PyExc_BaseExceptionGroup);
	bool refused = is_group && (Py_TYPE(group)->tp_getattro != PyObject_GenericGetAttr ||
					   overrides(group, "split") || overrides(group, "derive"));
	Py_XDECREF(group);
	if (!refused)
		return Py_NewRef(type);
	return violation_null(NULL, POLICY_ATTRIBUTE,
		"Leave split() and derive() of groups as they are.",
		"except* cannot handle a group whose class has its own split() or derive()");
}

static PyObject *act(PyObject *left, PyObject *right)
{
	if (!Py_IS_TYPE(left, &guard_type))
		Py_RETURN_NOTIMPLEMENTED;
	struct guard *g = (struct guard *)left;
	if (g->kind == GUARD_OWNER && Py_TYPE(right) == g->known_type && g->known_version &&
		g->known_type->tp_version_tag == g->known_version)
		return Py_NewRef(right); /* the most frequent by far, in loops */
	switch (g->kind) {
	case GUARD_ATTRIBUTE:
		return read_attribute(g, right);
	case GUARD_OWNER:
		return check_private(g, right) < 0 ? NULL : Py_NewRef(right);
	case GUARD_NAME:
		return attribute_check(right) < 0 ? NULL : Py_NewRef(right);
	case GUARD_HOOK:
		return hook_name(right);
	case GUARD_TICK:
		return count_add(g->weight) < 0 ? NULL : Py_NewRef(Py_None);
	case GUARD_LOOP:
		return count_loop(right, g->weight);
	case GUARD_WHILE:
		return count_while(g->weight);
	case GUARD_COLLECT:
		return collector_new();
	case GUARD_PRINTED:
		return collector_text(right);
	case GUARD_MISSING:
		if (g->weight)
			return violation_null(PyExc_NameError, POLICY_FUNCTION,
				"Write the code itself, and use the profile's builtins.",
				"name '%U' is not defined", g->name);
		if (!builtin_is_hidden(right))
			return Py_NewRef(right);
		return PyErr_Format(PyExc_NameError, "name '%U' is not defined", g->name);
	case GUARD_KEEP:
		return value_keep(right);
	case GUARD_KEPT:
		return value_kept();
	case GUARD_GROUP:
		return check_group(right);
	case GUARD_KINDS:
		break;
	}

	Py_RETURN_NOTIMPLEMENTED;
}

static PyNumberMethods guard_numbers = { .nb_matrix_multiply = act };
static PyTypeObject guard_type = {
	PyVarObject_HEAD_INIT(NULL, 0).tp_name = "glovebox.Guard",
	.tp_basicsize = sizeof(struct guard),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.tp_as_number = &guard_numbers,
};

static PyObject *guard_new(enum guard_kind kind, PyObject *name, uint64_t weight)
{
	struct guard *g = PyObject_New(struct guard, &guard_type);
	if (!g)
		return NULL;
	g->kind = kind;
	g->weight = weight;
	g->known_type = NULL;
	g->known_version = 0;
	g->name = Py_XNewRef(name);
	if (g->name)
		PyUnicode_InternInPlace(&g->name);
	return (PyObject *)g; /* for the life of the process, as the code that holds it */
}

PyObject *guard_placeholder(enum guard_kind kind, PyObject *name, uint64_t weight)
{
	if (!*secret)
		text_random_id(secret, sizeof(secret) - 1);
	PyObject *text = PyUnicode_FromFormat(
		"\001%s %d %llu %V", secret, (int)kind, (unsigned long long)weight, name, "");
	if (!text || PyDict_Contains(known, text) == 1)
		return text;
	PyObject *g = guard_new(kind, name, weight);
	if (!g || PyDict_SetItem(known, text, g) < 0)
		Py_CLEAR(text);
	Py_XDECREF(g);
	return text;
}

static int seal_constants(PyObject *consts)
{
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(consts); i++) {
		PyObject *c = PyTuple_GET_ITEM(consts, i);
		if (PyCode_Check(c)) {
			if (policy_seal(c) < 0)
				return -1;
		} else if (PyUnicode_CheckExact(c) && PyUnicode_GET_LENGTH(c) > 30 &&
			   PyUnicode_READ_CHAR(c, 0) == 1) {
			PyObject *g = PyDict_GetItemWithError(known, c); /* borrowed */
			if (!g)
				continue;
			PyTuple_SET_ITEM(consts, i, Py_NewRef(g)); /* nobody has run it yet */
			Py_DECREF(c);
		}
	}

	return 0;
}

int policy_seal(PyObject *code)
{
	return policy.languages && code ? seal_constants(((PyCodeObject *)code)->co_consts) : 0;
}

int guards_prepare(void)
{
	known = PyDict_New();
	obj_name = PyUnicode_InternFromString("obj");
	return known && obj_name ? PyType_Ready(&guard_type) : -1;
}
