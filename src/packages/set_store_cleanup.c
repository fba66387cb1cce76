/* Lists, removal, garbage collection. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "packages/set_store_internal.h"

enum { NAME_BYTES = 128 };

/* ---- lists ------------------------------------------------------------------------- */

/* A number of the record, which is our own text. */
static uint64_t number_of(const char *json, const char *member)
{
	char key[32];
	snprintf(key, sizeof(key), "\"%s\":", member);
	const char *at = strstr(json, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

struct listing {
	struct store *store;
	struct store_list *list;
	size_t cap;
};

static int list_one(void *userdata, int dir, const struct dirent *entry)
{
	struct listing *l = userdata;
	struct store_set set = { 0 };
	struct stat st;
	size_t len;

	if (strlen(entry->d_name) != STORE_ID_LEN + strlen(".json") ||
		!text_eq(entry->d_name + STORE_ID_LEN, ".json") ||
		fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		store_read(dir, entry->d_name, STORE_RECORD_BYTES, &set.json, &len) < 0)
		return 0;
	memcpy(set.id, entry->d_name, STORE_ID_LEN);
	set.used_wall_ns = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC +
			   (uint64_t)st.st_mtim.tv_nsec;
	set.bytes = number_of(set.json, "bytes");
	set.files = number_of(set.json, "files");
	if (l->list->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 32;
		struct store_set *more = realloc(l->list->sets, cap * sizeof(*more));
		if (!more) {
			free(set.json);
			return -ENOMEM;
		}
		l->list->sets = more;
		l->cap = cap;
	}

	l->list->sets[l->list->n++] = set;
	return 0;
}

static int last_used_first(const void *a, const void *b)
{
	uint64_t x = ((const struct store_set *)a)->used_wall_ns,
		 y = ((const struct store_set *)b)->used_wall_ns;
	return x < y ? 1 : x > y ? -1 : 0;
}

int store_list(struct store *s, struct store_list *ret)
{
	struct store_list list = { 0 };
	struct listing l = { .store = s, .list = &list };
	int r = store_each(s->sets, list_one, &l);
	if (r < 0) {
		store_list_finish(&list);
		return r;
	}
	if (list.n)
		qsort(list.sets, list.n, sizeof(*list.sets), last_used_first);
	*ret = list;
	return 0;
}

void store_list_finish(struct store_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->sets[i].json);
	free(l->sets);
	*l = (struct store_list){ 0 };
}

/* ---- removal ------------------------------------------------------------------------ */

/* The record goes first: from then on the set does not exist, however far the rest comes. */
int store_remove(struct store *s, const char *id, struct error *e)
{
	char record[NAME_BYTES], files[NAME_BYTES];
	if (!store_is_id(id))
		return error_set(e, -ENOENT, "there is no set %.40s in the store", id);
	snprintf(record, sizeof(record), "%s.json", id);
	snprintf(files, sizeof(files), "%s.files", id);
	_cleanup_fd_ int fd = openat(s->sets, record, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return error_set(e, -ENOENT, "there is no set %s in the store", id);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		error_set(e, -EBUSY, "the set %s is in use", id);
		error_remedy(e, "End the sessions that use it, then try again.");
		return -EBUSY;
	}

	if (unlinkat(s->sets, record, 0) < 0)
		return error_set_errno(e, -errno, "removing the set %s", id);
	unlinkat(s->sets, files, 0);
	store_remove_tree(s->tree, id);
	return 0;
}

/* ---- garbage ------------------------------------------------------------------------- */

struct collecting {
	struct store *store;
	struct store_garbage garbage;
};

static int collect_object(void *userdata, int dir, const struct dirent *entry)
{
	struct collecting *c = userdata;
	struct stat st;
	if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		st.st_nlink > 1)
		return 0;
	if (unlinkat(dir, entry->d_name, 0) == 0) {
		c->garbage.objects++;
		c->garbage.bytes += (uint64_t)st.st_blocks * 512;
	}
	return 0;
}

static int collect_objects_below(void *userdata, int dir, const struct dirent *entry)
{
	_cleanup_fd_ int fd = openat(
		dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		store_each(fd, collect_object, userdata);
	return 0;
}

/* The answer of a request whose set is gone (and every unfinished text) is of no use. */
static int collect_request(void *userdata, int dir, const struct dirent *entry)
{
	struct collecting *c = userdata;
	_cleanup_free_ char *json = NULL;
	char id[STORE_ID_LEN + 1] = "", record[NAME_BYTES];
	size_t len;

	if (entry->d_name[0] != '.' &&
		store_read(dir, entry->d_name, STORE_RECORD_BYTES, &json, &len) < 0)
		return 0;
	const char *at = json ? strstr(json, "\"set\":\"") : NULL;
	if (json && !at)
		return 0; /* it needs none */
	if (at)
		snprintf(id, sizeof(id), "%s", at + strlen("\"set\":\""));
	snprintf(record, sizeof(record), "%s.json", id);
	if (!at || faccessat(c->store->sets, record, F_OK, 0) < 0)
		c->garbage.requests += unlinkat(dir, entry->d_name, 0) == 0;
	return 0;
}

static void collect_sets(
	struct collecting *c, const struct store_list *list, double age_s, uint64_t max_bytes)
{
	uint64_t now = clock_wall_ns(), kept = 0;
	for (size_t i = 0; i < list->n; i++) { /* the last used ones are first, and stay longest */
		const struct store_set *set = &list->sets[i];
		double age = now > set->used_wall_ns ? (double)(now - set->used_wall_ns) / 1e9 : 0;
		kept += set->bytes;
		if (age_s > 0 ? age < age_s && (!max_bytes || kept <= max_bytes)
			      : max_bytes && kept <= max_bytes)
			continue;
		int r = store_remove(c->store, set->id, NULL);
		c->garbage.busy += r == -EBUSY;
		c->garbage.sets += r == 0;
		if (r == 0)
			kept -= set->bytes;
	}
}

int store_collect(struct store *s, double age_s, uint64_t max_bytes, struct error *e,
	struct store_garbage *ret)
{
	struct collecting c = { .store = s };
	struct store_list list = { 0 };
	_cleanup_fd_ int lock = store_lock(s, LOCK_EX | LOCK_NB);

	if (lock < 0) {
		error_set_errno(e, lock, "%s",
			lock == -EWOULDBLOCK ? "packages are being installed"
					     : "locking the package store");
		error_remedy(e, "Try again when that is over.");
		return lock;
	}

	int r = store_list(s, &list);
	if (r < 0)
		return error_set_errno(e, r, "reading the package store");
	c.garbage.leftovers = store_remove_leftovers(s);
	collect_sets(&c, &list, age_s, max_bytes);
	store_list_finish(&list);
	store_each(s->objects, collect_objects_below, &c);
	store_each(s->requests, collect_request, &c);
	*ret = c.garbage;
	return 0;
}
