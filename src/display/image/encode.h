/*
 * Pictures as files: PNG on our own container over a fast deflate, JPEG by libjpeg. Input is rows
 * of 4-byte B G R x without padding.
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "display/protocol.h"

struct image;

struct encoder {
	const char *name, *mime;
	/* Appends the file. -ENOMEM, -ENOBUFS (the buffer's maximum). */
	int (*encode)(const struct image *i, unsigned quality, struct buffer *out);
};

extern const struct encoder encoders[SHOT_FORMAT_COUNT];

/* the quality means nothing to it */
int png_encode(const struct image *i, unsigned quality, struct buffer *out);
int png_encode_rgb(const struct image *i, struct buffer *out); /* never with a palette */
int jpeg_encode(const struct image *i, unsigned quality, struct buffer *out);

/* A smaller copy by averaging, 0 < scale < 1; its pixels are the caller's to free. */
int image_shrink(const struct image *i, double scale, struct image *ret);

/* ---- deflate.c: ISA-L where it is there, else libdeflate ----------------------------------- */

size_t deflate_bound(size_t n);
/* The bytes written in zlib's format, 0 on failure. */
size_t deflate_zlib(const void *data, size_t n, void *out, size_t size);
uint32_t deflate_crc(uint32_t crc, const void *data, size_t n);
