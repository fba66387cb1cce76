/*
 * PNG of every colour type and depth, but not interlaced. Checksums are not looked at: who damages
 * a picture sees it damaged.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "display/client/screen.h"
#include "display/image/decode.h"

enum { GRAY = 0, RGB = 2, INDEXED = 3, GRAY_ALPHA = 4, RGB_ALPHA = 6 };
enum { SIGNATURE = 8, CHUNK_FRAME = 12, PALETTE = 256 };

struct png {
	uint32_t width, height;
	uint8_t depth, type, interlaced;
	bool has_header;
	uint8_t palette[PALETTE][4]; /* R G B A */
	struct buffer packed;        /* the data of all IDAT chunks */
};

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool sound_depth(uint8_t type, uint8_t depth)
{
	bool small = depth == 1 || depth == 2 || depth == 4;
	switch (type) {
	case GRAY:
		return small || depth == 8 || depth == 16;
	case INDEXED:
		return small || depth == 8;
	case RGB:
	case GRAY_ALPHA:
	case RGB_ALPHA:
		return depth == 8 || depth == 16;
	default:
		return false;
	}
}

static int take_header(struct png *p, const uint8_t *data, size_t len)
{
	if (len < 13 || p->has_header)
		return -EPROTO;
	p->has_header = true;
	p->width = big_endian(data);
	p->height = big_endian(data + 4);
	p->depth = data[8];
	p->type = data[9];
	p->interlaced = data[12];
	if (!sound_depth(p->type, p->depth))
		return -EPROTO;
	if (p->width > PICTURE_SIDE_MAX || p->height > PICTURE_SIDE_MAX)
		return -EFBIG;
	return p->interlaced ? -ENOTSUP : 0;
}

static int take_chunk(struct png *p, const uint8_t *type, const uint8_t *data, size_t len)
{
	if (!memcmp(type, "IHDR", 4))
		return take_header(p, data, len);
	if (!memcmp(type, "IDAT", 4))
		return buffer_append(&p->packed, data, len);
	if (!memcmp(type, "PLTE", 4))
		for (size_t i = 0; i < PALETTE && i * 3 + 2 < len; i++)
			memcpy(p->palette[i], data + i * 3, 3);
	if (!memcmp(type, "tRNS", 4) && p->type == INDEXED)
		for (size_t i = 0; i < PALETTE && i < len; i++)
			p->palette[i][3] = data[i];
	return 0;
}

static int take_chunks(struct png *p, const uint8_t *data, size_t len)
{
	static const uint8_t signature[SIGNATURE] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
	if (len < SIGNATURE || memcmp(data, signature, SIGNATURE) != 0)
		return -ENOTSUP;

	for (size_t at = SIGNATURE; len - at >= CHUNK_FRAME;) {
		size_t n = big_endian(data + at);
		if (n > len - at - CHUNK_FRAME)
			return -EPROTO;
		int r = take_chunk(p, data + at + 4, data + at + 8, n);
		if (r < 0)
			return r;
		at += n + CHUNK_FRAME;
	}
	return p->has_header && p->packed.len ? 0 : -EPROTO;
}

static unsigned channels(uint8_t type)
{
	static const uint8_t n[] = {
		[GRAY] = 1, [RGB] = 3, [INDEXED] = 1, [GRAY_ALPHA] = 2, [RGB_ALPHA] = 4
	};
	return n[type];
}

static uint8_t paeth(uint8_t a, uint8_t b, uint8_t c)
{
	int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
	return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* Undoes the filter of a row; `above` is the row before, or zeros. */
static int unfilter(uint8_t filter, uint8_t *row, const uint8_t *above, size_t n, size_t step)
{
	if (filter > 4)
		return -EPROTO;
	for (size_t i = 0; filter && i < n; i++) {
		uint8_t left = i >= step ? row[i - step] : 0,
			corner = i >= step ? above[i - step] : 0;
		switch (filter) {
		case 1:
			row[i] = (uint8_t)(row[i] + left);
			break;
		case 2:
			row[i] = (uint8_t)(row[i] + above[i]);
			break;
		case 3:
			row[i] = (uint8_t)(row[i] + (left + above[i]) / 2);
			break;
		default:
			row[i] = (uint8_t)(row[i] + paeth(left, above[i], corner));
		}
	}

	return 0;
}

/* The sample with that number, as eight bits; a palette's number stays as it is. */
static uint8_t sample(const struct png *p, const uint8_t *row, size_t number)
{
	if (p->depth == 8)
		return row[number];
	if (p->depth == 16)
		return row[number * 2];
	size_t bit = number * p->depth;
	unsigned mask = (1U << p->depth) - 1;
	unsigned value = (unsigned)(row[bit / 8] >> (8 - p->depth - bit % 8)) & mask;
	return (uint8_t)(p->type == INDEXED ? value : value * 255 / mask);
}

static void expand(const struct png *p, const uint8_t *row, uint8_t *rgba)
{
	unsigned n = channels(p->type);
	for (size_t x = 0; x < p->width; x++, rgba += 4) {
		uint8_t first = sample(p, row, x * n);
		if (p->type == INDEXED) {
			memcpy(rgba, p->palette[first], 4);
			continue;
		}
		bool gray = p->type == GRAY || p->type == GRAY_ALPHA;
		rgba[0] = first;
		rgba[1] = gray ? first : sample(p, row, x * n + 1);
		rgba[2] = gray ? first : sample(p, row, x * n + 2);
		rgba[3] = n == 2 || n == 4 ? sample(p, row, x * n + n - 1) : 255;
	}
}

static int read_rows(const struct png *p, struct row_shrinker *s)
{
	size_t bits = (size_t)channels(p->type) * p->depth, n = (p->width * bits + 7) / 8;
	_cleanup_free_ uint8_t *rows = calloc(2, n + 1);
	_cleanup_free_ uint8_t *rgba = malloc((size_t)p->width * 4);
	struct inflater *inflater = inflater_create(
		(const uint8_t *)p->packed.data, p->packed.len, (n + 1) * p->height);
	int r = rows && rgba && inflater ? 0 : -ENOMEM;

	for (uint32_t y = 0; !r && y < p->height; y++) {
		uint8_t *row = rows + (y & 1) * (n + 1), *above = rows + (~y & 1) * (n + 1);
		r = inflater_read(inflater, row, n + 1);
		if (!r)
			r = unfilter(row[0], row + 1, above + 1, n, bits < 8 ? 1 : bits / 8);
		if (!r) {
			expand(p, row + 1, rgba);
			row_shrinker_add(s, rgba);
		}
	}
	inflater_destroy(inflater);
	return r;
}

int png_read(const uint8_t *data, size_t len, uint32_t side, struct image *ret)
{
	struct png *p = calloc(1, sizeof(*p));
	struct image image = { 0 };
	struct row_shrinker s = { 0 };
	if (!p)
		return -ENOMEM;

	for (size_t i = 0; i < PALETTE; i++)
		p->palette[i][3] = 255;
	buffer_init(&p->packed, 0);
	int r = take_chunks(p, data, len);
	if (!r)
		r = row_shrinker_init(&s, p->width, p->height, side, &image);
	if (!r)
		r = read_rows(p, &s);
	row_shrinker_finish(&s);
	buffer_finish(&p->packed);
	free(p);
	if (r < 0)
		free(image.pixels);
	else
		*ret = image;
	return r;
}
