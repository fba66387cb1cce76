/*
 * PNG: eight bits, indexed where 256 colours are enough (most windows), else RGB; no filters, which
 * deflate at this speed does not repay.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "display/client/screen.h"
#include "display/image/encode.h"

enum { PALETTE = 256, SLOTS = 4096, TYPE_RGB = 2, TYPE_INDEXED = 3, CHUNK_FRAME = 12 };

struct palette {
	uint32_t key[SLOTS];
	int16_t index[SLOTS];
	uint8_t rgb[PALETTE * 3];
	int n;
};

/* The colour's number, -1 when there are too many. */
static int look_up(struct palette *p, uint32_t colour)
{
	uint32_t slot = (colour * 2654435761U) >> 20;
	while (p->index[slot] >= 0 && p->key[slot] != colour)
		slot = (slot + 1) % SLOTS;
	if (p->index[slot] >= 0)
		return p->index[slot];
	if (p->n == PALETTE)
		return -1;
	p->key[slot] = colour;
	p->index[slot] = (int16_t)p->n;
	p->rgb[p->n * 3] = (uint8_t)(colour >> 16);
	p->rgb[p->n * 3 + 1] = (uint8_t)(colour >> 8);
	p->rgb[p->n * 3 + 2] = (uint8_t)colour;
	return p->n++;
}

/*
 * Rows of indices; false when the colours do not fit. Equal rows and runs, the most of a window,
 * cost a comparison.
 */
static bool index_rows(const struct image *i, struct palette *p, uint8_t *out)
{
	memset(p->index, 0xff, sizeof(p->index));
	p->n = 0;
	for (uint32_t y = 0; y < i->height; y++, out += i->width + 1) {
		const uint32_t *row = (const uint32_t *)(const void *)i->pixels +
				      (size_t)y * i->width;
		if (y && !memcmp(row, row - i->width, (size_t)i->width * 4)) {
			memcpy(out, out - i->width - 1, i->width + 1);
			continue;
		}
		uint32_t last = ~0U;
		int number = 0;
		out[0] = 0;
		for (uint32_t x = 0; x < i->width; x++) {
			uint32_t colour = row[x] & 0xffffff;
			if (colour != last && (number = look_up(p, last = colour)) < 0)
				return false;
			out[x + 1] = (uint8_t)number;
		}
	}

	return true;
}

static void rgb_rows(const struct image *i, uint8_t *out)
{
	const uint8_t *p = i->pixels;
	for (uint32_t y = 0; y < i->height; y++) {
		*out++ = 0;
		for (uint32_t x = 0; x < i->width; x++, p += 4, out += 3) {
			out[0] = p[2];
			out[1] = p[1];
			out[2] = p[0];
		}
	}
}

static void big_endian(uint8_t *out, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Appends a chunk whose data is already in place, or is copied there. */
static void put_chunk(struct buffer *b, const char *type, const void *data, size_t n)
{
	uint8_t *at = (uint8_t *)b->data + b->len;
	big_endian(at, (uint32_t)n);
	memcpy(at + 4, type, 4);
	if (data)
		memcpy(at + 8, data, n);
	big_endian(at + 8 + n, deflate_crc(0, at + 4, n + 4));
	b->len += n + CHUNK_FRAME;
}

static int encode(const struct image *i, bool may_index, struct buffer *out)
{
	static const uint8_t signature[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
	static struct palette palette;
	uint8_t head[13] = { [8] = 8 };
	size_t raw_max = ((size_t)i->width * 3 + 1) * i->height;
	_cleanup_free_ uint8_t *raw = malloc(raw_max);

	if (!raw)
		return -ENOMEM;
	bool indexed = may_index && index_rows(i, &palette, raw);
	if (!indexed)
		rgb_rows(i, raw);
	size_t n = indexed ? ((size_t)i->width + 1) * i->height : raw_max, bound = deflate_bound(n);
	int r = buffer_reserve(out, bound + sizeof(palette.rgb) + 256);
	if (r < 0)
		return r;
	size_t start = out->len;
	buffer_append(out, signature, sizeof(signature));
	big_endian(head, i->width);
	big_endian(head + 4, i->height);
	head[9] = indexed ? TYPE_INDEXED : TYPE_RGB;
	put_chunk(out, "IHDR", head, sizeof(head));
	if (indexed)
		put_chunk(out, "PLTE", palette.rgb, (size_t)palette.n * 3);
	size_t packed = deflate_zlib(raw, n, out->data + out->len + 8, bound);
	if (!packed) {
		out->len = start;
		return -ENOMEM;
	}

	put_chunk(out, "IDAT", NULL, packed);
	put_chunk(out, "IEND", "", 0);
	return 0;
}

int png_encode(const struct image *i, unsigned quality, struct buffer *out)
{
	(void)quality;
	return encode(i, true, out);
}

int png_encode_rgb(const struct image *i, struct buffer *out)
{
	return encode(i, false, out);
}
