/*
 * Tar archives (POSIX ustar, with pax headers for long names): headers out, entries in. No I/O.
 *
 * Reading takes bytes in pieces of any size and tells of directories and regular files; what else
 * an archive can hold (links, devices) is skipped and counted. Sizes and names are the archive's
 * own word: the caller checks paths and limits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/limits.h"

enum { TAR_BLOCK = 512 };

/* Appends the header of an entry; the content follows, and then tar_padding() zeros. -ENOMEM. */
int tar_put_header(
	struct buffer *out, const char *path, uint64_t size, uint64_t modified_s, bool directory);
static inline size_t tar_padding(uint64_t size)
{
	return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
}
int tar_put_end(struct buffer *out);

struct tar_handler {
	/* If a callback returns a negative errno, tar_feed() stops and returns it. */
	int (*on_directory)(void *userdata, const char *path);
	int (*on_file)(void *userdata, const char *path, uint64_t size);
	int (*on_data)(void *userdata, const char *data, size_t len);
	int (*on_file_end)(void *userdata);
};

struct tar_reader {
	const struct tar_handler *handler;
	void *userdata;
	unsigned skipped; /* entries that are neither files nor directories */
	bool ended;       /* the mark of the end was seen */
	/* private */
	char block[TAR_BLOCK];
	size_t have;        /* bytes of the block */
	uint64_t left, pad; /* of the content of this entry, and behind it */
	enum { TAR_HEADER, TAR_FILE, TAR_SKIP, TAR_NAME } state;
	char name[LIMIT_PATH_BYTES + 2]; /* by a pax or GNU header, for the next entry */
	struct buffer extra;             /* content of such a header */
	bool pax;
};

void tar_reader_init(struct tar_reader *r, const struct tar_handler *handler, void *userdata);
void tar_reader_finish(struct tar_reader *r);

/* -EINVAL: this is no tar archive; -ENAMETOOLONG; -ENOMEM; or what the handler returned. */
int tar_feed(struct tar_reader *r, const char *data, size_t len);

/* Bytes that are still to come of the content of an entry; 0 between two entries. */
static inline uint64_t tar_content_left(const struct tar_reader *r)
{
	return r->left;
}

/* All entries were complete. */
bool tar_is_complete(const struct tar_reader *r);
