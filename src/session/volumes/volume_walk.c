#include "session/volumes/volume_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/log.h"

enum { BLOCK_BYTES = 512 }; /* of st_blocks */

static int open_level(struct volume_walk *w, int above, const char *name)
{
	int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		int err = errno;
		if (fd >= 0)
			fd_close(fd);
		return -err;
	}

	w->level[w->depth].dir = dir;
	snprintf(w->level[w->depth].name, sizeof(w->level[w->depth].name), "%s", name);
	w->depth++;
	return 0;
}

int volume_walk_start(struct volume_walk *w, int dir, enum volume_walk_kind kind)
{
	*w = (struct volume_walk){ .kind = kind };
	return open_level(w, dir, ".");
}

static void close_level(struct volume_walk *w)
{
	closedir(w->level[--w->depth].dir);
}

void volume_walk_stop(struct volume_walk *w)
{
	while (w->depth)
		close_level(w);
}

/*
 * By a descriptor that follows no link: code may have put a link to a file of the machine in the
 * place of the name meanwhile.
 */
static void add_mode(int dir, const char *name, mode_t more)
{
	char path[64];
	struct stat st;
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) &&
		(st.st_mode & more) != more &&
		fchmodat(AT_FDCWD, path, (st.st_mode | more) & 0777, 0) < 0)
		log_debug("changing the mode of a file of a volume: %s", strerror(errno));
	fd_close(fd);
}

static void make_readable(int dir, const char *name, const struct stat *st)
{
	mode_t more = S_ISDIR(st->st_mode) ? 0555 : S_ISREG(st->st_mode) ? 0444 : 0;
	if ((st->st_mode & more) != more)
		add_mode(dir, name, more);
}

/*
 * A directory that is deeper than the walk may go is moved to the top, where it is found again. Code
 * that had the volume could not know the name, and has none of its own there.
 */
static void hoist(struct volume_walk *w, int dir, const char *name)
{
	char to[64];
	uint64_t number;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return;
	snprintf(to, sizeof(to), ".hoisted-%016llx", (unsigned long long)number);
	if (renameat(dir, name, dirfd(w->level[0].dir), to) == 0)
		rewinddir(w->level[0].dir);
}

static void enter(struct volume_walk *w, int dir, const char *name, const struct stat *st)
{
	/* a directory may be closed for its own owner, who the daemon of an ordinary user is */
	if ((st->st_mode & 0700) != 0700)
		add_mode(dir, name, 0700);
	if (w->depth < LIMIT_VOLUME_DEPTH) {
		open_level(w, dir, name);
	} else if (w->kind == VOLUME_WALK_REMOVE) {
		hoist(w, dir, name);
	} else {
		w->too_deep = true;
	}
}

static void look_at(struct volume_walk *w, const char *name)
{
	int dir = dirfd(w->level[w->depth - 1].dir);
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return; /* removed since */
	w->files++;
	w->bytes += (uint64_t)st.st_blocks * BLOCK_BYTES;
	if (w->kind == VOLUME_WALK_READABLE)
		make_readable(dir, name, &st);
	if (S_ISDIR(st.st_mode))
		enter(w, dir, name, &st);
	else if (w->kind == VOLUME_WALK_REMOVE)
		unlinkat(dir, name, 0);
}

static void leave_level(struct volume_walk *w)
{
	const char *name = w->level[w->depth - 1].name;
	close_level(w);
	if (w->depth && w->kind == VOLUME_WALK_REMOVE)
		unlinkat(dirfd(w->level[w->depth - 1].dir), name, AT_REMOVEDIR);
}

bool volume_walk_step(struct volume_walk *w, unsigned entries)
{
	for (; w->depth && entries; entries--) {
		struct dirent *f = readdir(w->level[w->depth - 1].dir);
		if (!f)
			leave_level(w);
		else if (strcmp(f->d_name, ".") && strcmp(f->d_name, ".."))
			look_at(w, f->d_name);
	}
	return w->depth > 0;
}
