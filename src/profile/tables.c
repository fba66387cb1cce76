#include "profile/profile.h"

#include <stddef.h>
#include <string.h>

/* In the order of enum policy_rule. */
const char *const policy_rule_codes[POLICY_RULES] = { "policy_import", "policy_module",
	"policy_function", "policy_name", "policy_attribute", "policy_statement", "policy_tool",
	"policy_format", "policy_operations", "policy_code", "policy_file", "policy_process",
	"policy_network", "policy_native" };

static const char *const everything[] = { "*", NULL };

/*
 * smolagents' base modules, and behind them what decorators, data classes, enumerations, coroutines
 * and annotations need: real Python without them is not real.
 */
static const char *const smolagents_imports[] = { "collections", "datetime", "itertools", "math",
	"queue", "random", "re", "stat", "statistics", "time", "unicodedata", "abc", "asyncio",
	"collections.abc", "contextlib", "dataclasses", "enum", "functools", "typing", NULL };

static const char *const restricted_imports[] = { "math", "random", "string", "abc", "bisect",
	"calendar", "cmath", "collections", "collections.abc", "copy", "dataclasses", "datetime",
	"decimal", "enum", "fractions", "functools", "heapq", "itertools", "json", "numbers",
	"operator", "re", "statistics", "textwrap", "time", "typing", "unicodedata", "contextlib",
	NULL };

static const char *const tinyagent_imports[] = { "collections", "datetime", "itertools", "math",
	"random", "re", "statistics", "string", "json", "functools", "operator", "decimal",
	"fractions", "time", NULL };

#define EXCEPTIONS                                                                                 \
	"ArithmeticError", "AssertionError", "AttributeError", "BaseException", "BufferError",     \
		"BytesWarning", "DeprecationWarning", "EOFError", "EnvironmentError", "Exception", \
		"FloatingPointError", "FutureWarning", "GeneratorExit", "IOError", "ImportError",  \
		"ImportWarning", "IndentationError", "IndexError", "KeyError",                     \
		"KeyboardInterrupt", "LookupError", "MemoryError", "NameError",                    \
		"NotImplementedError", "OSError", "OverflowError", "PendingDeprecationWarning",    \
		"ReferenceError", "RuntimeError", "RuntimeWarning", "StopIteration",               \
		"SyntaxError", "SyntaxWarning", "SystemError", "SystemExit", "TabError",           \
		"TypeError", "UnboundLocalError", "UnicodeDecodeError", "UnicodeEncodeError",      \
		"UnicodeError", "UnicodeTranslateError", "UnicodeWarning", "UserWarning",          \
		"ValueError", "Warning", "ZeroDivisionError"

/* Beyond RestrictedPython's own: what newer Pythons have. */
#define MORE_EXCEPTIONS                                                                         \
	"BaseExceptionGroup", "BlockingIOError", "BrokenPipeError", "ChildProcessError",        \
		"ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError",          \
		"ConnectionResetError", "EncodingWarning", "ExceptionGroup", "FileExistsError", \
		"FileNotFoundError", "InterruptedError", "IsADirectoryError",                   \
		"ModuleNotFoundError", "NotADirectoryError", "PermissionError",                 \
		"ProcessLookupError", "PythonFinalizationError", "RecursionError",              \
		"ResourceWarning", "StopAsyncIteration", "TimeoutError"

/* What smolagents gives under these names, then what it lacks and Python cannot do without. */
static const char *const smolagents_builtins[] = { "print", "isinstance", "range", "float", "int",
	"bool", "str", "set", "list", "dict", "tuple", "round", "pow", "len", "sum", "max", "min",
	"abs", "enumerate", "zip", "reversed", "sorted", "all", "any", "map", "filter", "ord",
	"chr", "next", "iter", "divmod", "callable", "getattr", "hasattr", "setattr", "issubclass",
	"type", "complex", "None", "True", "False", "Ellipsis", "NotImplemented", "__build_class__",
	"__debug__", "aiter", "anext", "ascii", "bin", "bytearray", "bytes", "classmethod",
	"delattr", "format", "frozenset", "hash", "hex", "id", "memoryview", "object", "oct",
	"property", "repr", "slice", "staticmethod", "super", EXCEPTIONS, MORE_EXCEPTIONS, NULL };

/* RestrictedPython's safe_builtins, then what it leaves to its host. */
static const char *const restricted_builtins[] = { "__build_class__", "None", "False", "True",
	"Ellipsis", "abs", "bool", "bytes", "callable", "chr", "complex", "divmod", "float", "hash",
	"hex", "id", "int", "isinstance", "issubclass", "len", "oct", "ord", "pow", "range", "repr",
	"round", "slice", "sorted", "str", "tuple", "zip", "setattr", "delattr", EXCEPTIONS,
	MORE_EXCEPTIONS, "NotImplemented", "__debug__", "all", "any", "ascii", "bin", "bytearray",
	"classmethod", "dict", "enumerate", "filter", "format", "frozenset", "getattr", "hasattr",
	"iter", "list", "map", "max", "min", "next", "object", "print", "property", "reversed",
	"set", "staticmethod", "sum", "super", "type", NULL };

static const char *const tinyagent_builtins[] = { "abs", "all", "any", "bool", "dict", "enumerate",
	"float", "int", "len", "list", "max", "min", "print", "range", "round", "sorted", "str",
	"sum", "tuple", "type", "zip", NULL };

static const char *const tinyagent_builtins_later[] = { "abs", "all", "any", "bool", "callable",
	"chr", "dict", "dir", "divmod", "enumerate", "filter", "float", "format", "frozenset",
	"getattr", "hasattr", "hash", "id", "int", "isinstance", "issubclass", "iter", "len",
	"list", "map", "max", "min", "next", "oct", "ord", "pow", "print", "range", "repr",
	"reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "type", "vars", "zip",
	NULL };

static const char *const nothing_refused[] = { NULL };
static const char *const smolagents_refuses[] = {
	"imports beyond the list, and modules reached through other modules",
	"eval, exec, compile, globals, locals, __import__, open, input, vars, dir",
	"attributes and calls with two underscores",
	"frames, code objects, str.format fields that walk to refused attributes",
	"assigning to the name of a tool",
	"more than 10,000,000 operations, a while loop of more than 1,000,000 rounds",
	"files outside /workspace and /tmp, processes, sockets, native libraries", NULL
};
static const char *const restricted_refuses[] = {
	"names and attributes that begin with an underscore",
	"async, await, nonlocal, except*, type parameters, import *, metaclass=",
	"eval, exec, compile, open, input, globals, locals, vars, dir",
	"augmented assignment to attributes and items",
	"imports beyond the list, and modules reached through other modules",
	"frames, code objects, str.format fields that walk to refused attributes",
	"files outside /workspace and /tmp, processes, sockets, native libraries", NULL
};
static const char *const permissive_refuses[] = {
	"names and attributes that begin with an underscore, but for __name__, methods of classes and super().__init__",
	"async, await, except*, type parameters, import *, metaclass=",
	"eval, exec, compile, open, input, globals, locals, vars, dir",
	"imports beyond the list, and modules reached through other modules",
	"frames, code objects, str.format fields that walk to refused attributes",
	"files outside /workspace and /tmp, processes, sockets, native libraries", NULL
};
static const char *const tinyagent_refuses[] = { "imports beyond the list",
	"every builtin beyond the list, classes and exceptions among them",
	"attributes with two underscores, frames, code objects",
	"files outside /workspace and /tmp, processes, sockets, native libraries", NULL };

const struct profile_table profile_tables[PROFILE_COUNT + 1] = {
	{ .name = "python",
		.base = PROFILE_PYTHON,
		.stands_for = "real Python in the jail",
		.summary =
			"No restrictions other than those of the jail. Give `imports` to allow only some modules.",
		.imports = everything,
		.refuses = nothing_refused },
	{ .name = "smolagents",
		.base = PROFILE_SMOLAGENTS,
		.stands_for = "smolagents' LocalPythonExecutor",
		.summary =
			"Its imports, refusals, texts and limits, with CPython's semantics. final_answer() ends the cell.",
		.imports = smolagents_imports,
		.builtins = smolagents_builtins,
		.refuses = smolagents_refuses,
		.max_operations = 10000000,
		.max_while_iterations = 1000000,
		.print_chars = 50000,
		.final_answer_stops = true },
	{ .name = "restricted",
		.base = PROFILE_RESTRICTED,
		.stands_for = "RestrictedPython 8",
		.summary =
			"Its refused names, attributes, statements and texts, with annotations and match allowed; loops run at full speed.",
		.imports = restricted_imports,
		.builtins = restricted_builtins,
		.refuses = restricted_refuses },
	{ .name = "restrictedpython",
		.base = PROFILE_RESTRICTED,
		.stands_for = "coding_env's RestrictedPythonExecutor",
		.summary =
			"As restricted, with what ordinary programs need: x.a += 1, x[i] += 1, __name__, nonlocal, methods such as __repr__.",
		.imports = restricted_imports,
		.builtins = restricted_builtins,
		.refuses = permissive_refuses,
		.permissive = true },
	{ .name = "tinyagent",
		.base = PROFILE_TINYAGENT,
		.stands_for = "tinyAgent 0.73.3's PythonExecutor",
		.summary =
			"tinyAgent's 21 builtins; no variables are kept between cells; code continues after final_answer().",
		.imports = tinyagent_imports,
		.builtins = tinyagent_builtins,
		.refuses = tinyagent_refuses,
		.fresh_namespace = true,
		.top_imports = true },
	{ .name = "tinyagent-0.73.5",
		.base = PROFILE_TINYAGENT,
		.stands_for = "tinyAgent 0.73.5's LocalExecutor",
		.summary = "As tinyagent, with its 45 builtins and variables kept between cells.",
		.imports = tinyagent_imports,
		.builtins = tinyagent_builtins_later,
		.refuses = tinyagent_refuses,
		.top_imports = true },
	{ .name = NULL },
};

const struct profile_table *profile_find(const char *name)
{
	static const char *const aliases[][2] = { { "RestrictedPython", "restrictedpython" },
		{ "local", "smolagents" }, { "tinyAgent", "tinyagent" }, { "cpython", "python" },
		{ "none", "python" } };
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (!strcmp(name, aliases[i][0]))
			name = aliases[i][1];
	for (const struct profile_table *t = profile_tables; t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}
