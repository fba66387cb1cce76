/* The records of volumes: one small file for each, written once. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/text.h"
#include "jail/mounts.h"
#include "session/volumes/volumes_internal.h"

enum { RECORD_MAX = 256 };
#define HEX "0123456789abcdef"

static int open_directory(const char *path, mode_t mode)
{
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return -errno;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int volume_records_open(struct volumes *v, struct error *e)
{
	_cleanup_free_ char *top = NULL, *records = NULL;
	const char *dir = v->config.state_dir;
	if (asprintf(&top, "%s/volumes", dir) < 0 ||
		asprintf(&records, "%s/volumes/records", dir) < 0 ||
		asprintf(&v->directory, "%s/volumes/data", dir) < 0)
		return error_set(e, -ENOMEM, "out of memory");

	_cleanup_fd_ int above = open_directory(top, 0700);
	if (above >= 0)
		v->records = open_directory(records, 0700);
	/* the init of a jail passes through it, which is nobody there */
	if (v->records >= 0)
		v->data = open_directory(v->directory, 0711);
	int r = above < 0 ? above : v->records < 0 ? v->records : v->data;
	return r < 0 ? error_set_errno(e, r, "making the directories of volumes in %s", dir) : 0;
}

void volume_record_name(const struct volume *one, char ret[VOLUME_RECORD_NAME + 1])
{
	snprintf(ret, VOLUME_RECORD_NAME + 1, "%s.%s", one->key, one->name);
}

int volume_record_write(struct volume *one, struct error *e)
{
	char name[VOLUME_RECORD_NAME + 1], temporary[VOLUME_RECORD_NAME + 8], text[RECORD_MAX];
	int n = snprintf(text, sizeof(text), "1 %s %u %" PRIu64 " %" PRIu64 "\n", one->id,
		one->number, one->quota_bytes, one->created_wall_ns);
	int dir = one->volumes->records;

	volume_record_name(one, name);
	snprintf(temporary, sizeof(temporary), "%s.new", name);
	_cleanup_fd_ int fd = openat(
		dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : fd_write_full(fd, text, (size_t)n);
	if (r >= 0 && (fsync(fd) < 0 || renameat(dir, temporary, dir, name) < 0))
		r = -errno;
	return r < 0 ? error_set_errno(e, r, "writing the record of the volume %s", one->name) : 0;
}

int volume_make_directory(struct volume *one, struct error *e)
{
	int data = one->volumes->data;
	if (mkdirat(data, one->id, 0755) < 0)
		return error_set_errno(e, -errno, "making the volume %s", one->name);
	uid_t id = volume_host_id(one);
	_cleanup_fd_ int fd = openat(data, one->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && (geteuid() != 0 || fchown(fd, id, id) == 0))
		return 0;
	int err = errno;
	unlinkat(data, one->id, AT_REMOVEDIR);
	return error_set_errno(e, -err, "making the volume %s", one->name);
}

/* ---- reading them -------------------------------------------------------------------- */

static bool parse(struct volume *one, const char *record, const char *text)
{
	char id[VOLUME_ID + 1], rest;
	unsigned version;
	const char *name = record + VOLUME_KEY + 1;

	if (strspn(record, HEX) != VOLUME_KEY || record[VOLUME_KEY] != '.' || !mounts_is_name(name))
		return false;
	if (sscanf(text, "%u %20s %u %" SCNu64 " %" SCNu64 " %c", &version, id, &one->number,
		    &one->quota_bytes, &one->created_wall_ns, &rest) != 5 ||
		version != 1 || strspn(id, HEX) != VOLUME_ID || one->number >= LIMIT_VOLUMES)
		return false;
	memcpy(one->id, id, sizeof(id));
	snprintf(one->key, sizeof(one->key), "%.*s", VOLUME_KEY, record);
	snprintf(one->name, sizeof(one->name), "%s", name);
	return true;
}

static void load_one(struct volumes *v, const char *record)
{
	char path[64 + NAME_MAX];
	_cleanup_free_ char *text = NULL;
	struct volume *one = calloc(1, sizeof(*one));

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", v->records, record);
	if (!one || fd_read_file(path, RECORD_MAX, &text, NULL) < 0 || !parse(one, record, text)) {
		log_warning("the record %s of a volume cannot be read: ignored", record);
		free(one);
		return;
	}

	one->volumes = v;
	one->lock = -1;
	one->wants_walk = true;
	volume_insert(v, one);
}

/* What could not be removed before the last end of the server is tried again. */
static void look_for_left(struct volumes *v)
{
	int fd = openat(v->data, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char again[NAME_MAX + 1];
	for (struct dirent *f; dir && (f = readdir(dir));) {
		if (f->d_name[0] != VOLUME_LEFT)
			continue;
		snprintf(again, sizeof(again), "%c%s", VOLUME_DELETED, f->d_name + 1);
		renameat(v->data, f->d_name, v->data, again);
	}
	if (dir)
		closedir(dir);
}

int volume_records_load(struct volumes *v)
{
	look_for_left(v);
	int fd = openat(v->records, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return -errno;
	for (struct dirent *f; (f = readdir(dir)) && v->n < LIMIT_VOLUMES;) {
		size_t len = strlen(f->d_name);
		if (f->d_name[0] != '.' && (len < 4 || !text_eq(f->d_name + len - 4, ".new")))
			load_one(v, f->d_name);
	}
	closedir(dir);
	return 0;
}
