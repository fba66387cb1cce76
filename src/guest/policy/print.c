/*
 * print() of the cells: with a cap that keeps the head and the tail, and RestrictedPython's
 * collector.
 */
#include "guest/policy/policy_internal.h"

/* Half of the cap goes out as it comes; of the rest the last half is kept for the end. */
static uint64_t printed_chars, held_dropped;
static PyObject *held; /* list of str */
static Py_ssize_t held_chars;

static int write_out(PyObject *text)
{
	PyObject *out = PySys_GetObject("stdout"); /* borrowed */
	return out ? PyFile_WriteObject(text, out, Py_PRINT_RAW) : 0;
}

/* Only the last characters of the held output are kept. */
static int trim_held(Py_ssize_t most)
{
	if (held_chars <= most)
		return 0;
	PyObject *empty = PyUnicode_FromString(""),
		 *all = empty ? PyUnicode_Join(empty, held) : NULL;
	PyObject *rest = all ? PyUnicode_Substring(all, held_chars - most, held_chars) : NULL;
	int r = rest && PyList_SetSlice(held, 0, PyList_GET_SIZE(held), NULL) == 0
			? PyList_Append(held, rest)
			: -1;
	if (r == 0) {
		held_dropped += (uint64_t)(held_chars - most);
		held_chars = most;
	}

	Py_XDECREF(empty);
	Py_XDECREF(all);
	Py_XDECREF(rest);
	return r;
}

static int hold(PyObject *text)
{
	Py_ssize_t half = (Py_ssize_t)(policy.print_chars / 2);
	if (!held && !(held = PyList_New(0)))
		return -1;
	if (PyList_Append(held, text) < 0)
		return -1;
	held_chars += PyUnicode_GET_LENGTH(text);
	/* In bites, so that a million short lines are not joined a million times. */
	return held_chars > 3 * half ? trim_held(half) : 0;
}

static int print_text(PyObject *text)
{
	uint64_t half = policy.print_chars / 2;
	Py_ssize_t n = PyUnicode_GET_LENGTH(text), room;

	if (!policy.print_chars || printed_chars + (uint64_t)n <= half) {
		printed_chars += (uint64_t)n;
		return write_out(text);
	}

	room = printed_chars < half ? (Py_ssize_t)(half - printed_chars) : 0;
	if (!room)
		return hold(text);
	PyObject *head = PyUnicode_Substring(text, 0, room),
		 *rest = PyUnicode_Substring(text, room, n);
	printed_chars += (uint64_t)room;
	int r = head && rest ? write_out(head) : -1;
	if (r == 0)
		r = hold(rest);
	Py_XDECREF(head);
	Py_XDECREF(rest);
	return r;
}

void print_begin(void)
{
	printed_chars = held_dropped = 0;
	held_chars = 0;
	Py_CLEAR(held);
}

void print_end(void)
{
	PyObject *empty = held ? PyUnicode_FromString("") : NULL, *text = NULL;
	if (held && empty && trim_held((Py_ssize_t)(policy.print_chars / 2)) == 0) {
		PyObject *mark = PyUnicode_FromFormat(
			"\n..._This content has been truncated to stay below %llu characters_...\n",
			(unsigned long long)policy.print_chars);
		if (mark && held_dropped)
			write_out(mark);
		Py_XDECREF(mark);
		text = PyUnicode_Join(empty, held);
	}

	if (text)
		write_out(text);
	PyErr_Clear();
	Py_XDECREF(text);
	Py_XDECREF(empty);
	print_begin();
}

/*
 * The words of print(): its values as texts between separators. `end` and `sep` as print() takes
 * them.
 */
static PyObject *printed_words(PyObject *args, PyObject *sep, PyObject *end)
{
	PyObject *texts = PyList_New(0),
		 *space = sep && sep != Py_None ? Py_NewRef(sep) : PyUnicode_FromString(" ");

	for (Py_ssize_t i = 0; texts && i < PyTuple_GET_SIZE(args); i++) {
		PyObject *s = PyObject_Str(PyTuple_GET_ITEM(args, i));
		if (!s || PyList_Append(texts, s) < 0)
			Py_CLEAR(texts);
		Py_XDECREF(s);
	}

	PyObject *line = texts && space && PyUnicode_Check(space) ? PyUnicode_Join(space, texts)
								  : NULL;
	PyObject *tail = end && end != Py_None ? Py_NewRef(end) : PyUnicode_FromString("\n");
	PyObject *whole = line && tail && PyUnicode_Check(tail) ? PyUnicode_Concat(line, tail)
								: NULL;
	if (!whole && !PyErr_Occurred())
		PyErr_SetString(PyExc_TypeError, "sep and end of print() must be None or a string");
	Py_XDECREF(texts);
	Py_XDECREF(space);
	Py_XDECREF(line);
	Py_XDECREF(tail);
	return whole;
}

static PyObject *option(PyObject *kwargs, const char *name)
{
	return kwargs ? PyDict_GetItemString(kwargs, name) : NULL; /* borrowed */
}

struct print_options {
	PyObject *sep, *end, *file, *flush; /* borrowed; NULL where not given */
};

static int read_options(struct print_options *o, PyObject *const *values, PyObject *names)
{
	for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
		PyObject *name = PyTuple_GET_ITEM(names, i), **place = NULL;
		if (PyUnicode_CompareWithASCIIString(name, "sep") == 0)
			place = &o->sep;
		else if (PyUnicode_CompareWithASCIIString(name, "end") == 0)
			place = &o->end;
		else if (PyUnicode_CompareWithASCIIString(name, "file") == 0)
			place = &o->file;
		else if (PyUnicode_CompareWithASCIIString(name, "flush") == 0)
			place = &o->flush;
		if (!place) {
			PyErr_Format(PyExc_TypeError,
				"'%U' is an invalid keyword argument for print()", name);
			return -1;
		}
		*place = values[i] == Py_None ? NULL : values[i];
	}

	PyObject *wrong = o->sep && !PyUnicode_Check(o->sep)   ? o->sep
			  : o->end && !PyUnicode_Check(o->end) ? o->end
							       : NULL;
	if (wrong)
		PyErr_Format(PyExc_TypeError, "%s must be None or a string, not %.200s",
			wrong == o->sep ? "sep" : "end", Py_TYPE(wrong)->tp_name);
	return wrong ? -1 : 0;
}

static int print_flush(void)
{
	PyObject *out = PySys_GetObject("stdout"),
		 *r = out ? PyObject_CallMethod(out, "flush", NULL) : Py_NewRef(Py_None);
	Py_XDECREF(r);
	return r ? 0 : -1;
}

static PyObject *space, *newline;

static int write_texts(PyObject *const *texts, Py_ssize_t n, const struct print_options *o)
{
	int r = 0;
	for (Py_ssize_t i = 0; r == 0 && i < n; i++) {
		r = i ? print_text(o->sep ? o->sep : space) : 0;
		if (r == 0)
			r = print_text(texts[i]);
	}
	if (r == 0)
		r = print_text(o->end ? o->end : newline);
	int flush = r == 0 && o->flush ? PyObject_IsTrue(o->flush) : 0;
	return r < 0 || flush < 0 ? -1 : flush ? print_flush() : 0;
}

/*
 * All values become texts before the first is written, as smolagents does it: of a line that is
 * refused nothing is seen.
 */
static int print_values(PyObject *const *values, Py_ssize_t n, const struct print_options *o)
{
	PyObject *few[8], **texts = n <= 8 ? few : PyMem_New(PyObject *, (size_t)n);
	Py_ssize_t done = 0;

	if (!texts) {
		PyErr_NoMemory();
		return -1;
	}

	while (done < n && (texts[done] = PyObject_Str(values[done])))
		done++;
	int r = done == n ? write_texts(texts, n, o) : -1;
	while (done > 0)
		Py_DECREF(texts[--done]);
	if (texts != few)
		PyMem_Free(texts);
	return r;
}

PyObject *print_capped(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
	struct print_options o = { NULL, NULL, NULL, NULL };
	(void)self;
	if (!space && (!(space = PyUnicode_InternFromString(" ")) ||
			      !(newline = PyUnicode_InternFromString("\n"))))
		return NULL;
	if (read_options(&o, args + n, names) < 0)
		return NULL;
	if (o.file)
		return PyObject_Vectorcall(builtin_real("print"), args, (size_t)n, names);
	if (print_values(args, n, &o) < 0)
		return NULL;
	Py_RETURN_NONE;
}

/*
 * RestrictedPython's PrintCollector: a scope that reads `printed` collects what it prints instead.
 */
struct collector {
	PyObject_HEAD PyObject *texts;
};

static PyObject *collect(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *text = printed_words(args, option(kwargs, "sep"), option(kwargs, "end"));
	int r = text ? PyList_Append(((struct collector *)self)->texts, text) : -1;
	Py_XDECREF(text);
	if (r < 0)
		return NULL;
	Py_RETURN_NONE;
}

static void collector_free(PyObject *self)
{
	Py_XDECREF(((struct collector *)self)->texts);
	PyObject_Free(self);
}

static PyTypeObject collector_type = {
	PyVarObject_HEAD_INIT(NULL, 0).tp_name = "glovebox.PrintCollector",
	.tp_basicsize = sizeof(struct collector),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.tp_call = collect,
	.tp_dealloc = collector_free,
};

PyObject *collector_new(void)
{
	struct collector *c = PyType_Ready(&collector_type) == 0
				      ? PyObject_New(struct collector, &collector_type)
				      : NULL;
	if (c && !(c->texts = PyList_New(0)))
		Py_CLEAR(c);
	return (PyObject *)c;
}

PyObject *collector_text(PyObject *c)
{
	if (!Py_IS_TYPE(c, &collector_type))
		return PyErr_Format(PyExc_TypeError, "printed: nothing was collected");
	PyObject *empty = PyUnicode_FromString("");
	PyObject *text = empty ? PyUnicode_Join(empty, ((struct collector *)c)->texts) : NULL;
	Py_XDECREF(empty);
	return text;
}
