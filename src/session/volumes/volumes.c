#include "session/volumes/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/sha256.h"
#include "base/text.h"
#include "jail/mounts.h"
#include "session/volumes/volumes_internal.h"

/* ---- the list ------------------------------------------------------------------------- */

static void key_of(const struct volumes *v, uint64_t owner, char ret[VOLUME_KEY + 1])
{
	static const char purpose[] = "glovebox volumes of a client";
	char hex[SHA256_HEX + 1];
	char *const *keys = v->config.keys;
	struct sha256 sum;
	uint64_t n = 0;

	while (keys && keys[n])
		n++;
	sha256_init(&sum);
	sha256_add(&sum, purpose, sizeof(purpose));
	if (owner && owner <= n)
		sha256_add(&sum, keys[owner - 1], strlen(keys[owner - 1]));
	sha256_end(&sum, hex);
	snprintf(ret, VOLUME_KEY + 1, "%.*s", VOLUME_KEY, hex);
}

int volumes_create(const struct volumes_config *c, struct error *e, struct volumes **ret)
{
	struct volumes *v = calloc(1, sizeof(*v));
	if (!v)
		return error_set(e, -ENOMEM, "out of memory");

	v->config = *c;
	v->records = v->data = -1;
	TAILQ_INIT(&v->list);
	uv_timer_init(c->loop, &v->timer);
	v->timer.data = v;
	int r = volume_records_open(v, e);
	if (r >= 0 && (r = volume_records_load(v)) < 0)
		error_set_errno(e, r, "reading the records of volumes");
	if (r < 0) {
		volumes_destroy(v);
		return r;
	}

	volumes_wake(v);
	*ret = v;
	return 0;
}

static void on_closed(uv_handle_t *h)
{
	free(h->data);
}

static void free_volume(struct volume *one)
{
	volume_forget_walk(one);
	TAILQ_REMOVE(&one->volumes->list, one, link);
	one->volumes->n--;
	fd_close(one->lock);
	free(one);
}

void volumes_destroy(struct volumes *v)
{
	if (!v)
		return;
	while (!TAILQ_EMPTY(&v->list))
		free_volume(TAILQ_FIRST(&v->list));
	volume_walk_stop(&v->walk.state);
	fd_close(v->records);
	fd_close(v->data);
	free(v->directory);
	uv_close((uv_handle_t *)&v->timer, on_closed);
}

const char *volumes_directory(const struct volumes *v)
{
	return v ? v->directory : NULL;
}

static struct volume *search(struct volumes *v, const char *key, const char *name)
{
	struct volume *one;
	TAILQ_FOREACH (one, &v->list, link)
		if (!strcmp(one->key, key) && !strcmp(one->name, name))
			return one;
	return NULL;
}

struct volume *volumes_next(struct volumes *v, uint64_t owner, const struct volume *after)
{
	char key[VOLUME_KEY + 1];
	struct volume *one;
	if (!v)
		return NULL;
	key_of(v, owner, key);
	TAILQ_FOREACH (one, &v->list, link)
		if (!strcmp(one->key, key) && (!after || strcmp(one->name, after->name) > 0))
			return one;
	return NULL;
}

int volumes_find(
	struct volumes *v, uint64_t owner, const char *name, struct error *e, struct volume **ret)
{
	char key[VOLUME_KEY + 1];
	struct volume *one = NULL;
	if (v) {
		key_of(v, owner, key);
		one = search(v, key, name);
	}

	if (!one) {
		error_set(e, -ENOENT, "there is no volume '%.64s'", name);
		error_remedy(e, "{create_volume}");
		return error_slug(e, "volume_not_found");
	}

	*ret = one;
	return 0;
}

void volume_insert(struct volumes *v, struct volume *new)
{
	struct volume *before;
	TAILQ_FOREACH (before, &v->list, link) {
		int order = strcmp(before->key, new->key);
		if (order > 0 || (order == 0 && strcmp(before->name, new->name) > 0))
			break;
	}
	if (before)
		TAILQ_INSERT_BEFORE(before, new, link);
	else
		TAILQ_INSERT_TAIL(&v->list, new, link);
	v->n++;
}

/* ---- making and removing -------------------------------------------------------------- */

static unsigned count(struct volumes *v, uint64_t owner)
{
	unsigned n = 0;
	for (struct volume *one = NULL; (one = volumes_next(v, owner, one));)
		n++;
	return n;
}

static int check_new(
	struct volumes *v, uint64_t owner, const char *name, uint64_t quota_bytes, struct error *e)
{
	struct error none = { 0 };
	struct volume *there;

	if (!mounts_is_name(name)) {
		error_set(e, -EINVAL, "name: '%.64s' cannot be the name of a volume", name);
		error_remedy(e,
			"use at most 31 letters, digits and _, and not the name of a system directory");
		return error_slug(e, "invalid_field");
	}

	if (!v || count(v, owner) >= v->config.max || v->n >= LIMIT_VOLUMES) {
		error_set(e, -ENOSPC,
			v ? "all %u volumes are in use" : "this server has no volumes",
			v ? v->config.max : 0);
		error_remedy(e, "Delete a volume, or {raise:max-volumes}.");
		return error_slug(e, "too_many_volumes");
	}

	if (quota_bytes > v->config.most_bytes) {
		error_set(e, -ERANGE, "quota_bytes: at most %llu on this server",
			(unsigned long long)v->config.most_bytes);
		error_remedy(e, "Ask for less, or {raise:max-volume-bytes}.");
		return error_slug(e, "invalid_field");
	}

	if (volumes_find(v, owner, name, &none, &there) == 0) {
		error_set(e, -EEXIST, "there is a volume '%s' already", name);
		error_remedy(e, "Use it, choose another name, or delete it first.");
		return error_slug(e, "volume_exists");
	}

	return 0;
}

static unsigned free_number(const struct volumes *v)
{
	const struct volume *one = NULL;
	for (unsigned number = 0;; number++) {
		TAILQ_FOREACH (one, &v->list, link)
			if (one->number == number)
				break;
		if (!one)
			return number; /* there are fewer volumes than numbers */
	}
}

static int make_id(char ret[VOLUME_ID + 1])
{
	unsigned char bytes[VOLUME_ID / 2];
	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int volumes_make(struct volumes *v, uint64_t owner, const char *name, uint64_t quota_bytes,
	struct error *e, struct volume **ret)
{
	int r = check_new(v, owner, name, quota_bytes, e);
	if (r < 0)
		return r;

	struct volume *one = calloc(1, sizeof(*one));
	if (!one)
		return error_set(e, -ENOMEM, "out of memory");
	one->volumes = v;
	one->lock = -1;
	one->number = free_number(v);
	one->quota_bytes = quota_bytes ? quota_bytes : v->config.most_bytes;
	one->created_wall_ns = clock_wall_ns();
	key_of(v, owner, one->key);
	snprintf(one->name, sizeof(one->name), "%s", name);
	if ((r = make_id(one->id)) < 0)
		error_set_errno(e, r, "making the id of a volume");
	if (r == 0)
		r = volume_make_directory(one, e);
	if (r == 0 && (r = volume_record_write(one, e)) < 0)
		unlinkat(v->data, one->id, AT_REMOVEDIR);
	if (r < 0) {
		free(one);
		return r;
	}

	volume_insert(v, one);
	*ret = one;
	return 0;
}

static int in_use(const struct volume *one, struct error *e)
{
	if (one->writer)
		error_set(e, -EBUSY, "a session writes to the volume '%s'", one->name);
	else if (one->readers)
		error_set(e, -EBUSY, "%u sessions read the volume '%s'", one->readers, one->name);
	else
		error_set(e, -EBUSY, "another server uses the volume '%s'", one->name);
	error_remedy(e,
		"End the sessions that have it. One session can write to a volume, or several can read it (\":ro\").");
	return error_slug(e, "volume_in_use");
}

static int lock_record(struct volume *one, bool alone)
{
	char name[VOLUME_RECORD_NAME + 1];
	volume_record_name(one, name);
	if (one->lock < 0)
		one->lock = openat(one->volumes->records, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (one->lock >= 0 && flock(one->lock, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0)
		return 0;
	int err = errno;
	fd_close_clear(&one->lock);
	return -err;
}

int volumes_remove(struct volumes *v, uint64_t owner, const char *name, struct error *e)
{
	char record[VOLUME_RECORD_NAME + 1], deleted[VOLUME_ID + 1];
	struct volume *one;
	int r = volumes_find(v, owner, name, e, &one);

	if (r < 0)
		return r;
	if (one->writer || one->readers || lock_record(one, true) < 0)
		return in_use(one, e);
	/* the record first: from then on the volume does not exist, however far the rest comes */
	volume_record_name(one, record);
	if (unlinkat(v->records, record, 0) < 0) {
		r = error_set_errno(e, -errno, "deleting the volume %s", name);
		fd_close_clear(&one->lock);
		return r;
	}

	snprintf(deleted, sizeof(deleted), "%c%.*s", VOLUME_DELETED, VOLUME_ID - 1, one->id);
	renameat(v->data, one->id, v->data, deleted);
	free_volume(one);
	volumes_wake(v);
	return 0;
}

/* ---- use ------------------------------------------------------------------------------ */

int volume_take(struct volume *v, void *writer, bool beside, struct error *e)
{
	bool free_for_it = writer ? !v->writer && !v->readers : !v->writer || beside;
	if (!free_for_it || (!v->writer && !v->readers && lock_record(v, writer != NULL) < 0))
		return in_use(v, e);
	if (writer && volumes_lack_space(v->volumes)) {
		fd_close_clear(&v->lock);
		error_set(e, -ENOSPC, "less than 5 %% of the file system of the volumes is free");
		error_remedy(e, "It can still be read (\":ro\"). Make room on the server's disk.");
		return error_slug(e, "volume_full");
	}

	if (writer && volume_is_full(v) && v->bytes > 2 * v->quota_bytes) {
		fd_close_clear(&v->lock);
		error_set(e, -ENOSPC, "the volume '%s' has %llu bytes, and its quota is %llu",
			v->name, (unsigned long long)v->bytes, (unsigned long long)v->quota_bytes);
		error_remedy(
			e, "It can still be read (\":ro\"). Copy what is needed, and delete it.");
		return error_slug(e, "volume_full");
	}

	if (!writer) {
		v->readers++;
		v->forked = v->forked || v->writer;
		return 0;
	}

	volume_forget_walk(v);
	v->writer = writer;
	v->told = false;
	v->wants_walk = true;
	v->ceiling_bytes = v->bytes > v->quota_bytes ? v->bytes : v->quota_bytes;
	v->ceiling_files = LIMIT_VOLUME_FILES;
	volumes_wake(v->volumes);
	return 0;
}

void volume_give_back(struct volume *v, const void *writer)
{
	if (writer && v->writer == writer) {
		v->writer = NULL;
		volume_settle(v);
	} else if (v->readers) {
		v->readers--;
	}
	if (!v->writer && !v->readers) {
		fd_close_clear(&v->lock);
		v->forked = false;
	}
}

void volume_info(const struct volume *v, struct volume_info *ret)
{
	*ret = (struct volume_info){ .name = v->name,
		.quota_bytes = v->quota_bytes,
		.bytes = v->bytes,
		.files = v->files,
		.created_wall_ns = v->created_wall_ns,
		.full = volume_is_full(v),
		.writer = v->writer,
		.readers = v->readers };
}

const char *volume_id(const struct volume *v)
{
	return v->id;
}

uint32_t volume_host_id(const struct volume *v)
{
	return JAIL_VOLUME_HOST_ID + v->number;
}
