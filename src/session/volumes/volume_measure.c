/*
 * Measuring volumes, and removing the files of those that were deleted: one walk at a time, in
 * steps between which the loop serves others.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "session/volumes/volumes_internal.h"

enum {
	STEP_ENTRIES = 256, /* looked at in one turn of the loop: less than a millisecond */
	LOOK_MS = 100,      /* between two measurements of the free space of the file system */
	WALK_REST = 5,      /* after a walk: this many times as long there is none */
	SLACK_PART = 4,     /* of what is left of the quota: so much may be written unseen */
	SLACK_LEAST = 64 * 1024,
	KEPT_FREE_PART = 20, /* of the file system */
	SURELY_S = 5,        /* after this time it is measured in any case */
	REMOVAL_TRIES =
		100, /* one in LOOK_MS: processes of a session that has ended die meanwhile */
};

/* The first measurement without a writer tells. */
#define NOT_KNOWN UINT64_MAX

bool volume_is_full(const struct volume *one)
{
	return one->too_deep || one->files > LIMIT_VOLUME_FILES || one->bytes > one->quota_bytes;
}

/* Code of a session may write to it. */
static bool is_watched(const struct volume *one)
{
	return one->writer || (one->forked && one->readers);
}

void volume_settle(struct volume *one)
{
	volume_forget_walk(one);
	one->told = false;
	one->wants_walk = true;
	one->ceiling_bytes = one->ceiling_files = NOT_KNOWN;
	volumes_wake(one->volumes);
}

static void note_free_space(struct volume *one)
{
	struct statvfs fs;
	if (fstatvfs(one->volumes->data, &fs) < 0)
		return;
	one->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	one->free_files = fs.f_ffree;
}

/*
 * Whoever writes takes space from the file system, as all others do. So no walk is needed while
 * hardly any space is taken.
 */
static bool may_have_grown(const struct volume *one, uint64_t now_ns)
{
	uint64_t left = one->ceiling_bytes > one->bytes ? one->ceiling_bytes - one->bytes : 0;
	uint64_t slack = left / SLACK_PART > SLACK_LEAST ? left / SLACK_PART : SLACK_LEAST;
	struct statvfs fs;

	if (!one->measured_ns || now_ns - one->measured_ns > SURELY_S * NSEC_PER_SEC ||
		fstatvfs(one->volumes->data, &fs) < 0)
		return true;
	return (uint64_t)fs.f_bavail * fs.f_frsize + slack < one->free_bytes ||
	       (uint64_t)fs.f_ffree + LIMIT_VOLUME_FILES / 64 < one->free_files;
}

static int begin_walk(struct volumes *v, struct volume *one, uint64_t now_ns)
{
	/* files that a program made for its user alone: other sessions have other users */
	bool open_up = geteuid() == 0 && !one->writer;
	int fd = openat(v->data, one->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno
		       : volume_walk_start(&v->walk.state, fd,
				 open_up ? VOLUME_WALK_READABLE : VOLUME_WALK_COUNT);

	fd_close(fd);
	one->wants_walk = false;
	one->measured_ns = now_ns;
	note_free_space(one);
	if (r < 0) {
		log_warning("the volume %s cannot be measured: %s", one->name, strerror(-r));
		return r;
	}

	v->walk.on = true;
	v->walk.of = one;
	v->walk.began_ns = now_ns;
	return 0;
}

/* Looks for the directory of a volume that was deleted. */
static void begin_removal(struct volumes *v)
{
	int fd = openat(v->data, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *f;

	while (dir && (f = readdir(dir))) {
		if (f->d_name[0] != VOLUME_DELETED || strlen(f->d_name) > VOLUME_ID)
			continue;
		int top = openat(
			v->data, f->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int r = top < 0 ? -errno
				: volume_walk_start(&v->walk.state, top, VOLUME_WALK_REMOVE);
		fd_close(top);
		if (r < 0)
			continue;
		snprintf(v->walk.removing, sizeof(v->walk.removing), "%s", f->d_name);
		v->walk.on = true;
		v->walk.of = NULL;
		v->walk.began_ns = clock_now_ns();
		break;
	}

	if (dir)
		closedir(dir);
	if (!v->walk.on)
		v->walk.tries = 0;
}

/* Tries again, for processes of a session that has just ended may have added files meanwhile. */
static void end_removal(struct volumes *v)
{
	char left[VOLUME_ID + 1];
	v->walk.removed = unlinkat(v->data, v->walk.removing, AT_REMOVEDIR) == 0;
	v->walk.tries = v->walk.removed ? 0 : v->walk.tries + 1;
	if (v->walk.tries < REMOVAL_TRIES)
		return; /* if it was removed, there may be another one */

	log_warning("files of a deleted volume cannot be removed: %s", strerror(errno));
	snprintf(left, sizeof(left), "%c%s", VOLUME_LEFT, v->walk.removing + 1);
	v->walk.removed = renameat(v->data, v->walk.removing, v->data, left) == 0;
	v->walk.tries = 0;
}

static bool is_beyond(const struct volume *one)
{
	return (one->writer && one->too_deep) || one->files > one->ceiling_files ||
	       one->bytes > one->ceiling_bytes;
}

static void end_walk(struct volumes *v, uint64_t now_ns)
{
	struct volume *one = v->walk.of;
	v->walk.on = false;
	v->walk.of = NULL;
	v->walk.took_ns = now_ns - v->walk.began_ns;
	if (!one) {
		end_removal(v);
		return;
	}

	bool grew = v->walk.state.bytes > one->bytes || v->walk.state.files > one->files;
	one->bytes = v->walk.state.bytes;
	one->files = v->walk.state.files;
	one->too_deep = v->walk.state.too_deep;
	if (one->ceiling_bytes == NOT_KNOWN) {
		one->ceiling_bytes = one->bytes > one->quota_bytes ? one->bytes : one->quota_bytes;
		one->ceiling_files = one->files > LIMIT_VOLUME_FILES ? one->files
								     : LIMIT_VOLUME_FILES;
	}

	if (!is_watched(one) || !is_beyond(one)) {
		one->told = false;
		return;
	}

	if (one->told && !grew)
		return; /* its code was stopped, and it stopped */
	bool again = one->told;
	one->told = true;
	v->config.on_full(v->config.userdata, one->writer, one, again);
}

/*
 * Code can keep a walk from ending: it moves directories to names that the walk has not come to.
 * What was counted until now is enough then.
 */
static bool is_endless(const struct volumes *v)
{
	const struct volume *one = v->walk.of;
	return one && is_watched(one) &&
	       (v->walk.state.files / 2 > LIMIT_VOLUME_FILES ||
		       v->walk.state.bytes / 2 > one->ceiling_bytes);
}

bool volumes_lack_space(const struct volumes *v)
{
	struct statvfs fs;
	return fstatvfs(v->data, &fs) == 0 && fs.f_bavail < fs.f_blocks / KEPT_FREE_PART;
}

/*
 * The walk does not see files that were removed and are still open. Whatever fills the file system:
 * sessions that can write to a volume end before it is full.
 */
static void keep_free_space(struct volumes *v)
{
	struct volume *one;
	TAILQ_FOREACH (one, &v->list, link)
		if (is_watched(one) && volumes_lack_space(v)) {
			log_warning(
				"the file system of the volumes is nearly full: the session that writes to %s ends",
				one->name);
			v->config.on_full(v->config.userdata, one->writer, one, true);
			return; /* the next one in another turn, if that is needed */
		}
}

static struct volume *next_to_measure(struct volumes *v, uint64_t now_ns)
{
	struct volume *one;
	TAILQ_FOREACH (one, &v->list, link)
		if (one->wants_walk)
			return one;
	TAILQ_FOREACH (one, &v->list, link)
		if (is_watched(one) && may_have_grown(one, now_ns) &&
			now_ns - one->measured_ns > WALK_REST * v->walk.took_ns)
			return one;
	return NULL;
}

static bool somebody_writes(const struct volumes *v)
{
	const struct volume *one;
	TAILQ_FOREACH (one, &v->list, link)
		if (is_watched(one) || one->wants_walk)
			return true;
	return false;
}

void volume_on_timer(uv_timer_t *timer)
{
	struct volumes *v = timer->data;
	uint64_t now_ns = clock_now_ns();

	keep_free_space(v);
	if (!v->walk.on) {
		struct volume *one = next_to_measure(v, now_ns);
		if (one)
			begin_walk(v, one, now_ns);
		else
			begin_removal(v);
	}

	if (v->walk.on && (!volume_walk_step(&v->walk.state, STEP_ENTRIES) || is_endless(v))) {
		volume_walk_stop(&v->walk.state);
		end_walk(v, clock_now_ns());
	}
	bool more = v->walk.on || v->walk.removed || next_to_measure(v, clock_now_ns());
	v->walk.removed = false;
	if (more || v->walk.tries || somebody_writes(v))
		uv_timer_start(timer, volume_on_timer, more ? 0 : LOOK_MS, 0);
}

void volumes_wake(struct volumes *v)
{
	if (!uv_is_active((uv_handle_t *)&v->timer))
		uv_timer_start(&v->timer, volume_on_timer, 0, 0);
}

void volume_forget_walk(struct volume *one)
{
	struct volumes *v = one->volumes;
	if (!v->walk.on || v->walk.of != one)
		return;
	volume_walk_stop(&v->walk.state);
	v->walk.on = false;
	v->walk.of = NULL;
}
