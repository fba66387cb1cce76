/*
 * Which attributes may be named, wherever the name comes from: the tree, getattr(), a format
 * string.
 */
#include <string.h>

#include "guest/policy/policy_internal.h"

/*
 * Frames, code objects and what leads to them; RestrictedPython's list and what asynchronous
 * generators have.
 */
static const char *const inspecting[] = { "tb_frame", "tb_next", "f_back", "f_builtins", "f_code",
	"f_generator", "f_globals", "f_locals", "f_trace", "co_code", "gi_frame", "gi_code",
	"gi_yieldfrom", "gi_suspended", "cr_await", "cr_frame", "cr_code", "cr_origin", "ag_frame",
	"ag_code", "ag_await", NULL };

/* Two underscores that tell a name and lead nowhere. */
static const char *const harmless[] = { "__name__", "__doc__", "__qualname__", "__version__",
	"__module__", NULL };

/*
 * What classes of ordinary programs define; __array_interface__ and its kin, which hand out memory,
 * are not among them.
 */
static const char *const special[] = { "__init__", "__new__", "__del__", "__repr__", "__str__",
	"__bytes__", "__format__", "__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__",
	"__hash__", "__bool__", "__getattr__", "__getattribute__", "__setattr__", "__delattr__",
	"__dir__", "__get__", "__set__", "__delete__", "__set_name__", "__init_subclass__",
	"__class_getitem__", "__instancecheck__", "__subclasscheck__", "__subclasshook__",
	"__prepare__", "__call__", "__len__", "__length_hint__", "__getitem__", "__setitem__",
	"__delitem__", "__missing__", "__iter__", "__next__", "__reversed__", "__contains__",
	"__add__", "__sub__", "__mul__", "__matmul__", "__truediv__", "__floordiv__", "__mod__",
	"__divmod__", "__pow__", "__lshift__", "__rshift__", "__and__", "__xor__", "__or__",
	"__radd__", "__rsub__", "__rmul__", "__rmatmul__", "__rtruediv__", "__rfloordiv__",
	"__rmod__", "__rdivmod__", "__rpow__", "__rlshift__", "__rrshift__", "__rand__", "__rxor__",
	"__ror__", "__iadd__", "__isub__", "__imul__", "__imatmul__", "__itruediv__",
	"__ifloordiv__", "__imod__", "__ipow__", "__ilshift__", "__irshift__", "__iand__",
	"__ixor__", "__ior__", "__neg__", "__pos__", "__abs__", "__invert__", "__complex__",
	"__int__", "__float__", "__index__", "__round__", "__trunc__", "__floor__", "__ceil__",
	"__enter__", "__exit__", "__await__", "__aiter__", "__anext__", "__aenter__", "__aexit__",
	"__match_args__", "__slots__", "__doc__", "__module__", "__qualname__", "__copy__",
	"__deepcopy__", "__post_init__", "__sizeof__", "__fspath__", "__version__", "__author__",
	"__all__", "__metaclass__", NULL };

static PyObject *inspecting_set, *harmless_set, *special_set;

static PyObject *make_set(const char *const *words)
{
	PyObject *set = PySet_New(NULL);
	for (; set && *words; words++) {
		PyObject *word = PyUnicode_InternFromString(*words);
		if (!word || PySet_Add(set, word) < 0)
			Py_CLEAR(set);
		Py_XDECREF(word);
	}
	return set;
}

int attributes_prepare(void)
{
	inspecting_set = make_set(inspecting);
	harmless_set = make_set(harmless);
	special_set = make_set(special);
	return inspecting_set && harmless_set && special_set ? 0 : -1;
}

/* array.ctypes, bit_generator.cffi: addresses, and functions that call any. */
static bool reads_memory(PyObject *name)
{
	if (PyUnicode_CompareWithASCIIString(name, "ctypes") != 0 &&
		PyUnicode_CompareWithASCIIString(name, "cffi") != 0)
		return false;
	return !import_allowed(name);
}

bool attribute_inspects(PyObject *name)
{
	/* an error counts as yes */
	return PySet_Contains(inspecting_set, name) != 0 || reads_memory(name);
}

bool name_is_dunder(PyObject *name)
{
	Py_ssize_t n = PyUnicode_GET_LENGTH(name);
	return n > 4 && PyUnicode_READ_CHAR(name, 0) == '_' &&
	       PyUnicode_READ_CHAR(name, 1) == '_' && PyUnicode_READ_CHAR(name, n - 1) == '_' &&
	       PyUnicode_READ_CHAR(name, n - 2) == '_';
}

bool name_is_special(PyObject *name)
{
	return PySet_Contains(special_set, name) == 1;
}

static bool ends_with_roles(PyObject *name)
{
	const char *s = PyUnicode_AsUTF8(name);
	size_t n = s ? strlen(s) : 0;
	return !s || (n >= 9 && !strcmp(s + n - 9, "__roles__"));
}

static int check_restricted(PyObject *name)
{
	Py_ssize_t n = PyUnicode_GET_LENGTH(name);
	if (attribute_inspects(name))
		return violation(NULL, POLICY_ATTRIBUTE,
			"Frames and code objects cannot be looked at.",
			"\"%U\" is a restricted name, that is forbidden to access in RestrictedPython.",
			name);
	if (n && PyUnicode_READ_CHAR(name, 0) == '_')
		return violation(NULL, POLICY_ATTRIBUTE,
			"Use names that do not begin with an underscore.",
			"\"%U\" is an invalid attribute name because it starts with \"_\"", name);
	if (ends_with_roles(name))
		return violation(NULL, POLICY_ATTRIBUTE, NULL,
			"\"%U\" is an invalid attribute name because it ends with \"__roles__\".",
			name);
	return 0;
}

int attribute_check(PyObject *name)
{
	if (!policy.languages)
		return 0;
	if (!PyUnicode_CheckExact(name))
		return violation(PyExc_TypeError, POLICY_ATTRIBUTE,
			"Give the name as a plain text.", "type(name) must be str");
	if (policy.base == PROFILE_RESTRICTED)
		return check_restricted(name);
	if (name_is_dunder(name) && PySet_Contains(harmless_set, name) != 1)
		return violation(NULL, POLICY_ATTRIBUTE,
			"Use the builtin function or the operator instead: len(x), str(x), type(x).",
			"Forbidden access to dunder attribute: %U", name);
	if (PyUnicode_CompareWithASCIIString(name, "f_builtins") == 0)
		return violation(NULL, POLICY_MODULE, "Use the builtins by their names.",
			"Forbidden access to module: builtins");
	if (attribute_inspects(name))
		return violation(NULL, POLICY_ATTRIBUTE,
			"Frames and code objects cannot be looked at.",
			"Forbidden access to attribute: %U", name);
	return 0;
}

/*
 * Parts of named tuples' and enumerations' public side that begin with an underscore all the same.
 */
static const char *const public_all_the_same[] = { "_asdict", "_replace", "_fields", "_make",
	"_field_defaults", "_value_", "_name_", NULL };

static bool is_of_a_cell(PyTypeObject *type)
{
	PyObject *module = type->tp_flags & Py_TPFLAGS_HEAPTYPE
				   ? PyObject_GetAttrString((PyObject *)type, "__module__")
				   : NULL;
	bool yes = module && PyUnicode_Check(module) &&
		   PyUnicode_CompareWithASCIIString(module, "__main__") == 0;
	if (!module)
		PyErr_Clear();
	Py_XDECREF(module);
	return yes;
}

static bool is_cell_function(PyObject *object)
{
	return PyFunction_Check(object) &&
	       code_is_cells((PyCodeObject *)PyFunction_GET_CODE(object));
}

/*
 * Does a class that is none of the cells' own have it? Then it is that class's private matter,
 * whoever inherits it.
 */
static bool inherited(PyTypeObject *type, PyObject *name)
{
	PyObject *mro = type->tp_mro;
	for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
		PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
#if PY_VERSION_HEX >= 0x030c0000
		PyObject *dict = PyType_GetDict(base);
#else
		PyObject *dict = Py_XNewRef(base->tp_dict);
#endif
		int found = dict ? PyDict_Contains(dict, name) : 0;
		Py_XDECREF(dict);
		if (found)
			return found < 0 || !is_of_a_cell(base);
	}
	return false;
}

static bool owns(PyObject *object, PyObject *name)
{
	PyTypeObject *type = Py_TYPE(object);
	if (PyType_Check(object))
		return is_of_a_cell((PyTypeObject *)object) &&
		       !inherited((PyTypeObject *)object, name) && !inherited(type, name);
	if (Py_IS_TYPE(object, &PySuper_Type)) {
		PyObject *real = PyObject_GetAttrString(object, "__self_class__");
		bool yes = real && PyType_Check(real) && is_of_a_cell((PyTypeObject *)real) &&
			   !inherited((PyTypeObject *)real, name);
		if (!real)
			PyErr_Clear();
		Py_XDECREF(real);
		return yes;
	}

	return is_cell_function(object) || (is_of_a_cell(type) && !inherited(type, name));
}

bool private_by_class(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !PyType_Check(object) &&
	       !PyModule_Check(object) && !Py_IS_TYPE(object, &PySuper_Type) &&
	       !PyExceptionInstance_Check(object);
}

int private_check(PyObject *object, PyObject *name)
{
	if (policy.base == PROFILE_RESTRICTED || PyUnicode_GET_LENGTH(name) < 2 ||
		PyUnicode_READ_CHAR(name, 0) != '_' || name_is_dunder(name))
		return 0;
	for (const char *const *n = public_all_the_same; *n; n++)
		if (PyUnicode_CompareWithASCIIString(name, *n) == 0)
			return 0;
	if (PyModule_Check(object) || owns(object, name))
		return 0; /* modules have their own rules */
	return violation(NULL, POLICY_ATTRIBUTE, "Use the public attributes of the object.",
		"Forbidden access to private name: %U", name);
}

/* ---- format strings -------------------------------------------------------- */

static PyObject *original_format, *original_format_map;

static bool is_word(Py_UCS4 c)
{
	return c == '_' || Py_UNICODE_ISALNUM(c);
}

/* "{0.__class__.__name__}" tells a name; libraries' own messages do it. */
static bool tells_a_name(PyObject *format, Py_ssize_t after)
{
	static const char *const tails[] = { ".__name__", ".__qualname__", ".__module__" };
	for (int i = 0; i < 3; i++) {
		Py_ssize_t n = (Py_ssize_t)strlen(tails[i]), end = after + n;
		PyObject *tail = end <= PyUnicode_GET_LENGTH(format)
					 ? PyUnicode_Substring(format, after, end)
					 : NULL;
		bool same = tail && PyUnicode_CompareWithASCIIString(tail, tails[i]) == 0;
		Py_XDECREF(tail);
		if (same && (end == PyUnicode_GET_LENGTH(format) ||
				    !is_word(PyUnicode_READ_CHAR(format, end))))
			return true;
	}
	return false;
}

static int refuse_format(void)
{
	if (policy.base == PROFILE_RESTRICTED)
		return violation(NULL, POLICY_FORMAT, "Use an f-string.",
			"Using the format*() methods of `str` is not safe");
	return violation(NULL, POLICY_FORMAT,
		"Use an f-string, or name the values: '{name}'.format(name=value).",
		"Forbidden access to dunder attribute: in a format string");
}

/*
 * Every ".name" between braces must be one that may be read; nested fields lie between the same
 * braces. RestrictedPython gives code no format() at all; libraries have it all the same.
 */
static int check_format(PyObject *format)
{
	if (policy.base == PROFILE_RESTRICTED && caller_is_cell() && !trusted())
		return refuse_format();
	Py_ssize_t n = PyUnicode_GET_LENGTH(format), depth = 0;
	int kind = PyUnicode_KIND(format);
	const void *data = PyUnicode_DATA(format);
	for (Py_ssize_t i = 0; i < n; i++) {
		Py_UCS4 c = PyUnicode_READ(kind, data, i);
		if (c == '{') {
			depth++;
		} else if (c == '}' && depth) {
			depth--;
		} else if (c == '.' && depth && i + 1 < n) {
			Py_ssize_t end = i + 1;
			while (end < n && is_word(PyUnicode_READ(kind, data, end)))
				end++;
			PyObject *name = PyUnicode_Substring(format, i + 1, end);
			if (!name)
				return -1;
			bool named = PyUnicode_CompareWithASCIIString(name, "__class__") == 0 &&
				     tells_a_name(format, end);
			bool harmless_name = PySet_Contains(harmless_set, name) == 1;
			int r = named || harmless_name ? 0 : attribute_check(name);
			Py_DECREF(name);
			if (r < 0)
				return refuse_format();
		}
	}

	return 0;
}

/* "{0.environ}" tells what is in a real module. */
static int check_values(PyObject *args)
{
	int r = 0;
	for (Py_ssize_t i = 0; r == 0 && i < PyTuple_GET_SIZE(args); i++)
		if (PyModule_Check(PyTuple_GET_ITEM(args, i)) && caller_is_cell() && !trusted())
			r = module_owner_check(PyTuple_GET_ITEM(args, i));
	return r;
}

static PyObject *format(PyObject *self, PyObject *args, PyObject *kwargs)
{
	if (!PyUnicode_Check(self) || PyUnicode_READY(self) < 0 || check_format(self) < 0 ||
		check_values(args) < 0)
		return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "format of no text");
	descrgetfunc get = Py_TYPE(original_format)->tp_descr_get;
	PyObject *bound = get(original_format, self, (PyObject *)Py_TYPE(self));
	PyObject *r = bound ? PyObject_Call(bound, args, kwargs) : NULL;
	Py_XDECREF(bound);
	return r;
}

static PyObject *format_map(PyObject *self, PyObject *mapping)
{
	if (!PyUnicode_Check(self) || PyUnicode_READY(self) < 0 || check_format(self) < 0)
		return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "format of no text");
	return PyObject_CallFunctionObjArgs(original_format_map, self, mapping, NULL);
}

static PyMethodDef format_defs[] = {
	{ "format", (PyCFunction)(void (*)(void))format, METH_VARARGS | METH_KEYWORDS, NULL },
	{ "format_map", format_map, METH_O, NULL },
};

/* In the type's own dict, so that subclasses and str.format itself lead to it as well. */
int format_guard_install(void)
{
#if PY_VERSION_HEX >= 0x030c0000
	PyObject *dict = PyType_GetDict(&PyUnicode_Type);
#else
	PyObject *dict = Py_NewRef(PyUnicode_Type.tp_dict);
#endif
	PyObject **originals[] = { &original_format, &original_format_map };
	int r = dict ? 0 : -1;
	for (int i = 0; r == 0 && i < 2; i++) {
		PyObject *found = PyDict_GetItemString(dict, format_defs[i].ml_name); /* borrowed */
		PyObject *guard = PyDescr_NewMethod(&PyUnicode_Type, &format_defs[i]);
		if (!*originals[i])
			*originals[i] = Py_XNewRef(found);
		r = guard && *originals[i]
			    ? PyDict_SetItemString(dict, format_defs[i].ml_name, guard)
			    : -1;
		Py_XDECREF(guard);
	}
	PyType_Modified(&PyUnicode_Type);
	Py_XDECREF(dict);
	return r;
}
