/* What the files of volumes share; not for others. */
#pragma once

#include <sys/queue.h>

#include "session/volumes/volume_walk.h"
#include "session/volumes/volumes.h"

/*
 * The first letter of a directory whose volume was deleted; and of one whose files could not be
 * removed, which the next start tries again.
 */
enum { VOLUME_DELETED = '-', VOLUME_LEFT = '+' };

enum { VOLUME_KEY = 16, VOLUME_ID = 20, VOLUME_RECORD_NAME = VOLUME_KEY + 1 + JAIL_MOUNT_NAME };

struct volume {
	TAILQ_ENTRY(volume) link; /* sorted by key, then name */
	struct volumes *volumes;
	char key[VOLUME_KEY + 1], name[JAIL_MOUNT_NAME], id[VOLUME_ID + 1];
	unsigned number; /* its user id on the host, from JAIL_VOLUME_HOST_ID */
	uint64_t quota_bytes, created_wall_ns;
	/* when last measured */
	uint64_t bytes, files;
	/* what it may have now: the quota, or what it had when its writer came or went */
	uint64_t ceiling_bytes, ceiling_files;
	uint64_t free_bytes, free_files; /* of the file system, at that time */
	uint64_t measured_ns;            /* when that was; 0: never */
	bool too_deep, told, wants_walk;
	/* Forks of its writer read it: their code may have got descriptors that can write. */
	bool forked;
	void *writer;
	unsigned readers;
	int lock; /* of its record, while it is taken; else -1 */
};

TAILQ_HEAD(volume_list, volume);

struct volumes {
	struct volumes_config config;
	char *directory;
	int records, data; /* directories */
	struct volume_list list;
	unsigned n;
	uv_timer_t timer; /* runs while something is to be measured or removed */
	struct {
		struct volume_walk state;
		/* NULL: the walk removes files that belong to no volume any more */
		struct volume *of;
		bool on, removed;
		unsigned tries; /* to remove files that code still added to */
		char removing[VOLUME_ID + 1];
		uint64_t began_ns, took_ns; /* CPU is spared for as long as the last one took */
	} walk;
};

/* volumes.c */
void volume_insert(struct volumes *v, struct volume *new); /* into the list */

/* volume_records.c */
int volume_records_open(struct volumes *v, struct error *e);
int volume_records_load(struct volumes *v);
int volume_record_write(struct volume *one, struct error *e);
void volume_record_name(const struct volume *one, char ret[VOLUME_RECORD_NAME + 1]);
int volume_make_directory(struct volume *one, struct error *e);

/* volume_measure.c */
void volumes_wake(struct volumes *v);
void volume_on_timer(uv_timer_t *timer);
void volume_forget_walk(struct volume *one); /* it goes away, or begins to be written to */
bool volume_is_full(const struct volume *one);
void volume_settle(struct volume *one);           /* its writer went: what there is now may stay */
bool volumes_lack_space(const struct volumes *v); /* hardly anything of the file system is free */
