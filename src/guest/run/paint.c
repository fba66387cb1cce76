#include "guest/run/paint.h"

#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "guest/policy/policy.h"
#include "guest/run/cell.h"
#include "guest/run/guest.h"
#include "jail/xsocket.h"

/* to the display, that are watched: more are looked at now and then */
enum { CONNECTIONS_MAX = 16 };

static PyObject *paint_screen;
static bool told; /* CONTINUE */

/* Adds this process's connections to the display. */
static unsigned find_connections(struct pollfd *ret, unsigned max)
{
	static const char path[] = XSOCKET_DIR "/X";
	unsigned n = 0;
	for (int fd = 0; fd < GUEST_CONTROL_FD && n < max; fd++) {
		struct sockaddr_un peer = { 0 };
		socklen_t len = sizeof(peer);
		if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
			peer.sun_family == AF_UNIX &&
			!strncmp(peer.sun_path, path, sizeof(path) - 1))
			ret[n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	return n;
}

/* Children, or threads that run Python: one of them may be about to open a window. */
static bool has_company(void)
{
	siginfo_t si = { 0 };
	return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 ||
	       PyThreadState_Next(PyInterpreterState_ThreadHead(PyInterpreterState_Get())) != NULL;
}

/*
 * _glovebox._paint_wait(ms, watch) → 1: the daemon has its picture; 2: events came (only with
 * watch); 0: the time is over, or a signal came. To the display's screen process this wait is a
 * main loop's: the windows are painted, and their program waits for events.
 */
static PyObject *paint_wait(PyObject *self, PyObject *args)
{
	struct pollfd p[1 + CONNECTIONS_MAX] = { { .fd = GUEST_CONTROL_FD, .events = POLLIN } };
	int ms, watch, r = 0;

	(void)self;
	if (!PyArg_ParseTuple(args, "ip", &ms, &watch))
		return NULL;
	unsigned n = 1 + (watch ? find_connections(p + 1, CONNECTIONS_MAX) : 0);
	if (!told) {
		Py_BEGIN_ALLOW_THREADS;
		r = poll(p, n, ms);
		Py_END_ALLOW_THREADS;
	}

	if (PyErr_CheckSignals() < 0)
		return NULL;
	if (r > 0 && p[0].revents)
		guest_take_frames();
	return PyLong_FromLong(told ? 1 : r > 0 && !p[0].revents ? 2 : 0);
}

static PyMethodDef paint_wait_def = { "_paint_wait", paint_wait, METH_VARARGS, NULL };

void paint_continue(void)
{
	told = true;
}

void paint_windows(void)
{
	struct pollfd first;
	bool own = find_connections(&first, 1) > 0;
	if (!own && !has_company())
		return;

	told = false;
	cell_tell_loop(WIRE_LOOP_ENDED);
	/* the callbacks of the session's code, which it calls, are not trusted */
	policy_trust(true);
	PyObject *r = PyObject_CallFunction(paint_screen, "i", own);
	policy_trust(false);

	if (!r && PyErr_ExceptionMatches(PyExc_Exception))
		PyErr_WriteUnraisable(paint_screen);
	PyErr_Clear();
	Py_XDECREF(r);
	cell_tell_loop(WIRE_LOOP_NONE);
}

int paint_prepare(PyObject *function)
{
	PyObject *module = PyImport_ImportModule("_glovebox"),
		 *wait = PyCFunction_New(&paint_wait_def, NULL);
	int r = module && wait ? PyObject_SetAttrString(module, "_paint_wait", wait) : -1;
	paint_screen = function;
	Py_XDECREF(wait);
	Py_XDECREF(module);
	return r;
}
