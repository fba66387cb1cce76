#include "guest/random.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

enum { MT_WORDS = 624 };

/* What a bit generator of numpy's points to, when it is MT19937. */
struct mt19937 {
	uint32_t key[MT_WORDS];
	int position;
};

static PyObject *seed_random; /* random.seed; NULL when the module is not imported */
static struct mt19937 *numpy_state;
static bool numpy_by_hand; /* imported, and its state is where we think */
static bool numpy_imported;

static PyObject *module_if_imported(const char *name)
{
	return PyDict_GetItemString(PyImport_GetModuleDict(), name); /* borrowed */
}

/* Follows attribute names from an object; a new reference, or NULL without an error. */
static PyObject *follow(PyObject *from, const char *const *names)
{
	PyObject *o = Py_NewRef(from);
	for (; o && *names; names++) {
		PyObject *next = PyObject_GetAttrString(o, *names);
		Py_DECREF(o);
		o = next;
	}
	if (!o)
		PyErr_Clear();
	return o;
}

/* The documented way: numpy.random.BitGenerator.capsule holds a bitgen_t, which begins with the pointer to
 * its state. */
static struct mt19937 *find_state(PyObject *mtrand)
{
	PyObject *capsule =
		follow(mtrand, (const char *const[]){ "_rand", "_bit_generator", "capsule", NULL });
	void **generator = capsule ? PyCapsule_GetPointer(capsule, "BitGenerator") : NULL;
	struct mt19937 *state = generator ? *generator : NULL;
	PyErr_Clear();
	Py_XDECREF(capsule); /* the generator, which owns the state, lives as long as the module */
	return state;
}

/* True when what lies there is what numpy itself says its state is: ('MT19937', key, position, has_gauss, …).
 */
static bool is_state(PyObject *mtrand, const struct mt19937 *state)
{
	PyObject *get = follow(mtrand, (const char *const[]){ "_rand", "get_state", NULL });
	PyObject *said = get ? PyObject_CallNoArgs(get) : NULL;
	Py_buffer key = { 0 };
	bool yes = false;
	if (said && PyTuple_Check(said) && PyTuple_GET_SIZE(said) >= 4 &&
		PyObject_GetBuffer(PyTuple_GET_ITEM(said, 1), &key, PyBUF_SIMPLE) == 0) {
		yes = key.len == sizeof(state->key) && memcmp(key.buf, state->key, sizeof(state->key)) == 0 &&
		      PyLong_AsLong(PyTuple_GET_ITEM(said, 2)) == state->position &&
		      PyLong_AsLong(PyTuple_GET_ITEM(said, 3)) == 0; /* no half of a Gaussian pair waits */
		PyBuffer_Release(&key);
	}
	PyErr_Clear();
	Py_XDECREF(said);
	Py_XDECREF(get);
	return yes;
}

void random_prepare(void)
{
	PyObject *random = module_if_imported("random"), *mtrand = module_if_imported("numpy.random.mtrand");
	if (random)
		seed_random = follow(random, (const char *const[]){ "seed", NULL });
	numpy_imported = mtrand != NULL;
	numpy_state = mtrand ? find_state(mtrand) : NULL;
	numpy_by_hand = numpy_state && is_state(mtrand, numpy_state);
}

static bool renew_numpy(void)
{
	if (getrandom(numpy_state->key, sizeof(numpy_state->key), 0) != sizeof(numpy_state->key))
		return false;
	numpy_state->key[0] |= 1U << 31;  /* all zero is the one state that is none */
	numpy_state->position = MT_WORDS; /* the next number makes new ones of them */
	return true;
}

void random_renew(PyObject *reseed)
{
	PyObject *r;
	if (numpy_imported && !(numpy_by_hand && renew_numpy()))
		r = PyObject_CallOneArg(reseed, Py_None);
	else
		r = seed_random ? PyObject_CallNoArgs(seed_random) : Py_NewRef(Py_None);
	Py_XDECREF(r);
	PyErr_Clear();
}
