/*
 * Counting operations: as many as the tree has nodes in a loop's body, added at every round. The
 * same code stops at the same place.
 */
#include "guest/policy/policy_internal.h"

struct counter {
	PyObject_HEAD PyObject *iterator; /* NULL: a while loop */
	uint64_t weight, rounds;
};

static PyObject *round_value; /* (): unpacked into no name at all */

int count_add(uint64_t weight)
{
	policy.operations += weight;
	if (!policy.max_operations || policy.operations <= policy.max_operations)
		return 0;
	return violation(NULL, POLICY_OPERATIONS,
		"Do less in one cell, or use functions that loop in C: sum(), sorted(), numpy.",
		"Reached the max number of operations of %llu. Maybe there is an infinite loop somewhere in the code, or you're just asking too "
		"many calculations.",
		(unsigned long long)policy.max_operations);
}

static PyObject *next_of_loop(PyObject *self)
{
	struct counter *c = (struct counter *)self;
	if (count_add(c->weight) < 0)
		return NULL;
	return Py_TYPE(c->iterator)->tp_iternext(c->iterator);
}

static PyObject *next_of_while(PyObject *self)
{
	struct counter *c = (struct counter *)self;
	if (count_add(c->weight) < 0)
		return NULL;
	if (policy.max_while && c->rounds++ >= policy.max_while)
		return violation_null(NULL, POLICY_OPERATIONS,
			"End the loop earlier, or write it as a for loop.",
			"Maximum number of %llu iterations in While loop exceeded",
			(unsigned long long)policy.max_while);
	return Py_NewRef(round_value);
}

static void counter_free(PyObject *self)
{
	PyObject_GC_UnTrack(self);
	Py_XDECREF(((struct counter *)self)->iterator);
	PyObject_GC_Del(self);
}

static int counter_visit(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(((struct counter *)self)->iterator);
	return 0;
}

#define COUNTER_TYPE(type_name, next)                                                             \
	{                                                                                         \
		PyVarObject_HEAD_INIT(NULL, 0).tp_name = (type_name),                             \
					    .tp_basicsize = sizeof(struct counter),               \
					    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | \
							Py_TPFLAGS_DISALLOW_INSTANTIATION,        \
					    .tp_iter = PyObject_SelfIter, .tp_iternext = (next),  \
					    .tp_dealloc = counter_free,                           \
					    .tp_traverse = counter_visit                          \
	}
static PyTypeObject loop_type = COUNTER_TYPE("glovebox.Loop", next_of_loop);
static PyTypeObject while_type = COUNTER_TYPE("glovebox.While", next_of_while);

static PyObject *counter_new(PyTypeObject *type, PyObject *iterator, uint64_t weight)
{
	struct counter *c = PyObject_GC_New(struct counter, type);
	if (!c) {
		Py_XDECREF(iterator);
		return NULL;
	}
	c->iterator = iterator;
	c->weight = weight ? weight : 1;
	c->rounds = 0;
	PyObject_GC_Track(c);
	return (PyObject *)c;
}

PyObject *count_loop(PyObject *iterable, uint64_t weight)
{
	PyObject *iterator = PyObject_GetIter(iterable);
	return iterator ? counter_new(&loop_type, iterator, weight) : NULL;
}

PyObject *count_while(uint64_t weight)
{
	return counter_new(&while_type, NULL, weight);
}

int count_prepare(void)
{
	round_value = PyTuple_New(0);
	return round_value && PyType_Ready(&loop_type) == 0 ? PyType_Ready(&while_type) : -1;
}
