/*
 * numpy and views: memory that somebody still looks at is not given back.
 *
 * array.resize() moves an array's memory, `array.data = …` lets go of it and nditer.close() drops
 * what its values lie in, while views of it stay where they are: they would read and write what is
 * somebody else's by then. numpy counts references to find out, but whoever reaches an array
 * through a view's `base` is counted as if there were no view, and refcheck=False asks for no count
 * at all. The names by which a library can be made to call these are without number, so the
 * functions themselves are made harmless, for the whole process: what they give up lives as long as
 * the object that gave it up, which every view of it keeps alive.
 */
#include <string.h>

#include "guest/policy/policy_internal.h"

/* ---- what lives as long as its owner --------------------------------------------- */

static PyObject *kept; /* address of an owner → list of what it gave up */
static destructor free_array, free_iterator;

static int keep_with(PyObject *owner, PyObject *what)
{
	/* borrowed */
	PyObject *address = PyLong_FromVoidPtr(owner),
		 *list = address ? PyDict_GetItemWithError(kept, address) : NULL;
	int r = -1;
	if (list) {
		r = PyList_Append(list, what);
	} else if (address && !PyErr_Occurred() && (list = PyList_New(0))) {
		r = PyList_Append(list, what) < 0 ? -1 : PyDict_SetItem(kept, address, list);
		Py_DECREF(list);
	}
	Py_XDECREF(address);
	return r;
}

/* The owner dies: nobody looks at what it gave up. */
static PyObject *take_kept(PyObject *owner)
{
	PyObject *type, *value, *trace, *list = NULL;
	if (!PyDict_GET_SIZE(kept))
		return NULL;
	PyErr_Fetch(&type, &value, &trace);
	PyObject *address = PyLong_FromVoidPtr(owner);
	if (address && (list = Py_XNewRef(PyDict_GetItemWithError(kept, address))))
		PyDict_DelItem(kept, address);
	Py_XDECREF(address);
	/* without memory for the address it stays, which is safe */
	PyErr_Restore(type, value, trace);
	return list;
}

static void array_dies(PyObject *self)
{
	PyObject *list = take_kept(self);
	free_array(self);
	Py_XDECREF(list);
}

static void iterator_dies(PyObject *self)
{
	PyObject *list = take_kept(self);
	free_iterator(self);
	Py_XDECREF(list);
}

/* ---- array.resize, array.data ------------------------------------------------------ */

/* The head of numpy's array object, the same from 1.22 to 2.x. */
struct array {
	PyObject_HEAD char *data;
	int dimensions;
	Py_ssize_t *shape, *strides;
	PyObject *base, *descr;
	int flags;
	PyObject *weak_references;
	void *buffer_info;
	PyObject *memory_handler;
};

/* NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS, NPY_ARRAY_OWNDATA */
enum { ONE_PIECE = 0x3, OWNS_DATA = 0x4 };

static PyObject *array_resize, *array_data, *make_array; /* the real ones; numpy.array */

/* Everything about memory; `base`, `descr` and who refers to the object stay. */
static void swap_memory(struct array *a, struct array *b)
{
	struct array old = *a;
	a->data = b->data;
	a->dimensions = b->dimensions;
	a->shape = b->shape;
	a->strides = b->strides;
	a->flags = b->flags;
	a->memory_handler = b->memory_handler;
	b->data = old.data;
	b->dimensions = old.dimensions;
	b->shape = old.shape;
	b->strides = old.strides;
	b->flags = old.flags;
	b->memory_handler = old.memory_handler;
}

static PyObject *call_resize(PyObject *self, PyObject *args, PyObject *refcheck)
{
	PyObject *options = PyDict_New(), *words = PyTuple_New(PyTuple_GET_SIZE(args) + 1),
		 *result = NULL;
	for (Py_ssize_t i = 0; words && i < PyTuple_GET_SIZE(words); i++)
		PyTuple_SET_ITEM(words, i, Py_NewRef(i ? PyTuple_GET_ITEM(args, i - 1) : self));
	if (words && options && PyDict_SetItemString(options, "refcheck", refcheck) == 0)
		result = PyObject_Call(array_resize, words, options);
	Py_XDECREF(options);
	Py_XDECREF(words);
	return result;
}

/*
 * A copy is resized that nobody has seen, then both change their memory. A plain array, whose
 * making runs no code of the cell's.
 */
static PyObject *resize_apart(PyObject *self, PyObject *args)
{
	PyObject *words = PyTuple_Pack(1, self), *options = Py_BuildValue("{sOsssO}", "copy",
							 Py_True, "order", "A", "subok", Py_False);
	PyObject *other = words && options ? PyObject_Call(make_array, words, options) : NULL,
		 *result = NULL;
	struct array *mine = (struct array *)self, *its = (struct array *)other;

	Py_XDECREF(words);
	Py_XDECREF(options);
	if (other && (other == self || its->base || !(its->flags & OWNS_DATA) ||
			     !(mine->flags & OWNS_DATA) || its->descr != mine->descr))
		PyErr_SetString(PyExc_ValueError,
			"cannot resize this array: make a new one with numpy.resize(array, shape)");
	else if (other && (result = call_resize(other, args, Py_False)) &&
		 keep_with(self, other) < 0)
		Py_CLEAR(result);
	if (result)
		swap_memory(mine, its);
	Py_XDECREF(other);
	return result;
}

static PyObject *kept_resize(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *check = kwargs ? PyDict_GetItemString(kwargs, "refcheck") : NULL; /* borrowed */
	bool unchecked = check && PyObject_IsTrue(check) != 1;
	struct array *a = (struct array *)self;

	PyErr_Clear();
	if (kwargs && PyDict_GET_SIZE(kwargs) != (check ? 1 : 0))
		return PyErr_Format(
			PyExc_TypeError, "resize() takes only the keyword argument refcheck");
	/*
	 * pandas does it with arrays of its own, which are in two hands at most: its own and this
	 * call's.
	 */
	if (unchecked && !trusted() && (caller_is_cell() || Py_REFCNT(self) > 2))
		return violation_null(NULL, POLICY_NATIVE,
			"Use numpy.resize(array, shape), which makes a new one.",
			"memory that other objects use cannot be moved");
	if (!unchecked && Py_REFCNT(self) > 2)
		return PyErr_Format(PyExc_ValueError,
			"cannot resize an array that references or is referenced\nby another array in this way.\nUse the np.resize function or refcheck=False");
	if (a->base || !(a->flags & OWNS_DATA) || !(a->flags & ONE_PIECE))
		/* it has no memory to move: numpy says so */
		return call_resize(self, args, Py_True);
	return resize_apart(self, args);
}

static PyObject *data_get(PyObject *self, void *unused)
{
	(void)unused;
	return Py_TYPE(array_data)->tp_descr_get(array_data, self, (PyObject *)Py_TYPE(self));
}

static int data_set(PyObject *self, PyObject *value, void *unused)
{
	(void)self, (void)value, (void)unused;
	return violation(NULL, POLICY_NATIVE, "Write into the array: array[:] = values.",
		"the memory of an array cannot be replaced");
}

/* ---- nditer -------------------------------------------------------------------------- */

static initproc init_iterator;
static PyObject *iterator_close; /* the real one */

static bool is_buffered(PyObject *flag)
{
	return !PyUnicode_CheckExact(flag) ||
	       PyUnicode_CompareWithASCIIString(flag, "buffered") == 0 ||
	       PyUnicode_CompareWithASCIIString(flag, "delay_bufalloc") == 0;
}

/* Its values would lie in buffers of the iterator's own, which are gone when it is closed. */
static int plain_iterator(PyObject *self, PyObject *args, PyObject *kwargs)
{
	/* borrowed */
	PyObject *flags = PyTuple_GET_SIZE(args) > 1 ? PyTuple_GET_ITEM(args, 1)
			  : kwargs                   ? PyDict_GetItemString(kwargs, "flags")
						     : NULL;
	bool plain = !flags || flags == Py_None || PyTuple_CheckExact(flags) ||
		     PyList_CheckExact(flags);
	for (Py_ssize_t i = 0;
		plain && flags && flags != Py_None && i < PySequence_Fast_GET_SIZE(flags); i++)
		plain = !is_buffered(PySequence_Fast_GET_ITEM(flags, i));
	if (!plain && !trusted() && asked_by_cell())
		return violation(NULL, POLICY_NATIVE,
			"Leave buffered out of its flags, and change the type with array.astype().",
			"an iterator over arrays cannot be buffered here");
	return init_iterator(self, args, kwargs);
}

/* What its values lie in stays for as long as one of them holds it. */
static PyObject *close_iterator(PyObject *self)
{
	PyObject *operands = PyObject_GetAttrString(self, "operands"), *result = NULL;
	if (!operands)
		PyErr_Clear(); /* closed before */
	else if (keep_with(self, operands) < 0)
		goto out;
	result = PyObject_CallOneArg(iterator_close, self);
out:
	Py_XDECREF(operands);
	return result;
}

static PyObject *iterator_done(PyObject *self, PyObject *unused)
{
	(void)unused;
	return close_iterator(self);
}

static PyMethodDef resize_def = { "resize", (PyCFunction)(void (*)(void))kept_resize,
	METH_VARARGS | METH_KEYWORDS, NULL };
static PyGetSetDef data_def = { "data", data_get, data_set, NULL, NULL };
static PyMethodDef close_defs[] = {
	{ "close", iterator_done, METH_NOARGS, NULL },
	{ "__exit__", iterator_done, METH_VARARGS, NULL },
};

/* ---- their places ---------------------------------------------------------------------- */

static PyObject *dict_of(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030c0000
	return PyType_GetDict(type);
#else
	return Py_XNewRef(type->tp_dict);
#endif
}

int replace_entry(PyTypeObject *type, const char *name, PyObject *guard, PyObject **original)
{
	/* borrowed */
	PyObject *dict = dict_of(type), *found = dict ? PyDict_GetItemString(dict, name) : NULL;
	int r = guard && found ? 0 : -1;
	if (r < 0 && !PyErr_Occurred())
		PyErr_Format(PyExc_SystemError, "%s has no %s: this version is not known",
			type->tp_name, name);
	if (r == 0 && original)
		*original = Py_NewRef(found);
	if (r == 0)
		r = PyDict_SetItemString(dict, name, guard);
	PyType_Modified(type);
	Py_XDECREF(guard);
	Py_XDECREF(dict);
	return r;
}

static int hold_arrays(PyTypeObject *array)
{
	if ((size_t)array->tp_basicsize < sizeof(struct array) ||
		replace_entry(array, "resize", PyDescr_NewMethod(array, &resize_def),
			&array_resize) < 0 ||
		replace_entry(array, "data", PyDescr_NewGetSet(array, &data_def), &array_data) < 0)
		return -1;
	free_array = array->tp_dealloc;
	array->tp_dealloc = array_dies;
	return 0;
}

static int hold_iterators(PyTypeObject *iterator)
{
	if (replace_entry(iterator, "close", PyDescr_NewMethod(iterator, &close_defs[0]),
		    &iterator_close) < 0 ||
		replace_entry(iterator, "__exit__", PyDescr_NewMethod(iterator, &close_defs[1]),
			NULL) < 0)
		return -1;
	init_iterator = iterator->tp_init;
	free_iterator = iterator->tp_dealloc;
	iterator->tp_init = plain_iterator;
	iterator->tp_dealloc = iterator_dies;
	return 0;
}

int views_guard(PyObject *numpy)
{
	PyObject *array = PyObject_GetAttrString(numpy, "ndarray"),
		 *iterator = PyObject_GetAttrString(numpy, "nditer");
	int r = -1;
	make_array = PyObject_GetAttrString(numpy, "array");
	if (make_array && array && PyType_Check(array) && iterator && PyType_Check(iterator) &&
		(kept || (kept = PyDict_New())))
		r = hold_arrays((PyTypeObject *)array) < 0
			    ? -1
			    : hold_iterators((PyTypeObject *)iterator);
	Py_XDECREF(array);
	Py_XDECREF(iterator);
	return r;
}
