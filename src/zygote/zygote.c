/*
 * The zygote: a Python process whose modules are already imported, from which guests are forked.
 *
 * It is Debian's own python3 with this file as an extension module, not a program linked with
 * libpython: the archive Debian ships is built without link-time optimisation and runs recursion 15
 * % slower than the interpreter people know. `run()` never returns. One thread, plain blocking
 * reads: what forks has no threads.
 */
#include "guest/run/python.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fds.h"
#include "guest/run/cell_timing.h"
#include "guest/run/effects.h"
#include "guest/run/guest.h"
#include "guest/snapshot/prefault.h"
#include "jail/clone.h"
#include "jail/filter.h"
#include "jail/filter_own.h"
#include "jail/jail.h"
#include "wire/wire.h"
#include "zygote/heap.h"
#include "zygote/huge_pages.h"
#include "zygote/placement/heap_placement.h"
#include "zygote/proctitle.h"
#include "zygote/zygote.h"
#include "zygote/zygote_program.h"

static struct support support;
/* without and with a network, with memory files sealed; one of them holds every guest */
static struct filter filters[JAIL_EXEC_COUNT][2][2];

static void __attribute__((noreturn)) die(const char *what)
{
	struct wire_zygote m = { .event = WIRE_ZYGOTE_PROBLEM, .err = -EIO };
	snprintf(m.text, sizeof(m.text), "%s", what);
	if (heap_placement_is_scout())
		_exit(1); /* the zygote will find the same, and say so */
	if (PyErr_Occurred())
		PyErr_Print();
	fd_send(ZYGOTE_SOCKET_FD, &m, sizeof(m), NULL, 0);
	_exit(1);
}

/* ---- warming up ---------------------------------------------------------------- */

static void append_lines(PyObject *lines, char *text, size_t size)
{
	for (Py_ssize_t i = 0; lines && PyList_Check(lines) && i < PyList_GET_SIZE(lines); i++) {
		const char *line = PyUnicode_AsUTF8(PyList_GET_ITEM(lines, i));
		size_t len = strlen(text);
		if (line)
			snprintf(text + len, size - len, "%s\n", line);
		PyErr_Clear();
	}
}

static void call_gc(const char *name)
{
	PyObject *gc = PyImport_ImportModule("gc");
	PyObject *r = gc ? PyObject_CallMethod(gc, name, NULL) : NULL;
	if (!r)
		die("the garbage collector failed");
	Py_DECREF(r);
	Py_DECREF(gc);
}

/* `__main__` is the cells' own: nothing of the start-up stays in it. */
static void clear_main(void)
{
	static const char *const keep[] = { "__name__", "__doc__", "__package__", "__loader__",
		"__spec__", "__builtins__" };
	PyObject *main = PyImport_AddModule("__main__"),
		 *dict = main ? PyModule_GetDict(main) : NULL;
	PyObject *fresh = PyDict_New();

	if (!dict || !fresh)
		die("no __main__");
	for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++) {
		PyObject *v = PyDict_GetItemString(dict, keep[i]);
		if (v)
			PyDict_SetItemString(fresh, keep[i], v);
	}

	PyDict_Clear(dict);
	PyDict_Update(dict, fresh);
	PyDict_SetItemString(dict, "__spec__", Py_None);
	PyDict_SetItemString(dict, "__loader__", Py_None);
	Py_DECREF(fresh);
}

static void set_argv(void)
{
	PyObject *argv = Py_BuildValue("[s]", "");
	if (!argv || PySys_SetObject("argv", argv) < 0)
		die("no sys.argv");
	Py_DECREF(argv);
	PyObject *orig = Py_BuildValue("[s]", "python3");
	if (orig)
		PySys_SetObject("orig_argv", orig);
	Py_XDECREF(orig);
}

static void set_environ(const char *name, const char *value)
{
	PyObject *os = PyImport_ImportModule("os"),
		 *all = os ? PyObject_GetAttrString(os, "environ") : NULL;
	PyObject *v = value ? PyUnicode_FromString(value) : NULL;
	int r = all ? value ? PyMapping_SetItemString(all, name, v)
			    : PyMapping_DelItemString(all, name)
		    : -1;
	if (r < 0)
		PyErr_Clear();
	Py_XDECREF(v);
	Py_XDECREF(all);
	Py_XDECREF(os);
}

/* What the guests' os.environ holds; the zygote's own few variables are gone again. */
static void set_guest_environment(void)
{
	static const char *const variables[][2] = { { "HOME", "/workspace" }, { "USER", "sandbox" },
		{ "LOGNAME", "sandbox" }, { "SHELL", "/bin/sh" },
		{ "XDG_CACHE_HOME", "/tmp/.cache" }, { "XDG_CONFIG_HOME", "/tmp/.config" },
		{ "XDG_DATA_HOME", "/tmp/.local" }, { "MPLCONFIGDIR", "/tmp/.config/matplotlib" },
		{ "TMPDIR", "/tmp" } };
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		set_environ(variables[i][0], variables[i][1]);
}

/* When memory runs out, the kernel takes a session before the daemon. Guests inherit it. */
static void offer_to_oom_killer(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t w = write(fd, "500", 3);
		(void)w;
		close(fd);
	}
}

/*
 * A module that started a thread: its locks may be held in a fork, for ever. Said, because it can
 * hang sessions.
 */
static void report_threads(char *text, size_t size)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	size_t len = strlen(text);
	if (n > 1)
		snprintf(text + len, size - len,
			"threads: a preloaded module runs %u threads; sessions may hang in it\n",
			n - 1);
}

/* Most of what a guest does, from its fork to the end of a first cell. */
static void start_as_a_guest(void)
{
	PyOS_BeforeFork();
	PyOS_AfterFork_Child();
	guest_rehearse();
}

/*
 * Imports the template and runs typical first calls, then freezes all of it so that no collection
 * in a guest writes to it.
 */
static void warm_up(PyObject *names, const char *cache, struct wire_zygote *m)
{
	heap_begin();
	set_environ("MPLCONFIGDIR", cache);
	PyGC_Disable();
	heap_placement_begin(fcntl(ZYGOTE_BOOK_FD, F_GETFD) < 0 ? -1 : ZYGOTE_BOOK_FD);
	if (support_load(&support) < 0 || guest_prepare(&support) < 0)
		die("the guest's own modules could not be loaded");
	PyObject *installed = PyObject_CallNoArgs(support.install);
	if (!installed)
		die("the guest's hooks could not be installed");
	Py_DECREF(installed);
	PyObject *problems = PyObject_CallOneArg(support.preload, names);
	if (!problems)
		die("preloading failed");
	append_lines(problems, m->text, sizeof(m->text));
	Py_DECREF(problems);
	heap_placement_mark("first calls");
	problems = PyObject_CallNoArgs(support.warm_up);
	if (!problems)
		die("warming up failed");
	append_lines(problems, m->text, sizeof(m->text));
	Py_DECREF(problems);
	heap_placement_mark("first cells");
	cell_rehearse(CELL_ADAPTED);
	heap_placement_mark("the rest");
	report_threads(m->text, sizeof(m->text));
	set_guest_environment();
	clear_main();
	set_argv();
	guest_settle();
	call_gc("collect");
	call_gc("freeze");
	heap_placement_end(start_as_a_guest);
	effects_prepare();
	heap_settle();
	pages_merge();
	pages_collapse();
	pages_copy_code();
	prefault_prepare();
}

/* ---- forking -------------------------------------------------------------------- */

/*
 * No Python frame lies below a cell's: tracebacks, inspect.stack() and sys._getframe() end at the
 * cell.
 */
static void forget_frames(void)
{
	PyThreadState *t = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030d0000
	t->current_frame = NULL;
#elif PY_VERSION_HEX >= 0x030b0000
	t->cframe->current_frame = NULL;
#else
	t->frame = NULL;
#endif
}

/* Seen, not assumed: whether the kernel seals a file in memory that nobody asked it to. */
static bool memory_files_are_sealed(void)
{
	enum { SEAL_EXEC = 0x20 };
	int fd = memfd_create("", MFD_CLOEXEC);
	int seals = fd < 0 ? 0 : fcntl(fd, F_GET_SEALS);
	fd_close(fd);
	return seals > 0 && seals & SEAL_EXEC;
}

/* Nothing of a session ever runs without it. */
static int load_filter(enum jail_exec exec, enum jail_net net)
{
	return filter_load(&filters[exec][net != JAIL_NET_NONE][memory_files_are_sealed()]);
}

/* The child, from its first instruction: descriptors, jail, then Python's own after-fork work. */
static void __attribute__((noreturn))
become_guest(const int *fds, size_t n_join, enum jail_exec exec, enum jail_net net)
{
	const char *step = "";
	int r;

	steps_end(STEP_CLONE);
	/*
	 * GUEST_CONTROL_FD is above every other descriptor of the zygote's, so nothing is
	 * overwritten.
	 */
	if (dup3(fds[1], GUEST_CONTROL_FD, O_CLOEXEC) < 0)
		guest_fail(fds[1], "placing the control socket", -errno);
	for (size_t i = 0; i < n_join; i++)
		if (write(fds[WIRE_SPAWN_FDS + i], "0", 1) != 1)
			guest_fail(GUEST_CONTROL_FD, "joining the control groups", -errno);
	steps_end(STEP_JOIN);
	/*
	 * Undumpable until the filter is loaded: other interpreters and programs of the session may
	 * be running.
	 */
	if ((r = jail_enter_closed(fds[0], exec, net, &step)) < 0)
		guest_fail(GUEST_CONTROL_FD, step, r);
	steps_end(STEP_ENTER);
	if (dup2(fds[2], STDOUT_FILENO) < 0 || dup2(fds[3], STDERR_FILENO) < 0)
		guest_fail(GUEST_CONTROL_FD, "placing the output pipes", -errno);
	syscall(SYS_close_range, 3U, GUEST_CONTROL_FD - 1U, 0);
	syscall(SYS_close_range, GUEST_CONTROL_FD + 1U, ~0U, 0);
	prctl(PR_SET_NAME, "python3");
	title_set("python3");
	/* Last of the walls, before the first line of Python. */
	if ((r = load_filter(exec, net)) < 0)
		guest_fail(GUEST_CONTROL_FD, "loading the system call filter", r);
	if ((r = jail_open(&step)) < 0)
		guest_fail(GUEST_CONTROL_FD, step, r);
	steps_end(STEP_FILTER);
	/*
	 * Both in the child: the zygote has one thread and hooks that do nothing there, and each
	 * page that it wrote to would break up a huge one for good.
	 */
	PyOS_BeforeFork();
	PyOS_AfterFork_Child();
	forget_frames();
	guest_run();
}

static void __attribute__((noreturn))
become(const struct wire_spawn *q, const int *fds, size_t n_join)
{
	enum jail_exec exec = (enum jail_exec)(q->exec % JAIL_EXEC_COUNT);
	enum jail_net net = (enum jail_net)(q->net % JAIL_NET_COUNT);
	if (q->program)
		program_run(fds, n_join, exec, net, load_filter);
	become_guest(fds, n_join, exec, net);
}

static void serve_one(const struct wire_spawn *q, int *fds, size_t n)
{
	struct wire_zygote m = { .event = WIRE_ZYGOTE_SPAWNED, .serial = q->serial };
	int pidfd = -1;

	m.err = jail_aim_children(fds[0]);
	if (m.err == 0) {
		steps_begin();
		m.pid = clone_for_parent(q->into ? fds[WIRE_SPAWN_FDS] : -1, &pidfd);
		if (m.pid == 0)
			become(q, fds, q->into ? 0 : n - WIRE_SPAWN_FDS);
		m.err = m.pid < 0 ? -errno : 0;
	}

	/*
	 * Before the answer: the daemon takes the end of the control socket for the start of a
	 * program. A program may end before this process runs again, and a copy that is still open
	 * here would then make its whole run look like a failed start.
	 */
	for (size_t i = 0; i < n; i++)
		fd_close(fds[i]);
	fd_send(ZYGOTE_SOCKET_FD, &m, sizeof(m), &pidfd, m.err == 0 ? 1 : 0);
	fd_close(pidfd);
}

/*
 * Started by an ordinary user, the jails' user namespaces belong to the jailer's: only from there
 * can they be joined.
 */
static void join_jailer(void)
{
	if (geteuid() != 0 && setns(ZYGOTE_JAILER_FD, CLONE_NEWUSER) < 0)
		die("joining the jailer's user namespace failed");
	fd_close(ZYGOTE_JAILER_FD);
}

/*
 * Modules that ask for the machine's name while they are imported get that of every jail. Only the
 * machine's root may; else warm.py helps.
 */
static void hide_host_name(void)
{
	static const char name[] = "sandbox";
	if (unshare(CLONE_NEWUTS) == 0 && sethostname(name, strlen(name)) < 0)
		die("naming the host failed");
}

/* run(names, cache_dir): warms up and serves until the daemon hangs up. */
static PyObject *run(PyObject *self, PyObject *args)
{
	PyObject *names;
	const char *cache;
	static struct wire_zygote hello = { .event = WIRE_ZYGOTE_WARM };
	struct wire_spawn q;
	int fds[WIRE_SPAWN_FDS_MAX];
	size_t n;

	(void)self;
	if (!PyArg_ParseTuple(args, "O!s", &PyList_Type, &names, &cache))
		return NULL;
	prctl(PR_SET_NAME, "glovebox-zygote");
	for (int i = 0; i < JAIL_EXEC_COUNT; i++)
		if (filter_build((enum jail_exec)i, JAIL_NET_NONE, &filters[i][0][0]) < 0 ||
			filter_build((enum jail_exec)i, JAIL_NET_LOOPBACK, &filters[i][1][0]) < 0 ||
			filter_build_sealed((enum jail_exec)i, JAIL_NET_NONE, &filters[i][0][1]) <
				0 ||
			filter_build_sealed(
				(enum jail_exec)i, JAIL_NET_LOOPBACK, &filters[i][1][1]) < 0)
			die("the system call filter cannot be built");
	offer_to_oom_killer();
	hide_host_name();
	warm_up(names, cache, &hello);
	join_jailer();
	title_set("glovebox-zygote");
	/*
	 * Sessions have another uid; nobody but root may look into, or trace, what all of them are
	 * copied from.
	 */
	prctl(PR_SET_DUMPABLE, 0);
	if (filter_enter_own(FILTER_ZYGOTE) < 0)
		die("loading the zygote's own system call filter failed");
	fd_send(ZYGOTE_SOCKET_FD, &hello, sizeof(hello), NULL, 0);
	while (fd_recv(ZYGOTE_SOCKET_FD, &q, sizeof(q), fds, WIRE_SPAWN_FDS_MAX, &n) ==
		(ssize_t)sizeof(q)) {
		if (n >= WIRE_SPAWN_FDS + q.into)
			serve_one(&q, fds, n);
	}

	_exit(0);
}

static PyMethodDef methods[] = { { "run", run, METH_VARARGS, NULL }, { 0 } };
static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, .m_name = "_glovebox_guest",
	.m_size = -1, .m_methods = methods };

PyMODINIT_FUNC PyInit__glovebox_guest(void);
PyMODINIT_FUNC PyInit__glovebox_guest(void)
{
	/*
	 * Structures differ between minor versions; CPython itself does not notice a module of
	 * another one.
	 */
	if (Py_Version >> 16 != PY_VERSION_HEX >> 16) {
		PyErr_SetString(PyExc_ImportError,
			"this module is of glovebox for Python " PY_VERSION
			"; install a glovebox for the Python of this system");
		return NULL;
	}
	return PyModule_Create(&module);
}
