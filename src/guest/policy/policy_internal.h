/* Declarations shared by the files of this folder; private to it. */
#pragma once

#include "guest/policy/policy.h"

#include <stdint.h>

enum { TRUST_DEPTH = 16 }; /* calls that reach further than this into each other are not trusted */

struct policy {
	bool active;
	const struct profile_table *table;
	enum profile_base base;
	bool all_imports;  /* "*" is among them */
	bool languages;    /* names, attributes, builtins are held too, not only imports */
	PyObject *imports; /* list of str, as they were given */
	PyObject *more_builtins, *refused; /* sets of str */
	uint64_t max_operations, max_while, print_chars;
	bool fresh;
	PyObject *globals;  /* of the cells */
	PyObject *builtins; /* of the cells: a dict of their own */
	int trust;          /* our own calls under way */
	/* for each of these calls, the top frame when it began; used only for comparison */
	PyFrameObject *trust_bases[TRUST_DEPTH];
	/* the cell that runs */
	bool was_refused;
	uint64_t operations;
	PyObject *called; /* set: names that the cell calls */
};
extern struct policy policy;

/* ---- violation.c: errors ------------------------------------------------- */

extern PyObject *violation_interpreter_error; /* smolagents' InterpreterError, a ValueError */

/*
 * Raises `type` (NULL: the profile's own) with rule and remedy attached. Always -1. `remedy` may be
 * NULL. Formats as PyUnicode_FromFormat.
 */
int violation(PyObject *type, enum policy_rule rule, const char *remedy, const char *fmt, ...);

/* The same, returning NULL. */
#define violation_null(...) (violation(__VA_ARGS__), (PyObject *)NULL)
int violation_prepare(void);

/* ---- attributes.c: which names may be read ------------------------------- */

/*
 * Raises unless an attribute of this name may be read or set through getattr() and its kin. The
 * name must be exactly a str.
 */
int attribute_check(PyObject *name);

/*
 * Raises unless the object's class is one of the cells' own: private names of others' objects are
 * not read.
 */
int private_check(PyObject *object, PyObject *name);

/* Whether its answer depends on the object's class alone. */
bool private_by_class(PyObject *object);

/* True for the names that lead to frames and code. */
bool attribute_inspects(PyObject *name);
bool name_is_dunder(PyObject *name);

/* Whether a class of a cell may define it: Python's own special names. */
bool name_is_special(PyObject *name);
int attributes_prepare(void);

/* Replaces str.format and str.format_map by guarded ones, for the whole process. */
int format_guard_install(void);

/* ---- imports.c, modules.c ------------------------------------------------- */

/* 1 when the module of this dotted name may be used, 0 when not. */
int import_allowed(PyObject *name);

/* Whether the module leads out of its package: only its own name allows it. */
bool import_leads_out(const char *name);

/* Whether the top of this dotted name is a module that could be imported; nothing is run. */
bool import_exists(PyObject *name);

/* Raises the profile's error for it. Always -1. `from`: it was `from X import`. */
int import_refuse(PyObject *name, bool from);
/* The real module, whoever's frame is on top. */
PyObject *import_real(const char *name);
PyObject *import_function(void); /* the cells' __import__, a new reference */

/* Once: modules that a library is told to import by a name that a cell gave are looked at. */
int imports_watch(void);

/*
 * What a cell gets in place of a value: the copy for a module that is allowed, the value itself for
 * what is none, or NULL with an error. Steals nothing; a new reference.
 */
PyObject *module_guard(PyObject *value);

/* Raises for a real module: its attributes are not read for a cell. */
int module_owner_check(PyObject *owner);

/* What a cell gets for a name of a real module; NULL with an error. A new reference. */
PyObject *module_value(PyObject *module_name, PyObject *name, PyObject *value);

/*
 * What cells find in place of a value of a module: 1 and *ret, a new reference, for a stand-in; -1
 * for nothing at all; 0 for the value itself.
 */
int stand_in(PyObject *module_name, PyObject *name, PyObject *value, PyObject **ret);

/* Whether the module of this name is one through which everything can be reached. */
bool module_is_dangerous(PyObject *name);

/* The cell's copy of a module that is allowed (a new reference). */
PyObject *module_copy(PyObject *module);
int modules_prepare(void);

/* Real modules that lead everywhere answer libraries only; again after an import. */
int modules_shut(void);

/* ---- builtins.c -------------------------------------------------------------- */
int builtins_make(void);

/*
 * Whether a cell may use the builtin of this name; whether there is one that only libraries may
 * use.
 */
bool builtin_given(PyObject *name);
bool builtin_hidden(PyObject *name);
bool builtin_is_hidden(PyObject *value);
/* of the builtins module, borrowed; NULL where there is none */
PyObject *builtin_real(const char *name);

/*
 * Whether cells have a function of their own in the place of this builtin; then *ret is it, a new
 * reference or NULL with an error.
 */
bool builtin_guarded(PyObject *name, PyObject **ret);
int utilities_add(PyObject *builtins);          /* utilities.c */
int tinyagent_add_builtins(PyObject *builtins); /* tinyagent.c */

/* ---- print.c ------------------------------------------------------------------- */
/* a METH_FASTCALL | METH_KEYWORDS function */
PyObject *print_capped(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
void print_end(void); /* writes what the print cap held back */
void print_begin(void);

/* Takes lines of text that print() of the cells made. */
/* RestrictedPython's: call it as print(), str() it as printed */
PyObject *collector_new(void);
PyObject *collector_text(PyObject *c); /* what it holds */

/* ---- guards.c: objects that stand in compiled code ------------------------- */

enum guard_kind {
	GUARD_ATTRIBUTE, /* guard @ object: its attribute `name`, checked */
	GUARD_OWNER,     /* guard @ object: the object, if its attribute `name` may be set */
	GUARD_NAME,      /* guard @ text: the text, if an attribute may have this name */
	/* guard @ text: AttributeError for names that a __getattr__ of a cell must not answer */
	GUARD_HOOK,
	GUARD_TICK,    /* guard @ x: counts `weight` operations, None */
	GUARD_LOOP,    /* guard @ iterable: its iterator, counting */
	GUARD_WHILE,   /* guard @ x: an iterator that goes on until the limit */
	GUARD_COLLECT, /* guard @ x: a new print collector */
	GUARD_PRINTED, /* guard @ collector: its text */
	/* guard @ value: the value, or NameError for `name` when it is the hidden builtin of that
	 * name, or always with a weight */
	GUARD_MISSING,
	GUARD_KEEP, /* guard @ value: the value, kept as the cell's unless it is None */
	GUARD_KEPT, /* guard @ x: what was kept, or None */
	/*
	 * guard @ type: the type, if the interpreter itself splits the group that is being handled
	 */
	GUARD_GROUP,
	GUARD_KINDS
};

/*
 * The text that stands for a guard in the tree until policy_seal(); a new reference. name may be
 * NULL.
 */
PyObject *guard_placeholder(enum guard_kind kind, PyObject *name, uint64_t weight);
bool guard_is(PyObject *o, enum guard_kind kind);
int guards_prepare(void);

/* ---- count.c ---------------------------------------------------------------- */
int count_prepare(void);
int count_add(uint64_t weight); /* -1 with an error at the limit */
PyObject *count_loop(PyObject *iterable, uint64_t weight);
PyObject *count_while(uint64_t weight);

/* ---- value.c: the value of statements that are no expressions ----------------- */
int value_of_last_statement(PyObject *tree);
PyObject *value_keep(PyObject *value); /* a new reference to it */
PyObject *value_kept(void);            /* a new reference, None when nothing was kept */
void value_forget(void);

/* ---- audit.c, tcl.c ----------------------------------------------------------- */
int audit_install(void);

/* ---- who.c --------------------------------------------------------------------- */

/* True for code of a cell, and for code of files that the session may have written. */
bool code_is_cells(PyCodeObject *code);

/*
 * Whether a file of this (resolved) path may be a module: it lies among the system's or a
 * package's.
 */
bool path_is_code(const char *real_path);

/* True when what happens now happens for a cell, not because a module is being imported. */
bool asked_by_cell(void);

/* True when the importer itself reads a file. */
bool importer_reads(void);

/* True when a library imports for a cell by a name that is not the library's own. */
bool import_named_by_cell(PyObject *name);

/*
 * True when the text stands in the code of one of the libraries' functions that are under way for
 * the cell.
 */
bool library_mentions(PyObject *name);

/*
 * Whether the frame on top is this function (NULL: any) of this standard library or package file.
 */
bool caller_is(const char *file_end, const char *function);

/* Whether a name stands among texts, or in a tuple of them. */
bool tuple_mentions(PyObject *tuple, PyObject *name, bool deeper);

/* True during our own calls, unless they have reached code of a cell by now. */
bool trusted(void);

/* True when the Python frame on top is a cell's own code. */
bool caller_is_cell(void);

/*
 * True when a cell's own code is reading or setting an attribute, with no library's C code in
 * between.
 */
bool cell_accesses(void);

/* True when it reads the attribute to call it: x.name(…). */
bool cell_calls_method(void);

/*
 * After an import: Tcl interpreters that are made from now on have no commands that reach files,
 * programs or sockets.
 */
int tcl_guard(void);
int tcl_watch(void); /* and after every other */

/* ---- library_getattr.c, types.c: for the whole process ----------------------------------- */

/*
 * The getattr() that libraries find reads telling names only where they stand in the library's own
 * code.
 */
int library_getattr_install(void);

/*
 * After an import: the scopes of pandas' eval() and query() are the cell's, whatever level is asked
 * for.
 */
int pandas_guard(void);

/* From now on: stylesheets of lxml reach no files. */
int lxml_watch(void);

/* Classes that are made for a cell are looked at. */
int types_guard(void);

/* After an import: constructors that take names of attributes look at them. */
int constructors_guard(void);

/* Puts `checked` in the place of a type's constructor, once. module may be NULL. */
void replace_new(PyObject *module, const char *name, newfunc *original, newfunc checked);

/*
 * Puts `function` in the place of the one that a slot's wrapper (`type.__setattr__`) calls; returns
 * that one, NULL where there is none.
 */
void *replace_wrapped(PyTypeObject *type, const char *name, void *function);

/* ---- numpy_memory.c: numpy ----------------------------------------------------------------- */

/* At the beginning and after an import: what numpy would take memory from. */
int arrays_guard(void);

/* Whether the name by which objects hand memory to numpy is the one everybody knows. */
void arrays_name(bool known);

/* ---- numpy_views.c: memory that views look at ---------------------------------------------- */

/* Once, when numpy is there. -1 when this numpy is unknown. */
int views_guard(PyObject *numpy);

/*
 * Puts `guard` (stolen; NULL fails) in the place of a type's own entry; *original, where asked for,
 * is a new reference to what was there.
 */
int replace_entry(PyTypeObject *type, const char *name, PyObject *guard, PyObject **original);

/* ---- numpy_random.c: numpy.random --------------------------------------------------- */

/* At the beginning and after an import. */
int bits_guard(void);

/* Raises for a capsule, which is nothing for a cell. */
int capsule_check(PyObject *value);

/* ---- fd_methods.c: descriptors and signals in the hands of libraries ------------------------- */

/* Once: functions of os that take a descriptor refuse ours, unless os itself is allowed. */
int descriptors_guard(void);

/* After an import: event loops take no descriptors and signals of a cell's choice. */
int loops_guard(void);

/* The standard three and those of the control socket and of parked copies. */
bool descriptor_is_ours(long fd);

/* ---- check.c and its rules --------------------------------------------------- */

/*
 * Checks source text that a library wants to compile for the cell, by the profile's own rules
 * (NULL) or others of check.h.
 */
struct rules;
int check_text(PyObject *text, const struct rules *rules);
