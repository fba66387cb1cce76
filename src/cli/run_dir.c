/* `glovebox run`: the directory that the code sees, and the files that it gives back. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/fds.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/run_internal.h"
#include "local/local.h"

/* Where the directory is mounted, read-only. */
#define PLACE "dir"

enum { LINKS_MAX = 4096, FILES_MAX = 10000, DEPTH_MAX = 16, COPY_BYTES = 1 << 16, WAIT_S = 30 };
enum { COPY_IN_MAX = 1 << 20, COPY_IN_ALL = 16 << 20 }; /* bytes of one file, and of all */

/* ---- in ---------------------------------------------------------------------------- */

/*
 * A home directory, or what it lies in, holds keys and passwords: it is shown only when it is
 * named.
 */
static bool holds(const char *dir, const char *home)
{
	size_t len = strlen(dir);
	char real[PATH_MAX];
	return home && realpath(home, real) && !strncmp(real, dir, len) &&
	       (real[len] == '/' || real[len] == '\0');
}

static bool is_too_much(const char *dir)
{
	const struct passwd *user = getpwuid(getuid());
	return text_eq(dir, "/") || holds(dir, getenv("HOME")) ||
	       holds(dir, user ? user->pw_dir : NULL);
}

static int find_dir(const char *asked, const char *name, char ret[PATH_MAX], struct error *e)
{
	char file[PATH_MAX];
	ret[0] = '\0';
	if (asked) {
		if (!realpath(asked, ret))
			return error_set_errno(e, -errno, "--dir: %.200s", asked);
		return 0;
	}

	if (!name || !realpath(name, file))
		return 0;
	*strrchr(file, '/') = '\0';
	const char *dir = file[0] ? file : "/";
	if (!is_too_much(dir))
		snprintf(ret, PATH_MAX, "%s", dir);
	return 0;
}

int run_dir_find(struct run *run, const char *name, struct error *e)
{
	bool is_file = name && !text_eq(name, "-") && !text_eq(name, "-c");
	run->script = is_file ? name : NULL;
	int r = find_dir(run->options->dir, run->script, run->dir, e);
	struct stat st;
	if (r < 0 || !run->dir[0])
		return r;
	if (stat(run->dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return error_set(e, -ENOTDIR, "--dir: %.200s: not a directory", run->dir);
	if (strpbrk(run->dir, "\t\n")) {
		run->dir[0] = '\0';
		return run->options->dir
			       ? error_set(e, -EINVAL, "--dir: the path has a tab or a newline")
			       : 0;
	}

	return 0;
}

int run_dir_shown(const struct run *run, const char *others, char **ret)
{
	struct buffer b = BUFFER_INIT(0);
	size_t len = others ? strlen(others) : 0;
	int r = buffer_printf(
		&b, "%s%s", others ? others : "", len && others[len - 1] != '\n' ? "\n" : "");

	if (r >= 0 && run->dir[0])
		r = buffer_printf(&b, "%s\t" PLACE "\n", run->dir);
	for (unsigned i = 0; r >= 0 && i < run->mounts.n; i++)
		r = buffer_printf(&b, "%s", run->mounts.shown[i]);
	if (r < 0 || !buffer_cstr(&b)) {
		buffer_finish(&b);
		return -ENOMEM;
	}
	*ret = b.data;
	return 0;
}

/*
 * A small file is copied, so that the code can change it, or replace it. The times go along: a copy
 * that still has the time of its original was not changed (is_original). False: the caller makes a
 * link.
 */
static bool copy_in(int dir, const char *name, int workspace, off_t *left)
{
	static char data[COPY_BYTES];
	struct stat st;
	_cleanup_fd_ int in = openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > COPY_IN_MAX ||
		st.st_size > *left)
		return false;
	_cleanup_fd_ int out = openat(workspace, name,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, st.st_mode & 0777);
	ssize_t n = 0;
	off_t todo = st.st_size;
	while (out >= 0 && todo > 0 && (n = read(in, data, sizeof(data))) > 0 &&
		fd_write_full(out, data, (size_t)n) >= 0)
		todo -= n;
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	if (out >= 0 && todo <= 0 && futimens(out, times) == 0) {
		*left -= st.st_size;
		return true;
	}
	if (out >= 0)
		unlinkat(workspace, name, 0);
	return false;
}

/* Copies of small files in the working directory of the code, and links to all others. */
int run_dir_link(struct run *run, struct error *e)
{
	if (!run->dir[0])
		return 0;
	int workspace = local_wait_workspace(run->local, WAIT_S);
	if (workspace < 0)
		return error_set(e, -ETIMEDOUT, "the sandbox was not made in time");
	DIR *d = opendir(run->dir);
	struct stat st;
	unsigned n = 0;
	off_t left = COPY_IN_ALL;
	/*
	 * as the session's user: the kernel makes nothing there for an id that the jail does not
	 * have
	 */
	bool other = fstat(workspace, &st) == 0 && geteuid() == 0;
	if (other) {
		setfsgid(st.st_gid);
		setfsuid(st.st_uid);
	}

	for (struct dirent *f = d ? readdir(d) : NULL; f && n < LINKS_MAX; f = readdir(d)) {
		char target[NAME_MAX + sizeof("/" PLACE "/")];
		if (f->d_name[0] == '.' || copy_in(dirfd(d), f->d_name, workspace, &left))
			continue;
		snprintf(target, sizeof(target), "/" PLACE "/%s", f->d_name);
		n += symlinkat(target, workspace, f->d_name) == 0;
	}

	if (other) {
		setfsuid(0);
		setfsgid(0);
	}

	if (d)
		closedir(d);
	return 0;
}

/* ---- a module of one's own that is missing ------------------------------------------- */

static bool has_module(const char *dir, const char *name, char *ret, size_t size)
{
	static const char *const endings[] = { ".py", "" };
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		char path[PATH_MAX + NAME_MAX + 8];
		snprintf(path, sizeof(path), "%s/%s%s", dir, name, endings[i]);
		snprintf(ret, size, "%s%s", name, endings[i]);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

void run_dir_advise(
	const struct run *run, const char *code, const char *message, char *remedy, size_t size)
{
	char name[NAME_MAX + 1], file[NAME_MAX + 8], here[PATH_MAX], beside[PATH_MAX] = "";
	if (!text_eq(code, "module_missing") ||
		sscanf(message, "No module named '%255[A-Za-z0-9_]", name) != 1 ||
		!getcwd(here, sizeof(here)))
		return;
	if (run->script && realpath(run->script, beside))
		*strrchr(beside, '/') = '\0';
	const char *dir = run->script && has_module(beside, name, file, sizeof(file)) ? beside
			  : has_module(here, name, file, sizeof(file))                ? here
										      : NULL;
	if (dir)
		snprintf(remedy, size,
			"%s is a file of yours, which the code does not see: add --dir %s", file,
			dir == here ? "."
			: *dir      ? dir
				    : "/");
}

/* ---- out --------------------------------------------------------------------------- */

struct copying {
	const char *dir; /* that the code saw; "" for none */
	unsigned files;
	int err;
	char failed[NAME_MAX + 1]; /* the first file that could not be copied */
};

static int copy_file(int from, const char *name, int to)
{
	static char data[COPY_BYTES];
	struct stat st, there;

	/* never waits for a FIFO, and follows no link: the code chose the names */
	_cleanup_fd_ int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (in < 0 || fstat(in, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	/* a new file: one that is there may be executable, or have other names; a link stays */
	if (fstatat(to, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(there.st_mode))
		return -ELOOP;
	if (unlinkat(to, name, 0) < 0 && errno != ENOENT)
		return -errno;
	_cleanup_fd_ int out = openat(
		to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (out < 0)
		return -errno;
	ssize_t n;
	off_t left = st.st_size;
	for (; left > 0 && (n = read(in, data, sizeof(data))) > 0; left -= n)
		if (fd_write_full(out, data, (size_t)n) < 0)
			return -EIO;
	return 0;
}

/* A copy of a file beside the script (copy_in) that the code left as it was. */
static bool is_original(const struct copying *c, const char *name, const struct stat *st)
{
	char path[PATH_MAX + NAME_MAX + 2];
	struct stat old;
	snprintf(path, sizeof(path), "%s/%s", c->dir, name);
	return *c->dir && stat(path, &old) == 0 && old.st_size == st->st_size &&
	       old.st_mtim.tv_sec == st->st_mtim.tv_sec &&
	       old.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

static void copy_tree(int from, int to, unsigned depth, struct copying *c);

static void copy_dir(int from, const char *name, int to, unsigned depth, struct copying *c)
{
	_cleanup_fd_ int below = openat(
		from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0 || depth == DEPTH_MAX || (mkdirat(to, name, 0755) < 0 && errno != EEXIST))
		return;
	_cleanup_fd_ int target = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (target >= 0)
		copy_tree(below, target, depth + 1, c);
}

static void copy_tree(int from, int to, unsigned depth, struct copying *c)
{
	int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *f = d ? readdir(d) : NULL; f && c->files < FILES_MAX; f = readdir(d)) {
		struct stat st;
		/* hidden files could be hooks and settings of other programs (.git, .envrc) */
		if (f->d_name[0] == '.' || text_eq(f->d_name, "__pycache__") ||
			fstatat(from, f->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			copy_dir(from, f->d_name, to, depth, c);
		} else if (S_ISREG(st.st_mode) && (depth || !is_original(c, f->d_name, &st))) {
			int r = copy_file(from, f->d_name, to);
			c->files++;
			if (r < 0 && !c->err) {
				c->err = r;
				snprintf(c->failed, sizeof(c->failed), "%s", f->d_name);
			}
		}
	}

	if (d)
		closedir(d);
	else
		fd_close(fd);
}

int run_dir_check_out(const struct run_options *o, struct error *e)
{
	if (!o->out || mkdir(o->out, 0777) == 0)
		return 0;
	struct stat st;
	int err = errno;
	if (err == EEXIST && stat(o->out, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	return error_set_errno(e, -err, "--out: %.200s", o->out);
}

bool run_dir_save(struct run *run)
{
	struct copying c = { .dir = run->dir };
	const char *out = run->options->out;

	if (!out)
		return true;
	int from = local_workspace(run->local);
	_cleanup_fd_ int to = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0 || to < 0) {
		cli_complain("run", "--out: %s", from < 0 ? "the files are gone" : strerror(errno));
		return false;
	}

	copy_tree(from, to, 0, &c);
	if (c.err)
		cli_complain("run", "--out: %s: %s", c.failed, strerror(-c.err));
	return !c.err;
}
