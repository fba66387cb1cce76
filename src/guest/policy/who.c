/* Who asks: whose code is on top of the stack, and on whose behalf. */
#include <string.h>

#include "guest/policy/policy_internal.h"

#include <opcode.h>

/* ---- whose code it is ------------------------------------------------------------------ */

/* Where code of the system and of packages lies; nothing a session can write to. */
static const char *const code_places[] = { "/usr/", "/packages/", "/opt/glovebox/", NULL };

static bool below_code_places(const char *path)
{
	for (const char *const *place = code_places; *place; place++)
		if (!strncmp(path, *place, strlen(*place)))
			return true;
	return false;
}

/*
 * Cells have names of their own ("<cell 3>"). Other names in angle brackets are those of code that
 * came with the interpreter, or that a library made from a text (on_compile() says which may). A
 * file that does not lie among the system's or a package's is one that the session may have
 * written, so its code is a cell's, however it came to run.
 */
static bool file_is_cells(const char *file)
{
	if (!file || !strncmp(file, "<cell ", 6))
		return true;
	return *file != '<' && (!below_code_places(file) || strstr(file, "/../"));
}

bool code_is_cells(PyCodeObject *code)
{
	bool yes = file_is_cells(PyUnicode_AsUTF8(code->co_filename));
	PyErr_Clear();
	return yes;
}

bool path_is_code(const char *real_path)
{
	return below_code_places(real_path);
}

static bool is_importer(PyCodeObject *code)
{
	const char *file = PyUnicode_AsUTF8(code->co_filename);
	PyErr_Clear();
	return file &&
	       (!strncmp(file, "<frozen importlib", 17) || !strncmp(file, "<frozen zipimport", 17));
}

/* ---- who asks ---------------------------------------------------------------------- */

static PyObject *top_code(void)
{
	PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
	return frame ? (PyObject *)PyFrame_GetCode(frame) : NULL;
}

bool caller_is_cell(void)
{
	PyObject *code = top_code();
	bool yes = !code || code_is_cells((PyCodeObject *)code);
	Py_XDECREF(code);
	return yes;
}

/*
 * Opcodes that read or set an attribute for the code itself; whatever else is under way calls
 * somebody else's.
 */
static bool is_access(unsigned char opcode)
{
	switch (opcode) {
	case LOAD_ATTR:
#ifdef LOAD_METHOD
	case LOAD_METHOD:
#endif
	case STORE_ATTR:
	case DELETE_ATTR:
	case IMPORT_FROM:
	case MATCH_CLASS:
		return true;
	default:
		return false;
	}
}

bool cell_accesses(void)
{
	PyFrameObject *frame = caller_is_cell() ? PyEval_GetFrame() : NULL; /* borrowed */
	PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
	PyObject *bytes = code ? PyCode_GetCode(code) : NULL;
	int at = frame ? PyFrame_GetLasti(frame) : -1;
	bool yes = frame && (!bytes || at < 0 || at >= PyBytes_GET_SIZE(bytes) ||
				    is_access((unsigned char)PyBytes_AS_STRING(bytes)[at]));
	Py_XDECREF(bytes);
	Py_XDECREF(code);
	return yes;
}

bool cell_calls_method(void)
{
	PyFrameObject *frame = caller_is_cell() ? PyEval_GetFrame() : NULL; /* borrowed */
	PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
	PyObject *bytes = code ? PyCode_GetCode(code) : NULL;
	int at = frame ? PyFrame_GetLasti(frame) : -1;
	const unsigned char *op = bytes && at >= 0 && at + 1 < PyBytes_GET_SIZE(bytes)
					  ? (unsigned char *)PyBytes_AS_STRING(bytes) + at
					  : NULL;
#ifdef LOAD_METHOD
	bool yes = op && op[0] == LOAD_METHOD;
#else
	bool yes = op && op[0] == LOAD_ATTR && (op[1] & 1);
#endif
	PyErr_Clear();
	Py_XDECREF(bytes);
	Py_XDECREF(code);
	return yes;
}

bool trusted(void)
{
	if (!policy.trust || policy.trust > TRUST_DEPTH)
		return false;
	PyFrameObject *f = PyEval_GetFrame();
	bool cell = false;
	Py_XINCREF(f);
	while (f && f != policy.trust_bases[policy.trust - 1] && !cell) {
		PyCodeObject *code = PyFrame_GetCode(f);
		cell = code_is_cells(code);
		Py_DECREF(code);
		PyFrameObject *back = PyFrame_GetBack(f);
		Py_DECREF(f);
		f = back;
	}

	Py_XDECREF(f);
	return !cell;
}

/* Whether the frame on top is this function of this standard library or package file. */
bool caller_is(const char *file_end, const char *function)
{
	PyObject *code = top_code();
	bool yes = false;
	if (code) {
		const char *file = PyUnicode_AsUTF8(((PyCodeObject *)code)->co_filename);
		size_t n = file ? strlen(file) : 0, len = strlen(file_end);
		yes = n >= len && !strcmp(file + n - len, file_end) && file[0] == '/' &&
		      !strncmp(file, "/usr/", 5) &&
		      (!function || PyUnicode_CompareWithASCIIString(
					    ((PyCodeObject *)code)->co_name, function) == 0);
	}
	PyErr_Clear();
	Py_XDECREF(code);
	return yes;
}

/* The next frame below; gives the reference of this one back. */
static PyFrameObject *step_back(PyFrameObject *f)
{
	PyFrameObject *back = PyFrame_GetBack(f);
	Py_DECREF(f);
	return back;
}

/* From this frame (stolen) down: a cell comes before the importer. */
static bool asked_from(PyFrameObject *f)
{
	bool cell = true;
	for (; f; f = step_back(f)) {
		PyCodeObject *code = PyFrame_GetCode(f);
		bool importer = is_importer(code), own = code_is_cells(code);
		Py_DECREF(code);
		if (!importer && !own)
			continue;
		cell = !importer;
		Py_DECREF(f);
		break;
	}
	return cell;
}

/*
 * A module that is imported does for itself what it needs; what a cell asks for does not have the
 * importer in between.
 */
bool asked_by_cell(void)
{
	PyFrameObject *f = PyEval_GetFrame();
	Py_XINCREF(f);
	return asked_from(f);
}

bool importer_reads(void)
{
	PyObject *code = top_code();
	bool yes = code && is_importer((PyCodeObject *)code);
	Py_XDECREF(code);
	return yes;
}

/* ---- imports by libraries ------------------------------------------------------------ */

/* The importer itself, and the functions that are a door to it. */
static bool is_import_door(PyCodeObject *code)
{
	const char *file = PyUnicode_AsUTF8(code->co_filename);
	PyErr_Clear();
	return is_importer(code) ||
	       (file && !strncmp(file, "/usr/", 5) && strstr(file, "/importlib/__init__.py"));
}

/*
 * Whether the module of the frame is of the same package as `name`, which does not say what
 * packages run as programs.
 */
static bool own_package(PyFrameObject *f, const char *name)
{
	/* borrowed */
	PyObject *globals = PyFrame_GetGlobals(f),
		 *own = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
	const char *text = own && PyUnicode_CheckExact(own) ? PyUnicode_AsUTF8(own) : NULL;
	size_t top = text ? strcspn(text, ".") : 0;
	bool yes = top && !strncmp(text, name, top) && (name[top] == '.' || !name[top]) &&
		   !strstr(name, ".__main__") && !import_leads_out(name);
	PyErr_Clear();
	Py_XDECREF(globals);
	return yes;
}

/* "a" and "a.b" stand in `import a.b.c`. */
static bool leads_to(PyObject *texts, const char *name)
{
	size_t len = strlen(name);
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(texts); i++) {
		PyObject *item = PyTuple_GET_ITEM(texts, i);
		const char *text = PyUnicode_CheckExact(item) ? PyUnicode_AsUTF8(item) : NULL;
		if (text && !strncmp(text, name, len) && text[len] == '.')
			return true;
	}
	return false;
}

/* `from a.b import c` has "a.b" among its names and "c" in a tuple. */
static bool is_taken_from(PyCodeObject *code, const char *name)
{
	const char *dot = strrchr(name, '.');
	PyObject *package = dot ? PyUnicode_DecodeUTF8(name, dot - name, NULL) : NULL,
		 *leaf = dot ? PyUnicode_FromString(dot + 1) : NULL;
	bool yes = package && leaf && tuple_mentions(code->co_names, package, false) &&
		   tuple_mentions(code->co_consts, leaf, true);
	Py_XDECREF(package);
	Py_XDECREF(leaf);
	return yes;
}

static bool names_itself(PyFrameObject *f, PyObject *name)
{
	PyCodeObject *code = PyFrame_GetCode(f);
	const char *text = PyUnicode_AsUTF8(name);
	const char *file = PyUnicode_AsUTF8(code->co_filename);

	/*
	 * pandas' compiled code calls this function without a frame of its own; cells do not get
	 * hold of it.
	 */
	bool optional = file && !code_is_cells(code) && strstr(file, "/pandas/compat/_optional.py");
	bool yes = text &&
		   (optional || tuple_mentions(code->co_consts, name, true) ||
			   tuple_mentions(code->co_names, name, false) ||
			   leads_to(code->co_names, text) || leads_to(code->co_consts, text) ||
			   is_taken_from(code, text) || own_package(f, text));
	Py_DECREF(code);
	return yes;
}

/* A text of the functions of libraries that are under way for the cell. */
bool library_mentions(PyObject *name)
{
	PyFrameObject *f = PyEval_GetFrame();
	bool cell = false, yes = false;
	Py_XINCREF(f);
	for (; f && !cell && !yes; f = step_back(f)) {
		PyCodeObject *code = PyFrame_GetCode(f);
		cell = code_is_cells(code);
		yes = !cell && tuple_mentions(code->co_consts, name, true);
		Py_DECREF(code);
	}
	Py_XDECREF(f);
	return yes;
}

/*
 * An import statement or a call of import_module() in a library: its name stands in the code of one
 * of the functions that are under way for the cell, or is of the same package. Any other name came
 * from the cell.
 */
bool import_named_by_cell(PyObject *name)
{
	if (!PyUnicode_CheckExact(name))
		return true;
	PyFrameObject *f = PyEval_GetFrame();
	bool first = true, own = false, cell = false;
	Py_XINCREF(f);
	while (f && !own && !cell) {
		PyCodeObject *code = PyFrame_GetCode(f);
		bool door = first && is_import_door(code), importer = is_importer(code);
		cell = code_is_cells(code);
		Py_DECREF(code);
		if (!door) {
			/* cells' own statements were checked before */
			own = importer || (cell && first) || (!cell && names_itself(f, name));
			first = false;
		}
		f = step_back(f);
	}

	Py_XDECREF(f);
	PyErr_Clear();
	return !own;
}
