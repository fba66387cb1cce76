#include "guest/policy/nodes.h"

#include <stdarg.h>
#include <stdint.h>

enum { SLOTS = 512 };

#define NODE_NAME(name) #name,
static const char *const names[] = { NODE_KINDS(NODE_NAME) };
#undef NODE_NAME

static PyObject *types[NODE_UNKNOWN], *fields[NODE_UNKNOWN];
static struct {
	PyObject *type;
	enum node_kind kind;
} slots[SLOTS];
static PyObject *positions[4];

static unsigned slot_of(const void *type)
{
	return (unsigned)((uintptr_t)type >> 4) % SLOTS;
}

static int learn(PyObject *ast, enum node_kind kind)
{
	PyObject *type = PyObject_GetAttrString(ast, names[kind]);
	if (!type) {
		PyErr_Clear(); /* of another version of Python */
		return 0;
	}
	types[kind] = type;
	fields[kind] = PyObject_GetAttrString(type, "_fields");
	unsigned i = slot_of(type);
	while (slots[i].type)
		i = (i + 1) % SLOTS;
	slots[i].type = type;
	slots[i].kind = kind;
	return fields[kind] && PyTuple_Check(fields[kind]) ? 0 : -1;
}

int nodes_prepare(void)
{
	static const char *const places[] = { "lineno", "col_offset", "end_lineno",
		"end_col_offset" };
	PyObject *ast = PyImport_ImportModule("ast");
	int r = ast ? 0 : -1;
	for (int i = 0; r == 0 && i < NODE_UNKNOWN; i++)
		r = learn(ast, (enum node_kind)i);
	for (int i = 0; r == 0 && i < 4; i++)
		r = (positions[i] = PyUnicode_InternFromString(places[i])) ? 0 : -1;
	Py_XDECREF(ast);
	return r;
}

enum node_kind node_kind(PyObject *node)
{
	PyObject *type = (PyObject *)Py_TYPE(node);
	for (unsigned i = slot_of(type); slots[i].type; i = (i + 1) % SLOTS)
		if (slots[i].type == type)
			return slots[i].kind;
	return NODE_UNKNOWN;
}

const char *node_name(PyObject *node)
{
	enum node_kind kind = node_kind(node);
	return kind < NODE_UNKNOWN ? names[kind] : Py_TYPE(node)->tp_name;
}

PyObject *node_fields(enum node_kind kind)
{
	return fields[kind];
}

/* The field's name as Python's text. Names are literals: their addresses are few. */
static PyObject *field_name(const char *field)
{
	static struct {
		const char *text;
		PyObject *name;

	} cache[SLOTS];
	unsigned i = (slot_of(field) ^ (unsigned)((uintptr_t)field & 15)) % SLOTS;
	for (unsigned tries = 0; tries < SLOTS; tries++, i = (i + 1) % SLOTS) {
		if (cache[i].text == field)
			return cache[i].name;
		if (!cache[i].text) {
			cache[i].name = PyUnicode_InternFromString(field);
			cache[i].text = cache[i].name ? field : NULL;
			return cache[i].name;
		}
	}

	return NULL;
}

PyObject *node_get(PyObject *node, const char *field)
{
	PyObject *name = field_name(field), *value = name ? PyObject_GetAttr(node, name) : NULL;
	if (!value)
		PyErr_Clear();
	if (value == Py_None)
		Py_CLEAR(value);
	return value;
}

PyObject *node_list(PyObject *node, const char *field)
{
	PyObject *list = node_get(node, field);
	if (list && !PyList_CheckExact(list))
		Py_CLEAR(list);
	Py_XDECREF(list); /* the node holds it */
	return list;
}

int node_line(PyObject *node)
{
	PyObject *line = PyObject_GetAttr(node, positions[0]);
	long n = line ? PyLong_AsLong(line) : 0;
	if (PyErr_Occurred())
		PyErr_Clear();
	Py_XDECREF(line);
	return n > 0 ? (int)n : 0;
}

static int place(PyObject *node, PyObject *like)
{
	int r = 0;
	for (int i = 0; r == 0 && like && i < 4; i++) {
		PyObject *v = PyObject_GetAttr(like, positions[i]);
		if (v)
			r = PyObject_SetAttr(node, positions[i], v);
		else
			PyErr_Clear(); /* not every node has a place */
		Py_XDECREF(v);
	}
	return r;
}

PyObject *node_make(enum node_kind kind, PyObject *like, int n, ...)
{
	va_list ap;
	bool whole = true;
	PyObject *args = PyTuple_New(n);
	va_start(ap, n);
	for (int i = 0; i < n; i++) {
		PyObject *v = va_arg(ap, PyObject *);
		whole = whole && v;
		if (args)
			PyTuple_SET_ITEM(args, i, v);
		else
			Py_XDECREF(v);
	}

	va_end(ap);
	PyObject *node = whole && args && types[kind] ? PyObject_CallObject(types[kind], args)
						      : NULL;
	Py_XDECREF(args);
	if (node && place(node, like) < 0)
		Py_CLEAR(node);
	return node;
}

PyObject *node_leaf(enum node_kind kind)
{
	return PyObject_CallNoArgs(types[kind]);
}

bool node_is_store(PyObject *node)
{
	PyObject *ctx = node_get(node, "ctx");
	enum node_kind kind = ctx ? node_kind(ctx) : NODE_Load;
	Py_XDECREF(ctx);
	return kind == NODE_Store || kind == NODE_Del;
}
