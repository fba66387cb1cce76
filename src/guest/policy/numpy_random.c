/*
 * numpy.random and memory: a bit generator hands its functions and state out as a capsule, an
 * address that nobody counts, and takes positions in its tables as they come. So the capsule goes
 * to libraries only, and a state whose position lies outside its table is taken back.
 */
#include <string.h>

#include "guest/policy/policy_internal.h"

static PyObject *capsule_of; /* the real descriptors */
static PyObject *twister_state, *philox_state;

int capsule_check(PyObject *value)
{
	if (!PyCapsule_CheckExact(value) || trusted())
		return 0;
	return violation(NULL, POLICY_NATIVE, "Use the public functions of the library.",
		"addresses of native code are not accessible");
}

static PyObject *capsule_get(PyObject *self, void *unused)
{
	(void)unused;
	PyObject *capsule =
		Py_TYPE(capsule_of)->tp_descr_get(capsule_of, self, (PyObject *)Py_TYPE(self));
	if (capsule && cell_accesses() && capsule_check(capsule) < 0)
		Py_CLEAR(capsule);
	return capsule;
}

/* state["state"]["pos"], or state["buffer_pos"]; -1 for what is no number. */
static long position_in(PyObject *state, bool twister)
{
	/* borrowed */
	PyObject *inner = !state || !PyDict_Check(state) ? NULL
			  : twister                      ? PyDict_GetItemString(state, "state")
							 : state;
	PyObject *position = inner && PyDict_Check(inner)
				     ? PyDict_GetItemString(inner, twister ? "pos" : "buffer_pos")
				     : NULL;
	long n = position && PyLong_Check(position) ? PyLong_AsLong(position) : -1;
	PyErr_Clear();
	return n;
}

/*
 * What the generator made of it counts: the value could answer differently when it is asked twice.
 */
static int set_state(PyObject *real, PyObject *self, PyObject *value, bool twister)
{
	enum { TWISTER_WORDS = 624, PHILOX_WORDS = 4 };
	PyTypeObject *type = Py_TYPE(real);
	PyObject *before = type->tp_descr_get(real, self, (PyObject *)Py_TYPE(self)), *after = NULL;
	int r = before ? type->tp_descr_set(real, self, value) : -1;

	if (r == 0 && !(after = type->tp_descr_get(real, self, (PyObject *)Py_TYPE(self))))
		r = -1;
	long n = r == 0 ? position_in(after, twister) : 0;
	if (r == 0 && (n < 0 || n > (twister ? TWISTER_WORDS : PHILOX_WORDS))) {
		type->tp_descr_set(real, self, before);
		PyErr_Format(
			PyExc_ValueError, "the position %ld lies outside the generator's state", n);
		r = -1;
	}

	Py_XDECREF(before);
	Py_XDECREF(after);
	return r;
}

static PyObject *twister_get(PyObject *self, void *unused)
{
	(void)unused;
	return Py_TYPE(twister_state)->tp_descr_get(twister_state, self, (PyObject *)Py_TYPE(self));
}

static int twister_set(PyObject *self, PyObject *value, void *unused)
{
	(void)unused;
	return set_state(twister_state, self, value, true);
}

static PyObject *philox_get(PyObject *self, void *unused)
{
	(void)unused;
	return Py_TYPE(philox_state)->tp_descr_get(philox_state, self, (PyObject *)Py_TYPE(self));
}

static int philox_set(PyObject *self, PyObject *value, void *unused)
{
	(void)unused;
	return set_state(philox_state, self, value, false);
}

/* ---- seeds ------------------------------------------------------------------------------- */

/*
 * A generator asks its seed sequence for words and reads as many from the array that it gets,
 * however many there are. So the sequence is numpy's own, and not of a class that a cell derived
 * from it.
 */
static const char *const seeded[] = { "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64" };
enum { SEEDED = sizeof(seeded) / sizeof(seeded[0]) };
static initproc init_seeded[SEEDED];
static PyTypeObject *seeded_type[SEEDED], *sequence_type;

/* What numpy makes a sequence of itself, or an own one of exactly its class. */
static bool seed_is_plain(PyObject *seed)
{
	if (!seed || seed == Py_None || PyLong_CheckExact(seed) || PyList_CheckExact(seed) ||
		PyTuple_CheckExact(seed) || Py_IS_TYPE(seed, sequence_type))
		return true;
	const char *name = Py_TYPE(seed)->tp_name;
	/* an array, a number */
	return !(Py_TYPE(seed)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !strncmp(name, "numpy.", 6);
}

static int checked_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
	/* borrowed */
	PyObject *seed = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0)
			 : kwargs               ? PyDict_GetItemString(kwargs, "seed")
						: NULL;
	if (!trusted() && asked_by_cell() && !seed_is_plain(seed)) {
		PyErr_SetString(PyExc_TypeError,
			"a seed must be a number, a list of numbers, or a SeedSequence");
		return -1;
	}

	for (size_t i = 0; i < SEEDED; i++)
		if (seeded_type[i] && PyType_IsSubtype(Py_TYPE(self), seeded_type[i]))
			return init_seeded[i](self, args, kwargs);
	PyErr_SetString(PyExc_TypeError, "not a generator of numpy");
	return -1;
}

static int hold_seeds(PyObject *random)
{
	sequence_type = (PyTypeObject *)PyObject_GetAttrString(random, "SeedSequence");
	for (size_t i = 0; sequence_type && i < SEEDED; i++) {
		PyObject *type = PyObject_GetAttrString(random, seeded[i]);
		if (!type || !PyType_Check(type)) {
			PyErr_Clear(); /* an older numpy does not have it */
			Py_XDECREF(type);
			continue;
		}
		seeded_type[i] = (PyTypeObject *)type; /* kept */
		init_seeded[i] = seeded_type[i]->tp_init;
		seeded_type[i]->tp_init = checked_init;
		replace_wrapped(seeded_type[i], "__init__", (void *)checked_init);
	}

	return sequence_type ? 0 : -1;
}

static PyGetSetDef capsule_def = { "capsule", capsule_get, NULL, NULL, NULL };
static PyGetSetDef twister_def = { "state", twister_get, twister_set, NULL, NULL };
static PyGetSetDef philox_def = { "state", philox_get, philox_set, NULL, NULL };

static int hold_one(PyObject *random, const char *name, PyGetSetDef *def, PyObject **original)
{
	PyObject *type = PyObject_GetAttrString(random, name);
	int r = type && PyType_Check(type)
			? replace_entry((PyTypeObject *)type, def->name,
				  PyDescr_NewGetSet((PyTypeObject *)type, def), original)
			: -1;
	Py_XDECREF(type);
	return r;
}

int bits_guard(void)
{
	static bool done;
	/* borrowed */
	PyObject *random = done ? NULL
				: PyDict_GetItemString(PyImport_GetModuleDict(), "numpy.random");
	if (!random || !PyObject_HasAttrString(random, "Generator"))
		return 0; /* not there, or half imported: the next time */
	done = true;
	if (hold_one(random, "BitGenerator", &capsule_def, &capsule_of) < 0 ||
		hold_one(random, "MT19937", &twister_def, &twister_state) < 0)
		return -1;
	return hold_one(random, "Philox", &philox_def, &philox_state) < 0 ? -1 : hold_seeds(random);
}
