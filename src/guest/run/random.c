#include "guest/run/random.h"

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

/* What lies behind the head of a random.Random: numbers are drawn from the state, in order. */
struct python_mt19937 {
	int position;
	uint32_t key[MT_WORDS];
};

/* of the `random` module's own generator; NULL when it is not where it should be */
static const struct python_mt19937 *python_state;
static struct {
	int python_position, numpy_position;
	uint32_t python_first, numpy_first; /* changes with every MT_WORDS numbers */
} mark;
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

/*
 * The documented way: numpy.random.BitGenerator.capsule holds a bitgen_t, which begins with the
 * pointer to its state.
 */
static struct mt19937 *find_state(PyObject *mtrand)
{
	PyObject *capsule = follow(
		mtrand, (const char *const[]){ "_rand", "_bit_generator", "capsule", NULL });
	void **generator = capsule ? PyCapsule_GetPointer(capsule, "BitGenerator") : NULL;
	struct mt19937 *state = generator ? *generator : NULL;
	PyErr_Clear();
	Py_XDECREF(capsule); /* the generator, which owns the state, lives as long as the module */
	return state;
}

/*
 * True when what lies there is what numpy itself says its state is: ('MT19937', key, position,
 * has_gauss, …).
 */
static bool is_state(PyObject *mtrand, const struct mt19937 *state)
{
	PyObject *get = follow(mtrand, (const char *const[]){ "_rand", "get_state", NULL });
	PyObject *said = get ? PyObject_CallNoArgs(get) : NULL;
	Py_buffer key = { 0 };
	bool yes = false;

	if (said && PyTuple_Check(said) && PyTuple_GET_SIZE(said) >= 4 &&
		PyObject_GetBuffer(PyTuple_GET_ITEM(said, 1), &key, PyBUF_SIMPLE) == 0) {
		yes = key.len == sizeof(state->key) &&
		      memcmp(key.buf, state->key, sizeof(state->key)) == 0 &&
		      PyLong_AsLong(PyTuple_GET_ITEM(said, 2)) == state->position &&
		      /* no half of a Gaussian pair waits */
		      PyLong_AsLong(PyTuple_GET_ITEM(said, 3)) == 0;
		PyBuffer_Release(&key);
	}

	PyErr_Clear();
	Py_XDECREF(said);
	Py_XDECREF(get);
	return yes;
}

/*
 * random._inst, when its state is what random.getstate() says: (3, (624 numbers and the position),
 * …).
 */
static const struct python_mt19937 *find_python_state(PyObject *random)
{
	PyObject *instance = follow(random, (const char *const[]){ "_inst", NULL });
	PyObject *said = instance ? PyObject_CallMethod(instance, "getstate", NULL) : NULL;
	PyObject *numbers = said && PyTuple_Check(said) && PyTuple_GET_SIZE(said) > 1
				    ? PyTuple_GET_ITEM(said, 1)
				    : NULL;
	const struct python_mt19937 *state = instance ? (const void *)((const char *)instance +
								       sizeof(PyObject))
						      : NULL;
	bool same = numbers && PyTuple_Check(numbers) &&
		    PyTuple_GET_SIZE(numbers) == MT_WORDS + 1 &&
		    Py_TYPE(instance)->tp_basicsize >=
			    (Py_ssize_t)(sizeof(PyObject) + sizeof(*state));

	for (Py_ssize_t i = 0; same && i < MT_WORDS; i++)
		same = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(numbers, i)) == state->key[i];
	same = same && PyLong_AsLong(PyTuple_GET_ITEM(numbers, MT_WORDS)) == state->position;
	PyErr_Clear();
	Py_XDECREF(said);
	Py_XDECREF(instance); /* the module keeps it */
	return same ? state : NULL;
}

void random_prepare(void)
{
	PyObject *random = module_if_imported("random"),
		 *mtrand = module_if_imported("numpy.random.mtrand");
	if (random)
		seed_random = follow(random, (const char *const[]){ "seed", NULL });
	python_state = random ? find_python_state(random) : NULL;
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

void random_mark(void)
{
	if (python_state) {
		mark.python_position = python_state->position;
		mark.python_first = python_state->key[0];
	}
	if (numpy_by_hand) {
		mark.numpy_position = numpy_state->position;
		mark.numpy_first = numpy_state->key[0];
	}
}

bool random_moved(void)
{
	if ((seed_random && !python_state) || (numpy_imported && !numpy_by_hand))
		return true;
	return (python_state && (mark.python_position != python_state->position ||
					mark.python_first != python_state->key[0])) ||
	       (numpy_by_hand && (mark.numpy_position != numpy_state->position ||
					 mark.numpy_first != numpy_state->key[0]));
}
