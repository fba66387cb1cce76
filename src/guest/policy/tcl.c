/*
 * tkinter is a second interpreter: Tcl has exec, open, socket, load and file of its own, and raises
 * no audit events.
 *
 * So every Tcl interpreter is made safe (Tcl's own word for it) as soon as it exists:
 * _tkinter.create is replaced by a function that calls the real one, loads what Tk's scripts would
 * load later, and then has Tcl_MakeSafe() hide every command that reaches out. An interpreter that
 * cannot be made safe is not handed out.
 */
#include <dlfcn.h>
#include <stdint.h>

#include "guest/policy/policy_internal.h"

static PyObject *original_create;

typedef int (*make_safe)(void *interp);
typedef int (*delete_command)(void *interp, const char *name);
typedef void *(*standard_channel)(int which);
typedef void (*register_channel)(void *interp, void *channel);

static void *symbol(const char *name)
{
	static const char *const libraries[] = { "libtcl8.6.so", "libtcl8.6.so.0", "libtcl9.0.so",
		"libtcl8.7.so" };
	for (int i = 0; i < 4; i++) {
		void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
		void *found = library ? dlsym(library, name) : NULL;
		if (library)
			dlclose(library); /* _tkinter holds it */
		if (found)
			return found;
	}
	return NULL;
}

/* Dialogs, themes and bindings that Tk loads at their first use, while it still can. */
static void load_scripts(PyObject *app)
{
	PyObject *r = PyObject_CallMethod(app, "eval", "s",
		"catch {auto_load tk_messageBox}; foreach n [array names auto_index] {"
		" if {[string match *tk* $auto_index($n)]} {catch {uplevel #0 $auto_index($n)}} }");
	Py_XDECREF(r);
	PyErr_Clear();
}

/*
 * Making it safe takes the standard channels away from it; with nobody else holding them, Tcl would
 * close descriptors 0, 1 and 2.
 */
static int keep_channels(void)
{
	standard_channel channel = (standard_channel)(uintptr_t)symbol("Tcl_GetStdChannel");
	register_channel keep = (register_channel)(uintptr_t)symbol("Tcl_RegisterChannel");
	if (!channel || !keep)
		return -1;
	for (int which = 2; which <= 8; which *= 2) { /* TCL_STDIN, TCL_STDOUT, TCL_STDERR */
		void *c = channel(which);
		if (c)
			keep(NULL, c);
	}
	return 0;
}

static int hold(PyObject *app)
{
	static const char *const gone[] = { "send", "interp", "exec", "open", "socket", "load",
		"source", "glob", "file", "cd", "pwd", "exit", "unload", "fconfigure", "package",
		"auto_exec_ok", "auto_load", "auto_import", "auto_mkindex", "auto_qualify",
		"auto_reset", "tcl_findLibrary", "unknown", "dde", "registry", "zipfs", "memory",
		"tk_getOpenFile", "tk_getSaveFile", "tk_chooseDirectory", "pid",
		/* what the ensembles lead to has names of its own */
		"::tcl::info::nameofexecutable", "::tcl::info::library", "::tcl::info::hostname",
		"::tcl::info::script", "::tcl::info::loaded", "::tcl::info::sharedlibextension",
		"::tcl::chan::create", "::tcl::chan::pipe", "::tcl::chan::postevent",
		"::tcl::chan::push", "::tcl::encoding::dirs", "::tcl::encoding::system" };

	make_safe safe = (make_safe)(uintptr_t)symbol("Tcl_MakeSafe");
	delete_command drop = (delete_command)(uintptr_t)symbol("Tcl_DeleteCommand");
	policy_trust(true);
	PyObject *address = PyObject_CallMethod(app, "interpaddr", NULL);
	policy_trust(false);
	void *interp = address ? PyLong_AsVoidPtr(address) : NULL;
	Py_XDECREF(address);
	PyErr_Clear();
	if (!safe || !drop || !interp || keep_channels() < 0)
		return violation(NULL, POLICY_NATIVE, "Draw with matplotlib or PIL instead.",
			"Tcl cannot be restricted safely on this system");
	load_scripts(app);
	if (safe(interp) != 0)
		return violation(NULL, POLICY_NATIVE, "Draw with matplotlib or PIL instead.",
			"Tcl cannot be restricted safely on this system");
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		drop(interp, gone[i]);
	return 0;
}

static PyObject *real_address, *real_handler; /* of the interpreters' type */

/* The interpreter's address is for libraries that draw into its windows. */
static PyObject *interpreter_address(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (!trusted() && caller_is_cell())
		return violation_null(NULL, POLICY_NATIVE,
			"Use the public functions of the library.",
			"addresses of native code are not accessible");
	return PyObject_CallOneArg(real_address, self);
}

static PyObject *file_handler(PyObject *self, PyObject *args)
{
	/* borrowed */
	PyObject *file = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL, *words = NULL,
		 *result = NULL;
	int fd = file ? PyObject_AsFileDescriptor(file) : -1;
	if (fd >= 0 && descriptor_is_ours(fd))
		return violation_null(NULL, POLICY_FILE, "Use files below /workspace.",
			"Forbidden access to file: descriptor %d", fd);
	if (fd < 0)
		return PyErr_Occurred()
			       ? NULL
			       : PyErr_Format(PyExc_TypeError, "createfilehandler() needs a file");
	if ((words = PyTuple_New(PyTuple_GET_SIZE(args) + 1))) {
		PyTuple_SET_ITEM(words, 0, Py_NewRef(self));
		PyTuple_SET_ITEM(words, 1, PyLong_FromLong(fd)); /* what was looked at */
		for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(args); i++)
			PyTuple_SET_ITEM(words, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
		result = PyTuple_GET_ITEM(words, 1) ? PyObject_CallObject(real_handler, words)
						    : NULL;
	}

	Py_XDECREF(words);
	return result;
}

static PyMethodDef type_defs[] = {
	{ "interpaddr", interpreter_address, METH_NOARGS, NULL },
	{ "createfilehandler", file_handler, METH_VARARGS, NULL },
};

static int hold_type(PyTypeObject *type)
{
	if (real_handler)
		return 0;
	if (replace_entry(
		    type, "interpaddr", PyDescr_NewMethod(type, &type_defs[0]), &real_address) < 0)
		return -1;
	return replace_entry(
		type, "createfilehandler", PyDescr_NewMethod(type, &type_defs[1]), &real_handler);
}

static PyObject *create(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)self;
	PyObject *app = PyObject_Call(original_create, args, kwargs);
	if (app && (hold(app) < 0 || hold_type(Py_TYPE(app)) < 0))
		Py_CLEAR(app);
	return app;
}

static PyMethodDef create_def = { "create", (PyCFunction)(void (*)(void))create,
	METH_VARARGS | METH_KEYWORDS, NULL };

static PyObject *loaded(PyObject *self, PyObject *module)
{
	(void)self, (void)module;
	if (tcl_guard() < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef loaded_def = { "loaded", loaded, METH_O, NULL };

/* A library may load it in the middle of a cell: a backend of matplotlib. */
int tcl_watch(void)
{
	/* borrowed */
	PyObject *support = PyDict_GetItemString(PyImport_GetModuleDict(), "_glovebox");
	PyObject *action = PyCFunction_New(&loaded_def, NULL);
	PyObject *r = support && action
			      ? PyObject_CallMethod(support, "_on_import", "sO", "_tkinter", action)
			      : NULL;
	Py_XDECREF(action);
	Py_XDECREF(r);
	return r ? 0 : -1;
}

int tcl_guard(void)
{
	/* borrowed */
	PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "_tkinter");
	if (!module || original_create)
		return 0;
	PyObject *function = PyCFunction_New(&create_def, NULL);
	original_create = PyObject_GetAttrString(module, "create");
	int r = function && original_create ? PyObject_SetAttrString(module, "create", function)
					    : -1;
	Py_XDECREF(function);
	return r;
}
