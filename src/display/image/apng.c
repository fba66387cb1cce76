#include "display/image/apng.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { CHUNK_FRAME = 12, SIGNATURE = 8, HEAD = 13, CONTROL = 26, TYPE_RGB = 2, DELAY_MAX = 65535 };

static const char signature[SIGNATURE] = "\x89PNG\r\n\x1a\n";

static uint32_t crc_of(uint32_t crc, const void *data, size_t n)
{
	static uint32_t table[256];
	const uint8_t *p = data;
	if (!table[1])
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t c = i;
			for (int bit = 0; bit < 8; bit++)
				c = c & 1 ? 0xedb88320U ^ c >> 1 : c >> 1;
			table[i] = c;
		}
	crc = ~crc;
	while (n--)
		crc = table[(crc ^ *p++) & 0xff] ^ crc >> 8;
	return ~crc;
}

static void put32(uint8_t *out, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t get32(const char *in)
{
	const uint8_t *p = (const uint8_t *)in;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Appends a chunk of up to two pieces; there is room for it. */
static void put_chunk(struct buffer *b, const char *type, const void *first, size_t n,
	const void *second, size_t m)
{
	uint8_t word[4];
	put32(word, (uint32_t)(n + m));
	buffer_append(b, word, 4);
	buffer_append(b, type, 4);
	buffer_append(b, first, n);
	buffer_append(b, second, m);
	uint32_t crc = crc_of(crc_of(crc_of(0, type, 4), first, n), second, m);
	put32(word, crc);
	buffer_append(b, word, 4);
}

int apng_begin(struct apng *a, uint32_t width, uint32_t height, struct buffer *out)
{
	uint8_t head[HEAD] = { [8] = 8, [9] = TYPE_RGB }, count[APNG_COUNT_BYTES];
	int r = buffer_reserve(out, SIGNATURE + HEAD + CHUNK_FRAME + APNG_COUNT_BYTES);
	if (r < 0)
		return r;
	*a = (struct apng){ .width = width, .height = height };
	put32(head, width);
	put32(head + 4, height);
	buffer_append(out, signature, SIGNATURE);
	put_chunk(out, "IHDR", head, HEAD, "", 0);
	apng_count(a, count);
	return buffer_append(out, count, sizeof(count));
}

void apng_count(const struct apng *a, uint8_t ret[APNG_COUNT_BYTES])
{
	put32(ret, 8);
	memcpy(ret + 4, "acTL", 4);
	put32(ret + 8, a->frames);
	put32(ret + 12, 0); /* shown for ever */
	put32(ret + 16, crc_of(0, ret + 4, 12));
}

/* The data of the one IDAT of a PNG as ours are. */
static int find_data(const struct frame_info *where, const char *png, size_t len, const char **ret,
	size_t *ret_len)
{
	const char *end = png + len, *head = png + SIGNATURE + 8;
	if (len < SIGNATURE + HEAD + CHUNK_FRAME || memcmp(png, signature, SIGNATURE) ||
		memcmp(head - 4, "IHDR", 4) || get32(head) != where->part_width ||
		get32(head + 4) != where->part_height || head[8] != 8 || head[9] != TYPE_RGB ||
		head[12])
		return -EPROTO;
	for (const char *at = png + SIGNATURE; end - at >= CHUNK_FRAME;) {
		size_t n = get32(at);
		if (n > (size_t)(end - at) - CHUNK_FRAME)
			return -EPROTO;
		if (!memcmp(at + 4, "IDAT", 4)) {
			*ret = at + 8;
			*ret_len = n;
			return 0;
		}
		at += n + CHUNK_FRAME;
	}

	return -EPROTO;
}

static bool fits(const struct apng *a, const struct frame_info *f)
{
	if (!a->frames &&
		(f->x || f->y || f->part_width != a->width || f->part_height != a->height))
		return false;
	return f->part_width && f->part_height && f->x <= a->width &&
	       f->part_width <= a->width - f->x && f->y <= a->height &&
	       f->part_height <= a->height - f->y;
}

static void put_control(
	struct apng *a, const struct frame_info *f, uint64_t shown_ms, struct buffer *out)
{
	uint8_t c[CONTROL] = { 0 };
	bool in_ms = shown_ms <= DELAY_MAX;
	uint64_t delay = in_ms                         ? shown_ms
			 : shown_ms / 1000 < DELAY_MAX ? shown_ms / 1000
						       : DELAY_MAX,
		 parts = in_ms ? 1000 : 1;

	put32(c, a->sequence++);
	put32(c + 4, f->part_width);
	put32(c + 8, f->part_height);
	put32(c + 12, f->x);
	put32(c + 16, f->y);
	c[20] = (uint8_t)(delay >> 8);
	c[21] = (uint8_t)delay;
	c[22] = (uint8_t)(parts >> 8);
	c[23] = (uint8_t)parts;
	put_chunk(out, "fcTL", c, sizeof(c), "", 0); /* dispose: leave it, blend: replace */
}

int apng_frame(struct apng *a, const struct frame_info *where, uint64_t shown_ms, const char *png,
	size_t len, struct buffer *out)
{
	const char *data;
	size_t n;
	int r = fits(a, where) ? find_data(where, png, len, &data, &n) : -EPROTO;

	if (r == 0)
		r = buffer_reserve(out, n + CONTROL + 3 * CHUNK_FRAME);
	if (r < 0)
		return r;
	put_control(a, where, shown_ms, out);
	if (!a->frames) {
		put_chunk(out, "IDAT", data, n, "", 0);
	} else {
		uint8_t sequence[4];
		put32(sequence, a->sequence++);
		put_chunk(out, "fdAT", sequence, 4, data, n);
	}

	a->frames++;
	return 0;
}

int apng_end(struct apng *a, struct buffer *out)
{
	(void)a;
	int r = buffer_reserve(out, CHUNK_FRAME);
	if (r == 0)
		put_chunk(out, "IEND", "", 0, "", 0);
	return r;
}
