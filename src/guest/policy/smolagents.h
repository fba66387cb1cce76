/*
 * Declarations shared by smolagents.c (checks) and smolagents_guards.c (guards, counting); private
 * to them.
 */
#pragma once

#include "guest/policy/check.h"

bool name_among(PyObject *name, const char *const *list);
bool node_calls(PyObject *node, const char *function); /* a call of the function of this name */

/* A builtin that is never given, and no variable. */
bool smolagents_refuses(struct walk *w, PyObject *name);

/* After the parts of an attribute or a call: frames and code objects; x.__name__(…). */
int smolagents_check_inspecting(struct walk *w, PyObject *node);
int smolagents_check_called(struct walk *w, PyObject *node);

int smolagents_leave(struct walk *w, enum node_kind kind, PyObject *node, PyObject **ret);
