#include "guest/run/guest_stdin.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fds.h"
#include "guest/policy/policy.h"
#include "guest/run/python.h"

static PyObject *io_open;

int stdin_prepare(void)
{
	PyObject *io = PyImport_ImportModule("io");
	io_open = io ? PyObject_GetAttrString(io, "open") : NULL;
	Py_XDECREF(io);
	return io_open ? 0 : -1;
}

void stdin_put(int fd)
{
	int source = fd >= 0 ? fd : open("/dev/null", O_RDONLY | O_CLOEXEC);
	dup2(source, STDIN_FILENO);
	fd_close(source);
}

void stdin_set(int fd)
{
	stdin_put(fd);
	policy_trust(true);
	PyObject *file = PyObject_CallFunction(
		io_open, "isisssi", 0, "r", -1, "utf-8", "replace", (char *)NULL, 0);
	if (!file || PySys_SetObject("stdin", file) < 0)
		PyErr_Clear();
	policy_trust(false);
	Py_XDECREF(file);
}

bool stdin_is_closed(void)
{
	PyObject *file = PySys_GetObject("stdin"); /* borrowed */
	PyObject *closed = file ? PyObject_GetAttrString(file, "closed") : NULL;
	bool yes = closed == Py_True;
	PyErr_Clear();
	Py_XDECREF(closed);
	return yes;
}

int stdin_from(const char *text, size_t len)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 && (fd_write_full(fd, text, len) < 0 || lseek(fd, 0, SEEK_SET) < 0)) {
		fd_close(fd);
		return -1;
	}
	return fd;
}
