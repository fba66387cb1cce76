/*
 * Rules for code that libraries write as text and compile: types in annotations, methods of
 * dataclasses.
 */
#include <string.h>

#include "guest/policy/check.h"

/* The expression of a type, and nothing that could do anything. */
static int enter_type(struct walk *w, enum node_kind kind, PyObject *node)
{
	switch (kind) {
	case NODE_Module:
	case NODE_Expression:
	case NODE_Expr:
	case NODE_Attribute:
	case NODE_Subscript:
	case NODE_Name:
	case NODE_Constant:
	case NODE_Tuple:
	case NODE_List:
	case NODE_BinOp:
	case NODE_Starred:
	case NODE_UnaryOp:
		break;
	default:
		return walk_error(w, node, POLICY_CODE,
			"Write the annotation as code, not as text.",
			"%s in an annotation that is text is not allowed", node_name(node));
	}

	if (kind != NODE_Attribute)
		return 0;
	PyObject *name = node_get(node, "attr");
	int r = name ? attribute_check(name) : -1;
	Py_XDECREF(name);
	return r;
}

const struct rules type_rules = { .enter = enter_type };

/* ---- what dataclasses writes ------------------------------------------------------- */

static bool is_one_of(PyObject *name, const char *const *list)
{
	for (; *list; list++)
		if (PyUnicode_CompareWithASCIIString(name, *list) == 0)
			return true;
	return false;
}

static int refuse_field(struct walk *w, PyObject *node)
{
	return walk_error(w, node, POLICY_CODE, "Give the fields names that are identifiers.",
		"%s in the name of a field is not allowed", node_name(node));
}

/*
 * It calls factories of default values, hash, super, type and its own exception, and nothing else.
 */
static int check_written_call(struct walk *w, PyObject *node)
{
	static const char *const functions[] = { "hash", "super", "type", "FrozenInstanceError",
		"BUILTINS", NULL };
	static const char *const methods[] = { "__setattr__", "__delattr__", "__post_init__",
		NULL };
	PyObject *func = node_get(node, "func"), *name = func ? node_get(func, "id") : NULL,
		 *attr = func ? node_get(func, "attr") : NULL;
	const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
	bool known = (name && is_one_of(name, functions)) || (attr && is_one_of(attr, methods)) ||
		     (text && (!strncmp(text, "_dflt_", 6) || !strncmp(text, "__dataclass", 11)));

	PyErr_Clear();
	Py_XDECREF(func);
	Py_XDECREF(name);
	Py_XDECREF(attr);
	return known ? 0 : refuse_field(w, node);
}

static int check_written_attribute(struct walk *w, PyObject *node)
{
	static const char *const known[] = { "__class__", "__qualname__", "__setattr__",
		"__delattr__", "__post_init__", "object", NULL };
	PyObject *name = node_get(node, "attr");
	bool ok = name && (!name_is_dunder(name) || is_one_of(name, known)) &&
		  !attribute_inspects(name);
	Py_XDECREF(name);
	return ok ? 0 : refuse_field(w, node);
}

/* Field names come from a dict that a cell may have filled, and stand in the text as they are. */
static int enter_dataclass(struct walk *w, enum node_kind kind, PyObject *node)
{
	switch (kind) {
	case NODE_Call:
		return check_written_call(w, node);
	case NODE_Attribute:
		return check_written_attribute(w, node);
	case NODE_Import:
	case NODE_ImportFrom:
	case NODE_Lambda:
	case NODE_ClassDef:
	case NODE_ListComp:
	case NODE_SetComp:
	case NODE_DictComp:
	case NODE_GeneratorExp:
	case NODE_With:
	case NODE_Try:
	case NODE_TryStar:
	case NODE_Match:
	case NODE_Delete:
	case NODE_Global:
	case NODE_Await:
	case NODE_Yield:
		return refuse_field(w, node);
	default:
		return 0;
	}
}

const struct rules dataclass_rules = { .enter = enter_dataclass };
