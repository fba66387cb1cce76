/*
 * Volumes: directories in the state directory that outlive sessions. A client creates a volume by
 * name with a quota, and sessions mount it: one session may write to it, or any number of sessions
 * may read it. Each belongs to one token.
 *
 * The kernel has no quota for a directory. The size is measured while a session can write to the
 * volume, up to ten times a second, and code that exceeds the quota is stopped (session_volumes.c).
 *
 * If the server is root, the files of each volume have a user id of their own, which the jail of
 * the session that writes gets. So a session can write to at most one volume.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "jail/jail.h"

struct volumes;
struct volume;

struct volumes_config {
	uv_loop_t *loop;
	const char *state_dir;
	unsigned max; /* of one owner; 0: there are none */
	uint64_t
		most_bytes; /* the largest quota, and that of a volume which is created without one */
	char *const *keys; /* of owner 1, 2 …: a text that is the same after a restart; or NULL */
	/*
	 * A volume exceeds its quota; `writer` is whoever can write to it. NULL: forks of a session
	 * that has ended still do, through descriptors that it gave them.
	 */
	void (*on_full)(void *userdata, void *writer, const struct volume *v, bool again);
	void *userdata;
};

struct volume_info {
	const char *name;
	uint64_t quota_bytes, bytes, files, created_wall_ns;
	bool full;          /* it exceeds its quota, or the number of files */
	const void *writer; /* or NULL */
	unsigned readers;
};

int volumes_create(const struct volumes_config *c, struct error *e, struct volumes **ret);

/* All volumes must be free. `done` is called when the handles are closed. NULL is fine. */
void volumes_destroy(struct volumes *v);

/* The directory that jails are shown (MOUNTS_VOLUMES_MARK); NULL without volumes. */
const char *volumes_directory(const struct volumes *v);

/* quota_bytes 0: the largest. Slugs: invalid_field, volume_exists, too_many_volumes. */
int volumes_make(struct volumes *v, uint64_t owner, const char *name, uint64_t quota_bytes,
	struct error *e, struct volume **ret);

/* -ENOENT, slug volume_not_found. `v` may be NULL: there are no volumes. */
int volumes_find(
	struct volumes *v, uint64_t owner, const char *name, struct error *e, struct volume **ret);

/* Number `i` of the owner's volumes, by name; NULL when there are no more. */
struct volume *volumes_next(struct volumes *v, uint64_t owner, const struct volume *after);

/* Slugs: volume_not_found, volume_in_use. The files are removed afterwards. */
int volumes_remove(struct volumes *v, uint64_t owner, const char *name, struct error *e);

void volume_info(const struct volume *v, struct volume_info *ret);

/*
 * Takes it for reading, or (with a writer) for writing. `beside`: for reading although a session
 * writes, for forks of that session. Slugs: volume_in_use, volume_full.
 */
int volume_take(struct volume *v, void *writer, bool beside, struct error *e);
void volume_give_back(struct volume *v, const void *writer);

/* What a jail is told: the name of the directory, and the user id of its files. */
const char *volume_id(const struct volume *v);
uint32_t volume_host_id(const struct volume *v);
