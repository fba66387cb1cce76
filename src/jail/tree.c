#include "jail/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "jail/jail.h"
#include "jail/machine.h"
#include "jail/mounts.h"

/* A directory that exists on every system and is not needed while the tree is built. */
static const char staging[] = "/tmp";

enum { ETC_FILE_MAX = 4 << 20, FONT_CACHE_MAX = 16 << 20, MODULE_MAX = 64 << 20 };

/*
 * The prefix of the paths of system directories: empty for those of the host, else the path of
 * another tree.
 */
static char source[64];

/*
 * Directories of the host that are system, not data. Symbolic links (merged /usr) are kept as
 * links.
 */
static const char *const system_dirs[] = { "usr", "bin", "sbin", "lib", "lib32", "lib64",
	"libx32" };

/*
 * What Python and its libraries read below /etc; everything else of the host's /etc stays outside.
 */
static const char *const etc_dirs[] = { "alternatives", "fonts", "python3", "python3.9",
	"python3.10", "python3.11", "python3.12", "python3.13", "ssl/certs" };
static const char *const etc_files[] = { "ld.so.cache", "localtime", "timezone", "mime.types",
	"protocols", "services", "matplotlibrc", "os-release", "debian_version",
	"ssl/openssl.cnf" };

static const struct {
	const char *path, *text;
} etc_texts[] = {
	{ "etc/passwd",
		"root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n"
		"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n" },
	{ "etc/hostname", "sandbox\n" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n" },
};

static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };
static const struct {
	const char *path, *target;
} dev_links[] = { { "dev/fd", "/proc/self/fd" }, { "dev/stdin", "/proc/self/fd/0" },
	{ "dev/stdout", "/proc/self/fd/1" }, { "dev/stderr", "/proc/self/fd/2" },
	{ "dev/ptmx", "pts/ptmx" } };
static const char *const empty_dirs[] = { "etc", "etc/ssl", "proc", "dev", "dev/shm", "dev/pts",
	"tmp", "workspace", "var", "var/cache", "var/tmp", "run", "home", "home/bin" };

/*
 * In a user namespace, mount flags that the host has set are locked, and a remount must repeat
 * them. So if the plain remount is refused, it is repeated with these flags.
 */
int tree_remount_read_only(const char *at, unsigned long more)
{
	unsigned long flags = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | more;
	if (mount(NULL, at, NULL, flags, NULL) == 0 ||
		mount(NULL, at, NULL, flags | MS_RELATIME, NULL) == 0 ||
		mount(NULL, at, NULL, flags | MS_NOATIME, NULL) == 0)
		return 0;
	return -errno;
}

/* nosuid: the host's set-uid programs are in /usr; inside they are ordinary programs. */
static int bind_read_only(const char *from, const char *to)
{
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	return tree_remount_read_only(to, MS_NODEV);
}

/*
 * Makes ROOT/name what /name is: a link, or a read-only view of the directory. Missing ones are
 * left out.
 */
static int add_system_dir(const char *root, const char *name)
{
	char host[PATH_MAX], inner[PATH_MAX], target[PATH_MAX];
	struct stat st;

	snprintf(host, sizeof(host), "%s/%s", source, name);
	snprintf(inner, sizeof(inner), "%s/%s", root, name);
	if (lstat(host, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlink(host, target, sizeof(target) - 1);
		if (n < 0)
			return -errno;
		target[n] = '\0';
		return symlink(target, inner) < 0 ? -errno : 0;
	}

	if (mkdir(inner, 0755) < 0)
		return -errno;
	return bind_read_only(host, inner);
}

static int write_file(const char *path, const char *data, size_t len)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	return fd_write_full(fd, data, len);
}

/*
 * Links in another tree mean files of that tree, never the host's. Returns the descriptor behind
 * the path.
 */
static int find_etc_file(const char *name, char *path, size_t size)
{
	char below[PATH_MAX];
	_cleanup_fd_ int top = open(*source ? source : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(below, sizeof(below), "etc/%s", name);
	int fd = fd_open_in_root(top, below, O_PATH);
	if (fd < 0)
		return fd;
	snprintf(path, size, "/proc/self/fd/%d", fd);
	return fd;
}

/*
 * A copy, not a bind: it cannot lead back to the host's file, and symbolic links are resolved once,
 * here.
 */
static int copy_etc_file(const char *root, const char *name)
{
	char host[PATH_MAX], inner[PATH_MAX];
	_cleanup_free_ char *data = NULL;
	size_t len;
	snprintf(inner, sizeof(inner), "%s/etc/%s", root, name);
	_cleanup_fd_ int fd = find_etc_file(name, host, sizeof(host));
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	int r = fd_read_file(host, ETC_FILE_MAX, &data, &len);
	if (r == -ENOENT || r == -EACCES || r == -EFBIG)
		return 0;
	return r < 0 ? r : write_file(inner, data, len);
}

static int add_etc(const char *root)
{
	char path[PATH_MAX], host[PATH_MAX];
	int r;

	for (size_t i = 0; i < ARRAY_LEN(etc_files); i++)
		if ((r = copy_etc_file(root, etc_files[i])) < 0)
			return r;
	for (size_t i = 0; i < ARRAY_LEN(etc_dirs); i++) {
		struct stat st;
		snprintf(host, sizeof(host), "%s/etc/%s", source, etc_dirs[i]);
		snprintf(path, sizeof(path), "%s/etc/%s", root, etc_dirs[i]);
		if (stat(host, &st) < 0)
			continue;
		if (mkdir(path, 0755) < 0)
			return -errno;
		if ((r = bind_read_only(host, path)) < 0)
			return r;
	}

	for (size_t i = 0; i < ARRAY_LEN(etc_texts); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, etc_texts[i].path);
		if ((r = write_file(path, etc_texts[i].text, strlen(etc_texts[i].text))) < 0)
			return r;
	}

	return 0;
}

/*
 * One file of a directory into another one; returns how many bytes it has. What is no plain file,
 * or too large, is left out.
 */
static long copy_file(int from, int to, const char *name, size_t max)
{
	char path[64];
	struct stat st;
	size_t len;
	_cleanup_free_ char *data = NULL;
	_cleanup_fd_ int fd = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd_read_file(path, max, &data, &len) < 0)
		return 0;
	_cleanup_fd_ int copy = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r = copy < 0 ? -errno : fd_write_full(copy, data, len);
	return r < 0 ? r : (long)len;
}

/*
 * What fontconfig found in the fonts: without it every program that draws text looks through them
 * all, a tenth of a second. A copy, since a lock that code takes on a file it may read would hold
 * up the host's own fc-cache.
 */
static int add_font_cache(const char *root)
{
	static const char place[] = "/var/cache/fontconfig";
	char inner[PATH_MAX], cache[PATH_MAX];
	long left = FONT_CACHE_MAX, n = 0;

	snprintf(cache, sizeof(cache), "%s%s", source, place);
	snprintf(inner, sizeof(inner), "%s%s", root, place);
	DIR *d = opendir(cache);
	if (!d)
		return 0;
	_cleanup_fd_ int to = mkdir(inner, 0755) < 0
				      ? -1
				      : open(inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = to < 0 ? -errno : 0;
	for (struct dirent *e; r == 0 && left > 0 && (e = readdir(d)); left -= n)
		if ((n = copy_file(dirfd(d), to, e->d_name, (size_t)left)) < 0)
			r = (int)n;
	closedir(d);
	return r;
}

static int add_devices(const char *root)
{
	char host[PATH_MAX], inner[PATH_MAX];
	int r;

	for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
		snprintf(host, sizeof(host), "/dev/%s", devices[i]);
		snprintf(inner, sizeof(inner), "%s/dev/%s", root, devices[i]);
		if ((r = write_file(inner, "", 0)) < 0)
			return r;
		if (mount(host, inner, NULL, MS_BIND, NULL) < 0)
			return -errno;
		/*
		 * Devices are written to on a read-only mount as well, but not the times of the
		 * host's file.
		 */
		if ((r = tree_remount_read_only(inner, MS_NOEXEC)) < 0)
			return r;
	}

	for (size_t i = 0; i < ARRAY_LEN(dev_links); i++) {
		snprintf(inner, sizeof(inner), "%s/%s", root, dev_links[i].path);
		if (symlink(dev_links[i].target, inner) < 0)
			return -errno;
	}

	return 0;
}

/*
 * Jails mount a /proc of their own, which the kernel allows in a user namespace only where a full
 * one can be seen. Root makes a new one; others show the host's, which every jail then covers.
 */
static int add_proc(const char *root)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/proc", root);
	if (mount("proc", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
		return 0;
	return mount("/proc", path, NULL, MS_BIND | MS_REC, NULL) < 0 ? -errno : 0;
}

/* What else jails see. Opened before the tree is mounted, which may cover it. */
struct shown {
	struct {
		int fd;
		char name[NAME_MAX + 1];
	} dir[TREE_SHOWN_MAX];
	size_t n;
};

static void shown_close(struct shown *s)
{
	while (s->n)
		fd_close(s->dir[--s->n].fd);
}

static int shown_open(struct shown *s, const char *list, struct error *e)
{
	char host[PATH_MAX];
	while (list && *list) {
		size_t len = strcspn(list, "\n");
		const char *tab = memchr(list, '\t', len);
		if (!tab || s->n == TREE_SHOWN_MAX || memchr(tab, '/', len - (size_t)(tab - list)))
			return error_set(
				e, -EINVAL, "too many extra bind mounts, or an invalid name");
		snprintf(host, sizeof(host), "%.*s", (int)(tab - list), list);
		snprintf(s->dir[s->n].name, sizeof(s->dir[s->n].name), "%.*s",
			(int)(len - (size_t)(tab - list) - 1), tab + 1);
		bool module = s->dir[s->n].name[0] == TREE_MODULE;
		if ((s->dir[s->n].fd = open(host,
			     module ? O_RDONLY | O_CLOEXEC : O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
			return error_set_errno(e, -errno, "showing %s in jails", host);
		/* by the descriptor: the path may lie below where the tree is built */
		if (!s->dir[s->n].name[0])
			snprintf(source, sizeof(source), "/proc/self/fd/%d", s->dir[s->n].fd);
		s->n++;
		list += len + (list[len] == '\n');
	}

	return 0;
}

static int copy_module(const char *root, const char *name, int fd)
{
	char from[64], inner[PATH_MAX];
	_cleanup_free_ char *data = NULL;
	size_t len;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	snprintf(inner, sizeof(inner), "%s/run/%s", root, name);
	int r = fd_read_file(from, MODULE_MAX, &data, &len);
	return r < 0 ? r : write_file(inner, data, len);
}

static int show(const char *root, const struct shown *s, struct error *e)
{
	char from[64], inner[PATH_MAX];
	for (size_t i = 0; i < s->n; i++) {
		if (!s->dir[i].name[0])
			continue;
		if (s->dir[i].name[0] == TREE_MODULE) {
			int r = copy_module(root, s->dir[i].name + 1, s->dir[i].fd);
			if (r < 0)
				return error_set_errno(
					e, r, "copying the guest module into the jails' tree");
			continue;
		}
		snprintf(from, sizeof(from), "/proc/self/fd/%d", s->dir[i].fd);
		snprintf(inner, sizeof(inner), "%s/%s", root, s->dir[i].name);
		char mark = s->dir[i].name[0];
		int r = mark == MOUNTS_VOLUMES_MARK ? mounts_prepare_volumes(root, s->dir[i].fd)
			: mark == MOUNTS_MARK
				? mounts_prepare(root, s->dir[i].name + 1, s->dir[i].fd)
			: mkdir(inner, 0755) < 0 ? -errno
						 : bind_read_only(from, inner);
		if (r < 0)
			return error_set_errno(
				e, r, "making /%s of the jails' tree", s->dir[i].name);
	}

	return 0;
}

/*
 * Names that programs of other sandboxes use: /home/user is the workspace, and `python` is python3 for
 * those that have /home/bin at the end of their PATH.
 */
static int add_home(const char *root)
{
	static const struct {
		const char *target, *at;
	} links[] = { { "/workspace", "home/user" }, { "/usr/bin/python3", "home/bin/python" } };
	char path[PATH_MAX];
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, links[i].at);
		if (symlink(links[i].target, path) < 0)
			return -errno;
	}
	return 0;
}

static int fill(const char *root, const struct shown *shown, struct error *e)
{
	char path[PATH_MAX];
	int r;

	for (size_t i = 0; i < ARRAY_LEN(empty_dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, empty_dirs[i]);
		if (mkdir(path, 0755) < 0)
			return error_set_errno(
				e, -errno, "making %s in the jails' tree", empty_dirs[i]);
	}

	if ((r = add_home(root)) < 0)
		return error_set_errno(e, r, "filling /home of the jails' tree");
	for (size_t i = 0; i < ARRAY_LEN(system_dirs); i++)
		if ((r = add_system_dir(root, system_dirs[i])) < 0)
			return error_set_errno(
				e, r, "showing /%s in the jails' tree", system_dirs[i]);
	if ((r = add_etc(root)) < 0)
		return error_set_errno(e, r, "filling /etc of the jails' tree");
	if ((r = add_font_cache(root)) < 0)
		return error_set_errno(e, r, "showing the font cache in the jails' tree");
	if ((r = machine_add(root)) < 0)
		return error_set_errno(e, r, "describing the machine in the jails' tree");
	if ((r = add_devices(root)) < 0)
		return error_set_errno(e, r, "filling /dev of the jails' tree");
	if ((r = add_proc(root)) < 0)
		return error_set_errno(e, r, "mounting /proc in the jails' tree");
	return show(root, shown, e);
}

int tree_prepare(const char *shown, struct error *e)
{
	umask(022);
	/* Without this, what is mounted below would appear on the host. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_set_errno(e, -errno, "making the mounts private");
	_cleanup_(shown_close) struct shown dirs = { 0 };
	int r = shown_open(&dirs, shown, e);
	if (r < 0)
		return r;
	if (mount("tmpfs", staging, "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=755") < 0)
		return error_set_errno(e, -errno, "mounting the jails' tree");
	r = fill(staging, &dirs, e);
	if (r < 0)
		return r;
	/*
	 * pivot_root onto itself stacks the old root over the new one; detaching it leaves no way
	 * back.
	 */
	if (chdir(staging) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
		umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return error_set_errno(e, -errno, "entering the jails' tree");
	/* Read-only, or files would pass from session to session through it. */
	if (mount(NULL, "/", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) <
		0)
		return error_set_errno(e, -errno, "making the jails' tree read-only");
	return 0;
}

static int mount_sized(const char *at, unsigned long long bytes, unsigned long long inodes,
	const char *mode, bool noexec)
{
	char options[128];
	snprintf(options, sizeof(options), "size=%llu,nr_inodes=%llu,mode=%s,uid=%u,gid=%u", bytes,
		inodes, mode, JAIL_INNER_ID, JAIL_INNER_ID);
	return mount("tmpfs", at, "tmpfs", MS_NOSUID | MS_NODEV | (noexec ? MS_NOEXEC : 0),
		       options) < 0
		       ? -errno
		       : 0;
}

int tree_add_private(unsigned long long disk_bytes, unsigned long long inodes, bool noexec,
	const char **ret_step)
{
	int r;
	*ret_step = "mounting /workspace";
	if ((r = mount_sized("/workspace", disk_bytes, inodes, "755", noexec)) < 0)
		return r;
	*ret_step = "mounting /tmp";
	if ((r = mount_sized("/tmp", disk_bytes, inodes, "1777", noexec)) < 0)
		return r;
	*ret_step = "mounting /dev/shm";
	if ((r = mount_sized("/dev/shm", JAIL_SHM_BYTES, JAIL_INODES, "1777", noexec)) < 0)
		return r;
	*ret_step = "mounting /dev/pts";
	if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		    "newinstance,ptmxmode=0666,mode=0620,max=" TREE_TERMINALS) < 0)
		return -errno;
	return 0;
}
