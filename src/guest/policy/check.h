/* The walk over the syntax tree of a cell; private to this folder. */
#pragma once

#include "guest/policy/nodes.h"
#include "guest/policy/policy_internal.h"

enum scope_kind { SCOPE_MODULE, SCOPE_FUNCTION, SCOPE_CLASS };

struct scope {
	struct scope *outer;
	enum scope_kind kind;
	PyObject *globals; /* set of names declared global, or NULL */
	bool collects;     /* it reads `printed` */
	bool is_lambda;
	PyObject *class_name; /* of the class it lies in, or NULL */
};

struct walk {
	const struct rules *rules;
	struct scope *scope;
	PyObject *called; /* the func of the call being walked, borrowed */
	PyObject *tree;   /* all of it, borrowed */
	PyObject *bound;  /* set: names it binds anywhere; made when asked for */
	PyObject *parent; /* of the node being walked, borrowed */
	PyObject *errors; /* texts so far, where all are collected; else NULL */
	enum policy_rule first_rule;
	/* the first module that is not on the list, where all errors are collected */
	PyObject *refused_import;
	bool refused_from;
	int refused_line;
	int first_line, line, depth;
	uint64_t weight;  /* nodes since the innermost loop or function began */
	bool text_only;   /* source of a library: check, change nothing */
	const char *code; /* of the cell */
	size_t len;
};

enum { WALK_SKIP = 1 };

/* What makes a profile: called for every node, before its parts and after them. */
struct rules {
	/* A module's or function's scope opens, before anything in it is looked at. May be NULL. */
	int (*open)(struct scope *scope, PyObject *node);
	/*
	 * -1 with an error (or reported with walk_error): it may not be. WALK_SKIP: its parts are
	 * not looked at.
	 */
	int (*enter)(struct walk *w, enum node_kind kind, PyObject *node);
	/*
	 * *ret: a node that takes its place (a new reference), or NULL. Changes nothing in a walk
	 * of text only.
	 */
	int (*leave)(struct walk *w, enum node_kind kind, PyObject *node, PyObject **ret);
};

extern const struct rules smolagents_rules, restricted_rules, import_rules, type_rules,
	dataclass_rules;

/*
 * tinyagent.c: whether names that it has its own way with may be read here; what takes the place of
 * such a name.
 */
bool tinyagent_reads(const struct walk *w);
int tinyagent_leave_name(
	struct walk *w, PyObject *node, PyObject *name, bool refused, PyObject **ret);

/* Walks a node and what is below it. *ret: what takes its place, or NULL. */
int walk_node(struct walk *w, PyObject *node, PyObject **ret);
int walk_field(struct walk *w, PyObject *node, PyObject *field);

/* Reports a violation at the node: raises it, or where all are collected notes it and returns 0. */
int walk_error(struct walk *w, PyObject *node, enum policy_rule rule, const char *remedy,
	const char *fmt, ...);

/*
 * Whether the tree binds the name somewhere, in whatever scope. What is not bound where it is read
 * is a NameError then.
 */
bool walk_binds(struct walk *w, PyObject *name);

/* Checks an import statement against the list. */
int check_import(struct walk *w, PyObject *node);
int check_import_from(struct walk *w, PyObject *node);

/* guard @ operand, where `like` is (steals operand). */
PyObject *guard_node(
	PyObject *like, enum guard_kind kind, PyObject *name, uint64_t weight, PyObject *operand);
bool is_docstring(PyObject *statement);
