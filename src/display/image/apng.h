/*
 * Animated PNG, made of PNG files of the frames' parts. No I/O: bytes in, bytes out; the pictures are hostile and are looked through, not
 * decoded. A browser shows such a file, and a program that knows PNG alone shows the first frame.
 *
 *	apng_begin() apng_frame()… apng_end(), each appending to the file; then apng_count() over its place at the start
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "display/protocol.h"

struct apng {
	uint32_t width, height;
	uint32_t frames, sequence;
};

enum { APNG_COUNT_AT = 33, APNG_COUNT_BYTES = 20 };

int apng_begin(struct apng *a, uint32_t width, uint32_t height, struct buffer *out);

/*
 * A frame: where it belongs, how long it is shown, and its PNG (8 bits, RGB, of that size). The
 * first must be whole. -EPROTO: it is not such a file; nothing was appended.
 */
int apng_frame(struct apng *a, const struct frame_info *where, uint64_t shown_ms, const char *png,
	size_t len, struct buffer *out);

int apng_end(struct apng *a, struct buffer *out);

/* The count of frames, to be written at APNG_COUNT_AT when it is known. */
void apng_count(const struct apng *a, uint8_t ret[APNG_COUNT_BYTES]);
