#include "guest/run/file_effects.h"

#include "guest/run/python.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/text.h"

enum { ASKERS_MAX = 8 };
#define PROC_MAGIC 0x9fa0
#define SYS_MAGIC 0x62656572

static uint32_t repeatable;
static bool
	looked; /* for the workspace, since the cell began: a fork of the session has another one */
static dev_t workspace;
/* whom fstat() returns to when Python's own file objects call it, and not code by os.fstat() */
static const void *askers[ASKERS_MAX];
static size_t n_askers;
static bool learning;

/*
 * Nobody in the session can change it, and it is not made up when it is read, as files of /proc
 * are.
 */
static bool is_constant(int fd, const struct stat *st)
{
	struct statfs fs;
	/* the session's own files of /proc have no name where they lie */
	return st->st_nlink && fstatfs(fd, &fs) == 0 && fs.f_flags & ST_RDONLY &&
	       fs.f_type != PROC_MAGIC && fs.f_type != SYS_MAGIC;
}

static bool is_ours(int fd, bool reads_only)
{
	struct stat st, of_workspace;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (!looked) {
		looked = true;
		workspace = stat("/workspace", &of_workspace) == 0 ? of_workspace.st_dev : 0;
	}
	return (workspace && st.st_dev == workspace) || (reads_only && is_constant(fd, &st));
}

/* A call on a descriptor has ended, well or not. */
static void note(int fd, bool reads_only)
{
	int err = errno;
	repeatable += is_ours(fd, reads_only);
	errno = err;
}

/*
 * A file that is not there is not there the next time either: the place of a name that fails is not
 * known, so it counts as an effect.
 */
static int opened(int fd, int flags)
{
	note(fd, (flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC)));
	return fd;
}

#define MODE_OF(last, flags)                                       \
	mode_t mode = 0;                                           \
	if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) { \
		va_list list;                                      \
		va_start(list, last);                              \
		mode = va_arg(list, mode_t);                       \
		va_end(list);                                      \
	}

static int noted_open(const char *path, int flags, ...)
{
	MODE_OF(flags, flags)
	return opened(open(path, flags, mode), flags);
}

static int noted_openat(int dir, const char *path, int flags, ...)
{
	MODE_OF(flags, flags)
	return opened(openat(dir, path, flags, mode), flags);
}

static ssize_t noted_read(int fd, void *data, size_t len)
{
	ssize_t n = read(fd, data, len);
	note(fd, true);
	return n;
}

static ssize_t noted_pread(int fd, void *data, size_t len, off_t at)
{
	ssize_t n = pread(fd, data, len, at);
	note(fd, true);
	return n;
}

static ssize_t noted_readv(int fd, const struct iovec *iov, int count)
{
	ssize_t n = readv(fd, iov, count);
	note(fd, true);
	return n;
}

static ssize_t noted_write(int fd, const void *data, size_t len)
{
	ssize_t n = write(fd, data, len);
	note(fd, false);
	return n;
}

static ssize_t noted_pwrite(int fd, const void *data, size_t len, off_t at)
{
	ssize_t n = pwrite(fd, data, len, at);
	note(fd, false);
	return n;
}

static ssize_t noted_writev(int fd, const struct iovec *iov, int count)
{
	ssize_t n = writev(fd, iov, count);
	note(fd, false);
	return n;
}

static int noted_ftruncate(int fd, off_t len)
{
	int r = ftruncate(fd, len);
	note(fd, false);
	return r;
}

static int noted_fstat(int fd, struct stat *ret)
{
	const void *asker = __builtin_return_address(0);
	int r = fstat(fd, ret);
	if (learning && n_askers < ASKERS_MAX)
		askers[n_askers++] = asker;
	for (size_t i = 0; i < n_askers; i++) {
		if (askers[i] == asker) {
			repeatable++;
			break;
		}
	}
	return r;
}

static const struct {
	const char *name;
	void *wrapper;
} wrappers[] = {
	{ "fstat", (void *)noted_fstat },
	{ "fstat64", (void *)noted_fstat },
	{ "ftruncate", (void *)noted_ftruncate },
	{ "ftruncate64", (void *)noted_ftruncate },
	{ "open", (void *)noted_open },
	{ "open64", (void *)noted_open },
	{ "openat", (void *)noted_openat },
	{ "openat64", (void *)noted_openat },
	{ "pread", (void *)noted_pread },
	{ "pread64", (void *)noted_pread },
	{ "pwrite", (void *)noted_pwrite },
	{ "pwrite64", (void *)noted_pwrite },
	{ "read", (void *)noted_read },
	{ "readv", (void *)noted_readv },
	{ "write", (void *)noted_write },
	{ "writev", (void *)noted_writev },
};

void *file_effects_wrapper(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(wrappers); i++)
		if (text_eq(wrappers[i].name, name))
			return wrappers[i].wrapper;
	return NULL;
}

void file_effects_learn(void)
{
	PyObject *io = PyImport_ImportModule("io"), *file, *data = NULL;
	n_askers = 0;
	learning = true;
	file = io ? PyObject_CallMethod(io, "open", "ssi", "/dev/null", "rb", 0) : NULL;
	if (file)
		data = PyObject_CallMethod(file, "readall", NULL);
	learning = false;
	if (file)
		Py_XDECREF(PyObject_CallMethod(file, "close", NULL));
	Py_XDECREF(data);
	Py_XDECREF(file);
	Py_XDECREF(io);
	PyErr_Clear();
}

void file_effects_begin(void)
{
	repeatable = 0;
	looked = false;
}

uint32_t file_effects_repeatable(void)
{
	return repeatable;
}
