/*
 * The store: sets of packages, installed once, seen read-only by all sessions that asked for them.
 *
 *	DIR/objects/ab/cdef…     a file by the SHA-256 of its content; sets that share files share these
 *	DIR/tree/ID/…            a set as sessions see it (/packages/ID): hard links to objects
 *	DIR/sets/ID.json         its record, written last: a set without one does not exist
 *	DIR/sets/ID.files        what is in the tree: hash, size, time and path of every file
 *	DIR/requests/KEY.json    which set (if any) answers a request, and what to say about it
 *	DIR/staging/…            under way
 *
 * ID is random: `tree` can be entered but not listed, so a session reaches the sets it was told of and no others.
 *
 * Several processes may use one store. Installing holds a shared lock on DIR/lock, collecting garbage an exclusive one. Who uses a set
 * holds a shared lock on its record, which keeps it from being removed. What a process that died left in staging is found by its lock
 * and removed. Files are synced before the record is written, so a set that has a record is whole, unless the disk or somebody
 * else's hand changed it afterwards: store_check() sees that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/sha256.h"

struct store;
struct buffer;

enum {
	STORE_ID_LEN = 26,
	STORE_FILES_MAX = 200 * 1000, /* of one set */
	STORE_DEPTH_MAX = 40,
	STORE_RECORD_BYTES = 4 << 20,
	STORE_MANIFEST_BYTES = 64 << 20,
};

/* Opens the store at STATE_DIR/packages and makes what is missing. */
int store_open(const char *state_dir, struct error *e, struct store **ret);
void store_close(struct store *s);

/* The directory that jails show as /packages; the store's. */
const char *store_tree(const struct store *s);

/* ---- using ------------------------------------------------------------------ */

/* The record of a request's answer: JSON text, malloc'd. -ENOENT when there is none. */
int store_request_read(struct store *s, const char *key, char **ret_json, size_t *ret_len);
int store_request_write(
	struct store *s, const char *key, const char *json, size_t len, struct error *e);

/*
 * A set's record, and with it a lock that keeps the set: hold *ret_fd as long as it is in use.
 * -ENOENT.
 */
int store_set_hold(struct store *s, const char *id, int *ret_fd, char **ret_json, size_t *ret_len);

/* Counts as a use for garbage collection. */
void store_set_used(struct store *s, const char *id);

/*
 * Is the tree what its manifest says? Sizes and times only, or (deep) every byte. -EUCLEAN and a
 * text that names the first difference.
 */
int store_check(struct store *s, const char *id, bool deep, struct error *e);

/* ---- installing -------------------------------------------------------------- */

struct store_intake;

/* Begins to take files in. Removes what dead processes left. */
int store_intake_begin(
	struct store *s, uint64_t max_bytes, struct error *e, struct store_intake **ret);

/*
 * Takes over all regular files below `dir` (O_PATH or readable; hostile, so every step is by
 * descriptor, and links, devices and odd names are refused). -EFBIG beyond max_bytes, -ENOSPC when
 * the disk is full.
 */
int store_intake_tree(struct store_intake *i, int dir, struct error *e);

/*
 * Makes it a set, or finds an equal one (*ret_found). Sets are equal when their `identity` is (the
 * list of packages with the hashes of their archives) and every file of them but compiled ones,
 * which the installer makes itself and which differ each time. NULL: the set is never found again,
 * nor another one taken for it. `fields` are members of the set's record, written by a caller that
 * knows their names. ret_id has STORE_ID_LEN + 1 bytes.
 */
int store_intake_commit(struct store_intake *i, const char *identity, const char *fields,
	struct error *e, char *ret_id, bool *ret_found);
void store_intake_finish(struct store_intake *i); /* drops what was not committed; NULL is fine */

/* ---- keeping house ------------------------------------------------------------ */

/* -EBUSY while somebody uses it; -ENOENT. */
int store_remove(struct store *s, const char *id, struct error *e);

struct store_garbage {
	/* removed; busy: would have gone, but is in use */
	unsigned sets, busy, objects, requests, leftovers;
	uint64_t bytes;
};
/*
 * Removes sets unused for `age_s` (0: all), then the least used ones beyond `max_bytes` (0: no
 * limit), and what nothing refers to.
 */
int store_collect(struct store *s, double age_s, uint64_t max_bytes, struct error *e,
	struct store_garbage *ret);

struct store_set {
	char id[STORE_ID_LEN + 1];
	uint64_t bytes, files, used_wall_ns;
	char *json; /* its record, owned by the list */
};
struct store_list {
	struct store_set *sets; /* last used first */
	size_t n;
};
int store_list(struct store *s, struct store_list *ret);
void store_list_finish(struct store_list *l);
