/* The volumes of a session (volumes.h): taken when it is created, given back when it ends. */
#pragma once

#include "session/volumes/volumes.h"

struct session;
struct sessions;
struct jail_mounts;

struct session_volumes {
	unsigned n;
	struct {
		struct volume *volume;
		bool writable;
		char at[JAIL_MOUNT_PATH];
	} volume[JAIL_MOUNTS_MAX];
};

/*
 * Takes the volumes that its params name ("NAME=/mnt/x", "NAME=/mnt/x:ro"), all or none.
 * `is_fork`: it may read what a session writes to.
 */
int session_volumes_take(struct session *s, bool is_fork, struct error *e);
void session_volumes_give_back(struct session *s);

/* Adds them to what its jail mounts. The id of its user on the host, or 0 when any will do. */
uint32_t session_volumes_fill(const struct session *s, struct jail_mounts *m);

/* For a copy of the session: the same list, all for reading. NULL: none, or no memory. */
char **session_volumes_copy(char *const *asked);

/* In struct volumes_config. */
void session_volume_full(void *userdata, void *writer, const struct volume *v, bool again);
