/* The rules of a session's profile, and the order in which they take hold. */
#include <stdlib.h>
#include <string.h>

#include "guest/policy/nodes.h"
#include "guest/policy/policy_internal.h"
#include "guest/run/final_answer.h"
#include "guest/run/tool_calls.h"

struct policy policy;

static int add_name(PyObject **set_or_list, const char *value, size_t len)
{
	PyObject *name = PyUnicode_DecodeUTF8(value, (Py_ssize_t)len, "replace");
	int r = name ? 0 : -1;
	if (r == 0)
		r = PyList_CheckExact(*set_or_list) ? PyList_Append(*set_or_list, name)
						    : PySet_Add(*set_or_list, name);
	Py_XDECREF(name);
	return r;
}

static void set_base(const char *name)
{
	const struct profile_table *t = profile_find(name);
	/* a guest that does not know it holds it tight */
	policy.table = t ? t : &profile_tables[1];
	policy.base = policy.table->base;
	policy.active = true;
	policy.languages = policy.base != PROFILE_PYTHON;
	policy.max_operations = policy.table->max_operations;
	policy.max_while = policy.table->max_while_iterations;
	policy.print_chars = policy.table->print_chars;
	policy.fresh = policy.table->fresh_namespace;
	final_answer_stops(policy.table->final_answer_stops);
}

void policy_rule(const char *text, size_t len)
{
	char rule[512];
	const char *equals = memchr(text, '=', len);

	if (!equals || len >= sizeof(rule))
		return;
	memcpy(rule, text, len);
	rule[len] = '\0';
	size_t key = (size_t)(equals - text);
	const char *value = rule + key + 1;
	uint64_t n = strtoull(value, NULL, 10);
	rule[key] = '\0';
	if (!strcmp(rule, "base"))
		set_base(value);
	else if (!strcmp(rule, "import"))
		add_name(&policy.imports, value, len - key - 1);
	else if (!strcmp(rule, "builtin"))
		add_name(&policy.more_builtins, value, len - key - 1);
	else if (!strcmp(rule, "refuse"))
		add_name(&policy.refused, value, len - key - 1);
	else if (!strcmp(rule, "max_operations"))
		policy.max_operations = n;
	else if (!strcmp(rule, "max_while_iterations"))
		policy.max_while = n;
	else if (!strcmp(rule, "print_chars"))
		policy.print_chars = n;
	else if (!strcmp(rule, "fresh_namespace"))
		policy.fresh = n != 0;
	else if (!strcmp(rule, "final_answer_stops"))
		final_answer_stops(n != 0);
	if (!strcmp(rule, "import") && !strcmp(value, "*"))
		policy.all_imports = true;
	PyErr_Clear();
}

/* A module that the code could have written must not take the place of one that is allowed. */
static int forget_working_directory(void)
{
	PyObject *path = PySys_GetObject("path"); /* borrowed */
	if (!path || !PyList_Check(path) || PyList_GET_SIZE(path) == 0)
		return 0;
	PyObject *first = PyList_GET_ITEM(path, 0);
	if (PyUnicode_Check(first) && PyUnicode_GET_LENGTH(first) == 0)
		return PyList_SetSlice(path, 0, 1, NULL);
	return 0;
}

static int set_globals(void)
{
	PyDict_Clear(policy.globals);
	PyObject *name = PyUnicode_FromString("__main__");
	int r = name ? PyDict_SetItemString(policy.globals, "__name__", name) : -1;
	Py_XDECREF(name);
	if (r == 0)
		r = PyDict_SetItemString(policy.globals, "__builtins__", policy.builtins);
	return r == 0 ? tools_put_into(policy.globals) : -1;
}

int policy_apply(void)
{
	if (!policy.active || policy.builtins)
		return 0; /* SETUP may come again, for other things */
	if (builtins_make() < 0 || set_globals() < 0)
		return -1;
	if (!policy.languages)
		return 0;
	if (!policy.all_imports && forget_working_directory() < 0)
		return -1;
	if (format_guard_install() < 0 || library_getattr_install() < 0 || types_guard() < 0 ||
		descriptors_guard() < 0 || loops_guard() < 0 || imports_watch() < 0 ||
		audit_install() < 0)
		return -1;
	return tcl_watch() < 0 || lxml_watch() < 0 || tcl_guard() < 0 || pandas_guard() < 0 ||
			       arrays_guard() < 0 || bits_guard() < 0 || modules_shut() < 0
		       ? -1
		       : 0;
}

bool policy_active(void)
{
	return policy.active;
}

const char *policy_profile(void)
{
	static const char *const names[] = { [PROFILE_PYTHON] = "python",
		[PROFILE_SMOLAGENTS] = "smolagents",
		[PROFILE_RESTRICTED] = "restricted",
		[PROFILE_TINYAGENT] = "tinyagent" };
	return names[policy.base];
}

bool policy_refused(void)
{
	return policy.was_refused;
}

void policy_trust(bool on)
{
	if (on && policy.trust++ < TRUST_DEPTH)
		policy.trust_bases[policy.trust - 1] = PyEval_GetFrame();
	else if (!on)
		policy.trust--;
}

void policy_begin(void)
{
	policy.was_refused = false;
	policy.operations = 0;
	if (policy.called)
		PySet_Clear(policy.called);
	if (policy.active && policy.fresh && set_globals() < 0)
		PyErr_Clear();
	print_begin();
	PyErr_Clear();
}

void policy_end(void)
{
	print_end();
	value_forget();
}

int policy_prepare(PyObject *globals)
{
	policy.globals = Py_NewRef(globals);
	policy.imports = PyList_New(0);
	policy.more_builtins = PySet_New(NULL);
	policy.refused = PySet_New(NULL);
	policy.called = PySet_New(NULL);
	if (!policy.imports || !policy.more_builtins || !policy.refused || !policy.called)
		return -1;
	return nodes_prepare() < 0 || violation_prepare() < 0 || attributes_prepare() < 0 ||
			       guards_prepare() < 0 || count_prepare() < 0 || modules_prepare() < 0
		       ? -1
		       : 0;
}
