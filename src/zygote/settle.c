#include "guest/python.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "guest/packages.h"
#include "zygote/settle.h"
#include "zygote/zygote.h"

enum { CACHE_FILE_MAX = 8 << 20, CACHE_FILES = 4 };

struct cached {
	char name[256];
	char *data;
	size_t len;
};

/* matplotlib's list of fonts takes seconds to make; the host's is not to be seen from where we go. */
static size_t read_cache(const char *cache, struct cached files[CACHE_FILES])
{
	size_t n = 0;
	char path[4096];
	DIR *d = opendir(cache);
	for (struct dirent *e = d ? readdir(d) : NULL; e && n < CACHE_FILES; e = readdir(d)) {
		if (strncmp(e->d_name, "fontlist", 8))
			continue;
		snprintf(path, sizeof(path), "%s/%s", cache, e->d_name);
		snprintf(files[n].name, sizeof(files[n].name), "%s", e->d_name);
		if (fd_read_file(path, CACHE_FILE_MAX, &files[n].data, &files[n].len) == 0)
			n++;
	}
	if (d)
		closedir(d);
	return n;
}

static void write_cache(struct cached *files, size_t n)
{
	char path[512];
	mkdir(SETTLED_CACHE, 0700);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), SETTLED_CACHE "/%.255s", files[i].name);
		_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0 && fd_write_full(fd, files[i].data, files[i].len) < 0)
			unlink(path); /* it is made again then, slowly */
		free(files[i].data);
	}
}

const char *settle_in_tree(const char *path, const char *cache)
{
	struct cached files[CACHE_FILES];
	size_t n = read_cache(cache, files);
	if (geteuid() != 0 && setns(ZYGOTE_JAILER_FD, CLONE_NEWUSER) < 0)
		return "joining the jailer's user namespace failed";
	if (setns(ZYGOTE_JAILER_FD, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0)
		return "moving into the jails' tree failed";
	/* Our own, or what a package writes there while it is imported would be seen by others. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64m,mode=700") < 0 || chdir("/") < 0)
		return "making a place for the font cache failed";
	write_cache(files, n);
	packages_add(path, strlen(path));
	return NULL;
}
