/* The cells' own dict of builtins: what the profile gives, with C functions in place of those that take names of attributes. */
#include <string.h>

#include "guest/answer.h"
#include "guest/policy/internal.h"

static PyObject *real; /* dict of the builtins module */

static PyObject *builtin(const char *name)
{
	return PyDict_GetItemString(real, name); /* borrowed */
}

/* ---- attributes by name ------------------------------------------------------ */

static PyObject *guard_getattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n < 2 || n > 3)
		return PyErr_Format(PyExc_TypeError, "getattr expected 2 or 3 arguments, got %zd", n);
	if (attribute_check(args[1]) < 0)
		return NULL;
	if (PyExceptionInstance_Check(args[0]) && PyUnicode_CompareWithASCIIString(args[1], "obj") == 0)
		return violation_null(NULL, POLICY_ATTRIBUTE, "Use str(e) to see what was wrong.", "\"obj\" of an exception cannot be read");
	if (private_check(args[0], args[1]) < 0 || module_owner_check(args[0]) < 0)
		return NULL;
	PyObject *value = PyObject_GetAttr(args[0], args[1]);
	if (!value && n == 3 && PyErr_ExceptionMatches(PyExc_AttributeError)) {
		PyErr_Clear();
		return Py_NewRef(args[2]);
	}
	PyObject *checked = value ? module_guard(value) : NULL;
	Py_XDECREF(value);
	return checked;
}

static PyObject *guard_hasattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n != 2)
		return PyErr_Format(PyExc_TypeError, "hasattr expected 2 arguments, got %zd", n);
	if (attribute_check(args[1]) < 0 || module_owner_check(args[0]) < 0)
		return NULL;
	PyObject *value = PyObject_GetAttr(args[0], args[1]);
	bool there = value != NULL;
	Py_XDECREF(value);
	if (!there && !PyErr_ExceptionMatches(PyExc_AttributeError))
		return NULL;
	PyErr_Clear();
	return PyBool_FromLong(there);
}

static PyObject *guard_setattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n != 3)
		return PyErr_Format(PyExc_TypeError, "setattr expected 3 arguments, got %zd", n);
	if (attribute_check(args[1]) < 0 || private_check(args[0], args[1]) < 0 || module_owner_check(args[0]) < 0 || PyObject_SetAttr(args[0], args[1], args[2]) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *guard_delattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n != 2)
		return PyErr_Format(PyExc_TypeError, "delattr expected 2 arguments, got %zd", n);
	if (attribute_check(args[1]) < 0 || module_owner_check(args[0]) < 0 || PyObject_SetAttr(args[0], args[1], NULL) < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* Only what may be read by these names. */
static PyObject *guard_dir(PyObject *self, PyObject *object)
{
	(void)self;
	PyObject *names = PyObject_Dir(object), *out = PyList_New(0);
	for (Py_ssize_t i = 0; names && out && i < PyList_GET_SIZE(names); i++) {
		PyObject *name = PyList_GET_ITEM(names, i);
		bool shown = PyUnicode_CheckExact(name) && PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) != '_';
		if (shown && PyList_Append(out, name) < 0)
			Py_CLEAR(out);
	}
	if (!names)
		Py_CLEAR(out);
	Py_XDECREF(names);
	return out;
}

/* A copy, of an instance's own variables only: the dicts of classes and modules hold everything. */
static PyObject *guard_vars(PyObject *self, PyObject *object)
{
	(void)self;
	PyObject *dict = PyType_Check(object) || PyModule_Check(object) ? NULL : PyObject_GetAttrString(object, "__dict__");
	PyObject *out = dict && PyDict_CheckExact(dict) ? PyDict_Copy(dict) : NULL;
	Py_XDECREF(dict);
	if (!out)
		PyErr_SetString(PyExc_TypeError, "vars() argument must be an object with variables of its own");
	return out;
}

/* ---- print ------------------------------------------------------------------- */

/* Half of the cap goes out as it comes; of the rest the last half is kept for the end. */
static uint64_t printed_chars, held_dropped;
static PyObject *held; /* list of str */
static Py_ssize_t held_chars;

static int write_out(PyObject *text)
{
	PyObject *out = PySys_GetObject("stdout"); /* borrowed */
	return out ? PyFile_WriteObject(text, out, Py_PRINT_RAW) : 0;
}

/* Drops from the front of what is held until it is at most a half of the cap. */
static int trim_held(Py_ssize_t most)
{
	while (held_chars > most && PyList_GET_SIZE(held)) {
		PyObject *first = PyList_GET_ITEM(held, 0);
		Py_ssize_t n = PyUnicode_GET_LENGTH(first), excess = held_chars - most;
		held_dropped += (uint64_t)(n < excess ? n : excess);
		if (n <= excess) {
			held_chars -= n;
			if (PyList_SetSlice(held, 0, 1, NULL) < 0)
				return -1;
			continue;
		}
		PyObject *rest = PyUnicode_Substring(first, excess, n);
		if (!rest || PyList_SetItem(held, 0, rest) < 0)
			return -1;
		held_chars -= excess;
	}
	return 0;
}

static int hold(PyObject *text)
{
	Py_ssize_t half = (Py_ssize_t)(policy.print_chars / 2);
	if (!held && !(held = PyList_New(0)))
		return -1;
	if (PyList_Append(held, text) < 0)
		return -1;
	held_chars += PyUnicode_GET_LENGTH(text);
	/* In bites, so that a million short lines do not move the list a million times. */
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
	PyObject *head = PyUnicode_Substring(text, 0, room), *rest = PyUnicode_Substring(text, room, n);
	printed_chars += (uint64_t)room;
	int r = head && rest ? room ? write_out(head) : 0 : -1;
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
		PyObject *mark = PyUnicode_FromFormat("\n..._This content has been truncated to stay below %llu characters_...\n",
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

/* The words of print(): its values as texts between separators. `end` and `sep` as print() takes them. */
static PyObject *printed_words(PyObject *args, PyObject *sep, PyObject *end)
{
	PyObject *texts = PyList_New(0), *space = sep && sep != Py_None ? Py_NewRef(sep) : PyUnicode_FromString(" ");
	for (Py_ssize_t i = 0; texts && i < PyTuple_GET_SIZE(args); i++) {
		PyObject *s = PyObject_Str(PyTuple_GET_ITEM(args, i));
		if (!s || PyList_Append(texts, s) < 0)
			Py_CLEAR(texts);
		Py_XDECREF(s);
	}
	PyObject *line = texts && space && PyUnicode_Check(space) ? PyUnicode_Join(space, texts) : NULL;
	PyObject *tail = end && end != Py_None ? Py_NewRef(end) : PyUnicode_FromString("\n");
	PyObject *whole = line && tail && PyUnicode_Check(tail) ? PyUnicode_Concat(line, tail) : NULL;
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

static PyObject *capped_print(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)self;
	PyObject *file = option(kwargs, "file");
	if (!policy.print_chars || (file && file != Py_None))
		return PyObject_Call(builtin("print"), args, kwargs);
	PyObject *text = printed_words(args, option(kwargs, "sep"), option(kwargs, "end"));
	int r = text ? print_text(text) : -1;
	Py_XDECREF(text);
	if (r < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* RestrictedPython's PrintCollector: a scope that reads `printed` collects what it prints instead. */
struct collector {
	PyObject_HEAD
	PyObject *texts;
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
	struct collector *c = PyType_Ready(&collector_type) == 0 ? PyObject_New(struct collector, &collector_type) : NULL;
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

/* ---- tools of OpenEnv's ------------------------------------------------------- */

static PyObject *from_support(const char *name, PyObject *args)
{
	PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "_glovebox"); /* borrowed */
	PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
	PyObject *r = function ? PyObject_CallObject(function, args) : NULL;
	Py_XDECREF(function);
	return r;
}

static PyObject *format_exc(PyObject *self, PyObject *args)
{
	(void)self;
	return from_support("format_exc", args);
}

static PyObject *safe_json_dumps(PyObject *self, PyObject *args)
{
	(void)self;
	return from_support("safe_json_dumps", args);
}

/* ---- the dict ------------------------------------------------------------------ */

static PyMethodDef guarded[] = {
	{ "getattr", (PyCFunction)(void (*)(void))guard_getattr, METH_FASTCALL, NULL },
	{ "hasattr", (PyCFunction)(void (*)(void))guard_hasattr, METH_FASTCALL, NULL },
	{ "setattr", (PyCFunction)(void (*)(void))guard_setattr, METH_FASTCALL, NULL },
	{ "delattr", (PyCFunction)(void (*)(void))guard_delattr, METH_FASTCALL, NULL },
	{ "dir", guard_dir, METH_O, NULL },
	{ "vars", guard_vars, METH_O, NULL },
	{ "print", (PyCFunction)(void (*)(void))capped_print, METH_VARARGS | METH_KEYWORDS, NULL },
};

static PyMethodDef tools[] = {
	{ "format_exc", format_exc, METH_NOARGS, "The traceback of the exception that is handled, as text." },
	{ "safe_json_dumps", safe_json_dumps, METH_VARARGS, "The value as JSON, with the repr of what JSON has no words for." },
};

static PyObject *guarded_builtin(const char *name)
{
	for (size_t i = 0; i < sizeof(guarded) / sizeof(guarded[0]); i++)
		if (!strcmp(guarded[i].ml_name, name))
			return PyCFunction_New(&guarded[i], NULL);
	return Py_XNewRef(builtin(name));
}

static int add_builtin(const char *name)
{
	PyObject *value = guarded_builtin(name);
	int r = value ? PyDict_SetItemString(policy.builtins, name, value) : 0; /* not every Python has every exception */
	Py_XDECREF(value);
	return r;
}

static int add_mathematics(void)
{
	static const char *const names[] = { "ceil", "floor", "log", "exp", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
		"degrees", "radians", "sqrt" };
	PyObject *math = import_real("math");
	int r = math ? 0 : -1;
	for (size_t i = 0; r == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		PyObject *function = PyObject_GetAttrString(math, names[i]);
		r = function ? PyDict_SetItemString(policy.builtins, names[i], function) : -1;
		Py_XDECREF(function);
	}
	Py_XDECREF(math);
	return r;
}

static int add_functions(PyMethodDef *defs, size_t n)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		PyObject *function = PyCFunction_New(&defs[i], NULL);
		r = function ? PyDict_SetItemString(policy.builtins, defs[i].ml_name, function) : -1;
		Py_XDECREF(function);
	}
	return r;
}

static int add_asked_for(void)
{
	PyObject *names = PySequence_List(policy.more_builtins);
	int r = names ? 0 : -1;
	for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(names); i++) {
		const char *name = PyUnicode_AsUTF8(PyList_GET_ITEM(names, i));
		r = name ? add_builtin(name) : -1;
	}
	Py_XDECREF(names);
	return r;
}

static int drop_refused(void)
{
	PyObject *names = PySequence_List(policy.refused);
	int r = names ? 0 : -1;
	for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(names); i++)
		if (PyDict_DelItem(policy.builtins, PyList_GET_ITEM(names, i)) < 0)
			PyErr_Clear(); /* an attribute of a module, or no builtin of this profile */
	Py_XDECREF(names);
	return r;
}

static int add_table(void)
{
	int r = 0;
	for (const char *const *b = policy.table->builtins; r == 0 && b && *b; b++)
		r = add_builtin(*b);
	if (r == 0 && policy.base == PROFILE_SMOLAGENTS)
		r = add_mathematics();
	if (r == 0 && (policy.base == PROFILE_SMOLAGENTS || policy.base == PROFILE_RESTRICTED))
		r = add_functions(tools, sizeof(tools) / sizeof(tools[0]));
	if (r == 0 && policy.base == PROFILE_RESTRICTED)
		r = utilities_add(policy.builtins);
	return r == 0 ? answer_add_builtins(policy.builtins) : r;
}

/* ---- open, for C code ------------------------------------------------------------- */

/* numpy looks for open() among the builtins of the frame it was called from, which is the cell's. It is there for it alone: the name
 * in a cell's code is refused by the static pass, and where the file may lie is the audit hook's matter. */
static bool open_is_hidden;

bool builtin_given(PyObject *name)
{
	if (open_is_hidden && PyUnicode_CompareWithASCIIString(name, "open") == 0)
		return false;
	return PyDict_Contains(policy.builtins, name) == 1;
}

bool builtin_hidden(PyObject *name)
{
	return open_is_hidden && PyUnicode_CompareWithASCIIString(name, "open") == 0;
}

bool builtin_is_hidden(PyObject *value)
{
	return open_is_hidden && value == builtin("open");
}

static int hide_open(void)
{
	if (!policy.languages || PyDict_GetItemString(policy.builtins, "open") || !builtin("open"))
		return 0;
	open_is_hidden = true;
	return PyDict_SetItemString(policy.builtins, "open", builtin("open"));
}

int builtins_make(void)
{
	PyObject *module = PyImport_ImportModule("builtins");
	real = module ? PyModule_GetDict(module) : NULL;
	Py_XDECREF(module); /* sys.modules keeps it, and our reference the dict */
	Py_XINCREF(real);
	if (!real)
		return -1;
	policy.builtins = policy.table->builtins ? PyDict_New() : PyDict_Copy(real);
	if (!policy.builtins || (policy.table->builtins && add_table() < 0) || add_asked_for() < 0)
		return -1;
	PyObject *import = import_function();
	int r = import ? PyDict_SetItemString(policy.builtins, "__import__", import) : -1;
	Py_XDECREF(import);
	if (r == 0)
		r = drop_refused();
	return r == 0 ? hide_open() : -1;
}
