/*
 * The second line: an audit hook (PEP 578), which no Python code can remove.
 *
 * The first line decides what cells can name; this one decides what the libraries they may use can
 * be made to do. It knows nothing of attribute walks (there are no events for them), but files,
 * programs, sockets, native libraries, frames and text that becomes code all pass here. Events that
 * libraries raise for themselves are let through by who asks: the Python frame on top is a cell's
 * own code, or a library's.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/policy/check.h"

/* ---- files --------------------------------------------------------------------------- */

/* Read-only places that libraries need: code, fonts, time zones, certificates, their own data. */
static const char *const readable[] = { "/usr/lib/", "/usr/share/", "/usr/local/lib/",
	"/etc/matplotlibrc", "/etc/fonts/", "/etc/localtime", "/etc/mime.types",
	"/var/cache/fontconfig/", "/opt/glovebox/", "/packages/", "/dev/urandom", NULL };
static const char *const own[] = { "/workspace/", "/tmp/", "/dev/shm/", "/dev/null", NULL };

static bool below(const char *path, const char *const *list)
{
	for (; *list; list++) {
		size_t n = strlen(*list);
		if (!strncmp(path, *list, n) ||
			(n > 1 && strlen(path) == n - 1 && !strncmp(path, *list, n - 1)))
			return true;
	}
	return false;
}

/* The path without links and dots; what does not exist yet by its directory. */
static bool resolve(const char *path, char out[PATH_MAX])
{
	char copy[PATH_MAX], *slash;
	if (realpath(path, out))
		return true;
	if (strlen(path) >= sizeof(copy) || errno != ENOENT)
		return false;
	memcpy(copy, path, strlen(path) + 1);
	while ((slash = strrchr(copy, '/'))) {
		*slash = '\0';
		if (strstr(slash + 1, ".."))
			return false;
		if (realpath(*copy ? copy : "/", out)) {
			size_t n = strlen(out);
			if (n + 2 >= PATH_MAX)
				return false;
			out[n] = '/'; /* the rest does not exist: only its place matters */
			out[n + 1] = '\0';
			return true;
		}
	}

	size_t n = getcwd(out, PATH_MAX - 2) && !strstr(path, "..") ? strlen(out) : 0;
	out[n] = '/'; /* a new name in the working directory */
	out[n + 1] = '\0';
	return n > 0;
}

static int refuse_path(PyObject *path)
{
	return violation(policy.base == PROFILE_SMOLAGENTS ? NULL : PyExc_PermissionError,
		POLICY_FILE, "Use files below /workspace.", "Forbidden access to file: %R", path);
}

/* A path object of pathlib's own making. */
static bool is_library_path(PyObject *path)
{
	/* borrowed */
	PyObject *pathlib = PyDict_GetItemString(PyImport_GetModuleDict(), "pathlib");
	/* borrowed */
	PyObject *type = pathlib ? PyDict_GetItemString(PyModule_GetDict(pathlib), "PosixPath")
				 : NULL;
	return type && Py_IS_TYPE(path, (PyTypeObject *)type);
}

static int check_path(PyObject *path, bool writes)
{
	char real[PATH_MAX];
	PyObject *bytes = NULL;

	if (path == Py_None || !path)
		return 0; /* the working directory */
	if (PyLong_Check(path)) {
		long fd = PyLong_AsLong(path);
		PyErr_Clear();
		/* a file that is open already */
		return descriptor_is_ours(fd) ? refuse_path(path) : 0;
	}

	/* Code of a cell could answer differently when it is asked again. */
	if (!PyUnicode_CheckExact(path) && !PyBytes_CheckExact(path) && !is_library_path(path))
		return refuse_path(path);
	if (!PyUnicode_FSConverter(path, &bytes)) {
		PyErr_Clear();
		return refuse_path(path);
	}

	bool ok = resolve(PyBytes_AS_STRING(bytes), real) &&
		  (below(real, own) || (!writes && below(real, readable)));
	Py_DECREF(bytes);
	return ok ? 0 : refuse_path(path);
}

static PyObject *argument(PyObject *args, Py_ssize_t i)
{
	return args && PyTuple_Check(args) && PyTuple_GET_SIZE(args) > i ? PyTuple_GET_ITEM(args, i)
									 : NULL;
}

/* open(path, mode, flags): C code gives flags, io.open both. */
static int on_open(PyObject *args)
{
	PyObject *mode = argument(args, 1), *flags = argument(args, 2);
	bool writes = false;
	if (flags && PyLong_Check(flags)) {
		long bits = PyLong_AsLong(flags);
		writes = (bits & 3) != 0 || bits & 0100; /* O_WRONLY, O_RDWR, O_CREAT */
		PyErr_Clear();
	}
	if (mode && PyUnicode_Check(mode)) {
		const char *text = PyUnicode_AsUTF8(mode);
		writes = writes || !text || strpbrk(text, "wax+");
	}
	return check_path(argument(args, 0), writes);
}

static int on_read_path(PyObject *args)
{
	return check_path(argument(args, 0), false);
}

static int on_write_path(PyObject *args)
{
	return check_path(argument(args, 0), true);
}

/* mmap(fileno, …): memory of its own, or a file that was opened before. */
static int on_map(PyObject *args)
{
	PyObject *fileno = argument(args, 0);
	long fd = fileno && PyLong_Check(fileno) ? PyLong_AsLong(fileno) : 0;
	PyErr_Clear();
	return fd == -1 || !descriptor_is_ours(fd) ? 0 : refuse_path(fileno ? fileno : Py_None);
}

static int on_two_paths(PyObject *args)
{
	return check_path(argument(args, 0), true) < 0 ? -1 : check_path(argument(args, 1), true);
}

/* ---- code --------------------------------------------------------------------------------- */

/* pandas marks local variables; the rest of the name is the code's own. */
static PyObject *without_marks(PyObject *text)
{
	PyObject *mark = PyUnicode_FromString("__pd_eval_local_"),
		 *empty = PyUnicode_FromString("");
	PyObject *plain = mark && empty ? PyUnicode_Replace(text, mark, empty, -1) : NULL;
	Py_XDECREF(mark);
	Py_XDECREF(empty);
	return plain;
}

static int refuse_code(void)
{
	return violation(policy.base == PROFILE_SMOLAGENTS ? NULL : PyExc_PermissionError,
		POLICY_CODE, "Write the code itself instead of a text.",
		"Forbidden access to function: text cannot be run as code here");
}

static bool mentions(PyObject *text, const char *word)
{
	const char *s = PyUnicode_AsUTF8(text);
	return !s || strstr(s, word) != NULL;
}

/* eval, exec or compile are among the builtins that an own profile adds. */
static bool runs_text(void)
{
	static const char *const names[] = { "eval", "exec", "compile" };
	bool yes = false;
	for (int i = 0; !yes && i < 3; i++) {
		PyObject *name = PyUnicode_FromString(names[i]);
		yes = name && PySet_Contains(policy.more_builtins, name) == 1;
		Py_XDECREF(name);
	}
	PyErr_Clear();
	return yes;
}

/*
 * Compiling text as code is allowed only in the standard library and in a few packages that are
 * designed to do it.
 */
static int on_compile(PyObject *args)
{
	PyObject *source = argument(args, 0);
	PyObject *text = source && PyBytes_Check(source)
				 ? PyUnicode_DecodeUTF8(PyBytes_AS_STRING(source),
					   PyBytes_GET_SIZE(source), "replace")
			 : source && PyUnicode_Check(source) ? Py_NewRef(source)
							     : NULL;
	int r;

	if (runs_text() && caller_is_cell()) {
		r = 0; /* the session's profile gives it */
	} else if (!text && !caller_is_cell()) {
		r = 0; /* a tree that was checked as text */
	} else if (!text) {
		r = refuse_code();
	} else if (caller_is("/dataclasses.py", NULL)) {
		r = check_text(text, &dataclass_rules);
	} else if (caller_is("/collections/__init__.py", "namedtuple")) {
		/* field names are checked to be identifiers there */
		r = mentions(text, "__array_") ? refuse_code() : 0;
	} else if (caller_is("/typing.py", NULL) || caller_is("/annotationlib.py", NULL)) {
		r = check_text(text, &type_rules);
	} else if (caller_is("/ast.py", "parse") ||
		   caller_is("/sympy/parsing/sympy_parser.py", NULL)) {
		PyObject *plain = without_marks(text);
		r = plain ? check_text(plain, NULL) : -1;
		Py_XDECREF(plain);
	} else {
		r = refuse_code();
	}

	Py_XDECREF(text);
	return r;
}

/* Code objects that run: modules' own, and what on_compile() let through. */
static int on_exec(PyObject *args)
{
	(void)args;
	return caller_is_cell() && !runs_text() ? refuse_code() : 0;
}

/* ---- the rest ------------------------------------------------------------------------------ */

/* A module that was allowed by its own name is there to be used. */
static bool granted(const char *const *modules)
{
	bool yes = policy.all_imports;
	for (; !yes && *modules; modules++) {
		PyObject *name = PyUnicode_FromString(*modules);
		yes = name && import_allowed(name);
		Py_XDECREF(name);
	}
	PyErr_Clear();
	return yes;
}

static int on_process(PyObject *args)
{
	(void)args;
	if (granted((const char *const[]){ "os", "posix", "subprocess", "multiprocessing",
		    "concurrent.futures", "asyncio.subprocess", "pty", NULL }))
		return 0;
	return violation(policy.base == PROFILE_SMOLAGENTS ? NULL : PyExc_PermissionError,
		POLICY_PROCESS, "Do it in Python.",
		"Forbidden access to function: programs cannot be started here");
}

static int on_network(PyObject *args)
{
	(void)args;
	if (granted((const char *const[]){ "socket", "urllib.request", "http.client", "requests",
		    "httpx", "aiohttp", "urllib3", "smtplib", "ftplib", NULL }))
		return 0;
	return violation(policy.base == PROFILE_SMOLAGENTS ? NULL : PyExc_PermissionError,
		POLICY_NETWORK, "Put the data that the code needs into files of the session.",
		"Forbidden access to module: socket");
}

/* An event loop makes itself a pair of local sockets. */
static int on_socket(PyObject *args)
{
	PyObject *family = argument(args, 1);
	long n = family && PyLong_Check(family) ? PyLong_AsLong(family) : -1;
	PyErr_Clear();
	return n == AF_UNIX && !caller_is_cell() ? 0 : on_network(args);
}

static int refuse_native(void)
{
	return violation(policy.base == PROFILE_SMOLAGENTS ? NULL : PyExc_PermissionError,
		POLICY_NATIVE, "Use the public functions of the library.",
		"Forbidden access to function: native code, frames and memory are not accessible");
}

static int on_native(PyObject *args)
{
	(void)args;
	return granted((const char *const[]){ "ctypes", NULL }) ? 0 : refuse_native();
}

static int on_frames(PyObject *args)
{
	(void)args;
	return caller_is_cell() ? refuse_native() : 0;
}

/* What numpy and pandas need to be read back; any other name is code of the file's choice. */
static int on_unpickle(PyObject *args)
{
	static const char *const safe[][2] = { { "numpy", "ndarray" }, { "numpy", "dtype" },
		{ "numpy.core.multiarray", "_reconstruct" }, { "numpy.core.multiarray", "scalar" },
		{ "numpy.core.numeric", "_frombuffer" }, { "numpy._core.numeric", "_frombuffer" },
		{ "numpy._core.multiarray", "_reconstruct" },
		{ "numpy._core.multiarray", "scalar" }, { "pandas.core.frame", "DataFrame" },
		{ "pandas.core.series", "Series" }, { "pandas.core.indexes.base", "Index" },
		{ "pandas.core.indexes.base", "_new_Index" },
		{ "pandas.core.indexes.range", "RangeIndex" },
		{ "pandas.core.internals.managers", "BlockManager" },
		{ "pandas.core.internals.managers", "SingleBlockManager" },
		{ "pandas._libs.internals", "_unpickle_block" }, { "builtins", "slice" },
		{ "builtins", "set" }, { "builtins", "complex" }, { "datetime", "datetime" },
		{ "datetime", "date" }, { "datetime", "timedelta" }, { "decimal", "Decimal" },
		{ "collections", "OrderedDict" } };
	PyObject *module = argument(args, 0), *name = argument(args, 1);

	for (size_t i = 0; module && name && PyUnicode_Check(module) && PyUnicode_Check(name) &&
			   i < sizeof(safe) / sizeof(safe[0]);
		i++)
		if (PyUnicode_CompareWithASCIIString(module, safe[i][0]) == 0 &&
			PyUnicode_CompareWithASCIIString(name, safe[i][1]) == 0)
			return 0;
	return violation(policy.base == PROFILE_SMOLAGENTS ? NULL : PyExc_PermissionError,
		POLICY_CODE, "Keep data as CSV, JSON or npy instead.",
		"Forbidden access to function: a pickle names %S.%S", module ? module : Py_None,
		name ? name : Py_None);
}

/*
 * The importer takes modules of the system and of packages only, whoever asks: code of other files
 * could be anybody's.
 */
static int check_code_file(PyObject *path)
{
	char real[PATH_MAX];
	PyObject *bytes = NULL;
	if (policy.all_imports || !path || !PyUnicode_FSConverter(path, &bytes)) {
		PyErr_Clear();
		return policy.all_imports ? 0 : refuse_path(path ? path : Py_None);
	}
	/* what is not there is not read */
	bool ok = !realpath(PyBytes_AS_STRING(bytes), real) || path_is_code(real);
	Py_DECREF(bytes);
	return ok ? 0 : refuse_path(path);
}

/* import(module, filename, …): native modules have a file. Names are looked at by imports.c. */
static int on_import(PyObject *args)
{
	PyObject *file = argument(args, 1);
	return file && file != Py_None ? check_code_file(file) : 0;
}

struct event {
	const char *name; /* a name, or with a dot at its end all that begin so */
	int (*act)(PyObject *args);
};

static const struct event events[] = {
	{ "open", on_open },
	{ "compile", on_compile },
	{ "exec", on_exec },
	{ "import", on_import }, /* before `asked_by_cell()` is looked at */
	{ "object.__getattr__", on_frames },
	{ "object.__setattr__", on_frames },
	{ "object.__delattr__", on_frames },
	{ "code.__new__", on_frames },
	{ "function.__new__", on_frames },
	{ "sys._getframe", on_frames },
	{ "sys._getframemodulename", on_frames },
	{ "sys._current_frames", on_frames },
	{ "sys._current_exceptions", on_native },
	{ "sys.setprofile", on_native },
	{ "sys.settrace", on_native },
	{ "sys.addaudithook", on_native },
	{ "sys.set_asyncgen_hooks_firstiter", on_frames },
	{ "sys.monitoring.register_callback", on_native },
	{ "gc.", on_native },
	{ "ctypes.", on_native },
	{ "marshal.loads", on_frames },
	{ "marshal.load", on_frames },
	{ "marshal.dumps", on_frames },
	{ "pickle.find_class", on_unpickle },
	{ "cpython.PyInterpreterState_New", on_native },
	{ "cpython.run_", on_native },
	{ "subprocess.Popen", on_process },
	{ "os.system", on_process },
	{ "os.exec", on_process },
	{ "os.posix_spawn", on_process },
	{ "os.spawn", on_process },
	{ "os.fork", on_process },
	{ "os.forkpty", on_process },
	{ "os.kill", on_process },
	{ "os.killpg", on_process },
	{ "signal.pthread_kill", on_process },
	{ "pty.spawn", on_process },
	{ "webbrowser.open", on_process },
	{ "socket.__new__", on_socket },
	{ "socket.gethostname", on_frames },
	{ "socket.", on_network },
	{ "urllib.Request", on_network },
	{ "ftplib.", on_network },
	{ "http.client.", on_network },
	{ "smtplib.", on_network },
	{ "os.listdir", on_read_path },
	{ "os.scandir", on_read_path },
	{ "os.walk", on_read_path },
	{ "os.chdir", on_write_path },
	{ "os.mkdir", on_write_path },
	{ "os.rmdir", on_write_path },
	{ "os.remove", on_write_path },
	{ "os.rename", on_two_paths },
	{ "os.link", on_two_paths },
	{ "os.symlink", on_two_paths },
	{ "os.chmod", on_write_path },
	{ "os.chown", on_write_path },
	{ "os.truncate", on_write_path },
	{ "os.utime", on_write_path },
	{ "os.setxattr", on_write_path },
	{ "os.removexattr", on_write_path },
	{ "os.putenv", on_frames },
	{ "os.unsetenv", on_frames },
	{ "shutil.rmtree", on_write_path },
	{ "shutil.copyfile", on_two_paths },
	{ "shutil.move", on_two_paths },
	{ "sqlite3.connect", on_write_path },
	{ "sqlite3.enable_load_extension", on_native },
	{ "sqlite3.load_extension", on_native },
	{ "mmap.__new__", on_map },
	{ "resource.", on_native },
	{ "syslog.", on_native },
	{ "fcntl.", on_frames },
	{ "builtins.breakpoint", on_native },
	{ "builtins.input", on_native },
};

static const struct event *find(const char *name)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		size_t n = strlen(events[i].name);
		char last = events[i].name[n - 1];
		if (last == '.' || last == '_' ? !strncmp(name, events[i].name, n)
					       : !strcmp(name, events[i].name))
			return &events[i];
	}
	return NULL;
}

static int hook(const char *name, PyObject *args, void *unused)
{
	(void)unused;
	if (!policy.active)
		return 0;
	const struct event *e = find(name);
	if (!e || trusted())
		return 0;
	bool importing = e->act == on_open && importer_reads();
	if (!importing && e->act != on_import && !asked_by_cell())
		return 0;   /* a module that is imported does for itself what it needs */
	policy_trust(true); /* what the check itself does */
	int r = importing ? check_code_file(argument(args, 0)) : e->act(args);
	policy_trust(false);
	if (r == 0)
		PyErr_Clear();
	return r;
}

int audit_install(void)
{
	return PySys_AddAuditHook(hook, NULL);
}
