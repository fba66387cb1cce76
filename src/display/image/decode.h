/*
 * Decodes untrusted pictures (PNG, JPEG) and scales them down. No I/O: bytes in, pixels out. The
 * bytes are hostile: this code runs in a process that can do nothing else (fitter.c), never in the
 * daemon.
 *
 * A picture is read row by row and averaged into its smaller copy at once, so that memory does not
 * grow with its size.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "display/protocol.h"

struct image;

enum {
	PICTURE_SIDE_MAX = 65535, /* pixels of a side that is read */
	PICTURE_QUALITY = 85      /* of a JPEG */
};

/*
 * Reads a picture into B G R x, over white where it is transparent, with at most `side` pixels on
 * its long side. The pixels are the caller's to free. -EPROTO: damaged; -ENOTSUP: another format,
 * or an interlaced PNG; -EFBIG: a side beyond PICTURE_SIDE_MAX; -ENOMEM.
 */
int picture_read(const uint8_t *data, size_t len, uint32_t side, struct image *ret);
int png_read(const uint8_t *data, size_t len, uint32_t side, struct image *ret);
int jpeg_read(const uint8_t *data, size_t len, uint32_t side, struct image *ret);

/*
 * The picture as a file of at most `max_bytes` with at most `side` pixels on its long side: a PNG,
 * or a JPEG where the PNG would be larger. Errors as those of picture_read(); -ENOBUFS: it does not
 * become small enough.
 */
int picture_fit(const uint8_t *data, size_t len, uint32_t side, size_t max_bytes,
	struct buffer *out, enum shot_format *ret);

/* ---- rows.c: a smaller copy, made row by row ---------------------------------------- */

struct row_shrinker {
	struct image *out;
	uint32_t width, height; /* of the picture that comes in */
	uint32_t next;          /* row that comes in next */
	uint32_t *sums;         /* of the row of `out` that is being made: 3 per pixel */
	uint32_t *counts;
};

/*
 * Chooses the size of the copy and allocates it; `out` is the caller's, also after an error.
 * -EFBIG, -ENOMEM.
 */
int row_shrinker_init(
	struct row_shrinker *s, uint32_t width, uint32_t height, uint32_t side, struct image *out);
void row_shrinker_finish(struct row_shrinker *s);

/* The next row: `width` pixels of R G B A. */
void row_shrinker_add(struct row_shrinker *s, const uint8_t *rgba);

/* ---- deflate.c ---------------------------------------------------------------------- */

struct inflater;

/* Over zlib's format; `total` is how many bytes will be asked for. NULL without memory. */
struct inflater *inflater_create(const uint8_t *data, size_t len, size_t total);
/* Exactly n bytes. -EPROTO when they are not there. */
int inflater_read(struct inflater *i, void *out, size_t n);
void inflater_destroy(struct inflater *i);
