/*
 * Files below one directory that a hostile program changes while we look.
 *
 * Every step is taken relative to a directory descriptor with openat2(2) (RESOLVE_BENEATH, no
 * symbolic links, no magic links, no other mount), so neither a name nor a swapped directory leads
 * out. What is opened is looked at after opening: only regular files are read. Names are checked
 * first, so that a client learns what is wrong with its own.
 *
 * Errors carry a slug: invalid_path, file_not_found, not_a_file, not_a_directory, is_a_directory,
 * directory_not_empty, path_refused (a link or a mount stands in the way), file_too_large,
 * no_space, file_error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

enum {
	WORKSPACE_NAME_BYTES = 255, /* of one part of a path */
	WORKSPACE_DEPTH = 32,       /* directories a listing goes down, parts a path may have */
	WORKSPACE_SCAN = 10000,     /* entries a listing looks at */
};

/*
 * A path below the directory in its one accepted form: "a/b", no empty part, no "." or "..", valid
 * UTF-8. -EINVAL.
 */
int workspace_check_path(const char *path, size_t len, struct error *e);

/* Opens a regular file for reading (never blocks on a FIFO). *ret_fd is the caller's. */
int workspace_open(int root, const char *path, struct error *e, int *ret_fd, struct stat *ret_stat);

/* Makes a directory, with those above it, unless it is there. */
int workspace_make_directory(int root, const char *path, uid_t uid, gid_t gid, struct error *e);

/* Removes a file, a link or an empty directory. */
int workspace_remove(int root, const char *path, struct error *e);

/*
 * A file being written under a temporary name beside its place; it appears whole, or not at all.
 * Missing parent directories are made. Zero it with WORKSPACE_UPLOAD_INIT; end it with commit or
 * finish (finish after commit is fine).
 */
struct workspace_upload {
	int dir, fd;
	uint64_t written, max;
	uid_t uid;
	gid_t gid;
	char temporary[48];
	char name[WORKSPACE_NAME_BYTES + 1];
};
#define WORKSPACE_UPLOAD_INIT       \
	{                           \
		.dir = -1, .fd = -1 \
	}

int workspace_upload_begin(struct workspace_upload *u, int root, const char *path, uid_t uid,
	gid_t gid, uint64_t max, struct error *e);
int workspace_upload_write(
	struct workspace_upload *u, const void *data, size_t len, struct error *e);

/* Puts the file in its place; *ret_replaced says whether one was there. */
int workspace_upload_commit(struct workspace_upload *u, struct error *e, bool *ret_replaced);

/* Drops what is not committed. Idempotent. */
void workspace_upload_finish(struct workspace_upload *u);

enum workspace_kind { WORKSPACE_FILE, WORKSPACE_DIRECTORY, WORKSPACE_LINK, WORKSPACE_OTHER };
/* "file", "directory", "symlink", "other" */
const char *workspace_kind_name(enum workspace_kind k);

struct workspace_entry {
	char *path; /* below the workspace, as bytes of the guest's choosing */
	enum workspace_kind kind;
	uint64_t size;
	uint64_t modified_ns; /* wall clock */
};

/*
 * A walk through a directory ("" is the workspace itself), in steps between which others have their
 * turn: looks at up to WORKSPACE_SCAN entries and WORKSPACE_DEPTH levels.
 */
struct workspace_walk;
int workspace_walk_create(
	int root, const char *path, bool recursive, struct error *e, struct workspace_walk **ret);
void workspace_walk_destroy(struct workspace_walk *w); /* NULL is fine */

/* Looks at so many entries. 1: there is more; 0: it is done; or a negative errno. */
int workspace_walk_step(struct workspace_walk *w, unsigned entries);

/* Nothing more is looked at: it is done, and truncated. */
void workspace_walk_stop(struct workspace_walk *w);

/*
 * After the walk is done: returns the next entry in byte order of the paths, then NULL. The walk
 * owns the entries.
 */
const struct workspace_entry *workspace_walk_next(struct workspace_walk *w);
size_t workspace_walk_count(const struct workspace_walk *w);
/* there was more than was looked at, or deeper */
bool workspace_walk_truncated(const struct workspace_walk *w);
