#include "sandbox/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/interpreter.h"
#include "base/text.h"
#include "jail/tree.h"
#include "zygote/zygote.h"

/* Whether the tree has it; links in it mean files of its own. */
static bool has(int top, const char *below)
{
	_cleanup_fd_ int fd = fd_open_in_root(top, below, O_PATH);
	return fd >= 0;
}

/* Debian keeps libraries in a folder per architecture. */
static bool has_library(const char *path, const char *name)
{
	static const char *const places[] = { "usr/lib/*", "lib/*", "usr/lib64", "usr/lib" };
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char pattern[4096];
		glob_t found = { 0 };
		snprintf(pattern, sizeof(pattern), "%s/%s/%s", path, places[i], name);
		bool yes = glob(pattern, GLOB_NOSORT, NULL, &found) == 0 && found.gl_pathc;
		globfree(&found);
		if (yes)
			return true;
	}
	return false;
}

static int missing(struct error *e, const char *path, const char *what, const char *package)
{
	error_set(e, -ENOENT, "rootfs %s has no %s", path, what);
	return error_remedy(e,
		"install %s in it ({debootstrap:%s CODENAME %s} makes a new one); it must be of the same release as this program",
		package, package, path);
}

int rootfs_check(const char *path, struct error *e)
{
	char library[64];
	const char *python = interpreter_path();
	_cleanup_fd_ int top = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (path[0] != '/') {
		error_set(e, -EINVAL, "rootfs '%s' is not an absolute path", path);
		return error_remedy(e, "write it from the root: /srv/glovebox/rootfs");
	}

	if (top < 0) {
		error_set_errno(e, -errno, "rootfs %s", path);
		return error_remedy(e,
			"name a directory that contains a system: {debootstrap:python3,libseccomp2 CODENAME %s}",
			path);
	}

	if (!has(top, python))
		return missing(e, path, python, "python3");

	snprintf(library, sizeof(library), "usr/lib/%s/os.py", interpreter_name());
	if (!has(top, library))
		return missing(e, path, library, "python3");
	if (!has_library(path, "libc.so.6"))
		return missing(e, path, "libc.so.6", "libc6");
	if (!has_library(path, "libseccomp.so.2"))
		return missing(e, path, "libseccomp.so.2", "libseccomp2");

	return 0;
}

char *rootfs_shown(const char *path, const char *module, const char *shown)
{
	char *text = NULL;
	bool more = shown && *shown;
	return asprintf(&text, "%s\t\n%s\t%c" ROOTFS_MODULE "%s%s", path, module, TREE_MODULE,
		       more ? "\n" : "", more ? shown : "") < 0
		       ? NULL
		       : text;
}

int rootfs_inside_main(int argc, char **argv)
{
	pid_t parent = getppid();
	int kinds = CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0);
	const char *step = "joining the jails' tree";

	if (argc < 2)
		return 2;

	if (setns(ZYGOTE_JAILER_FD, kinds) == 0 && unshare(CLONE_NEWNS) == 0) {
		step = "mounting /tmp";
		/*
		 * Libraries keep caches while they are imported; those of the zygote are nobody
		 * else's.
		 */
		if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			    "size=64m,mode=1777") == 0) {
			step = "starting Python in the rootfs";
			/* Joining a user namespace cleared it. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				return 1;
			execve(argv[1], argv + 1, environ);
		}
	}

	fprintf(stderr, "glovebox inside: %s: %s\n", step, strerror(errno));
	return 1;
}
