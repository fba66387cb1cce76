/* Sizes of pictures from their headers. The bytes are hostile; nothing is decoded. */
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "dialects/common/picture_job.h"

static uint32_t big16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t little16(const uint8_t *p)
{
	return (uint32_t)p[1] << 8 | p[0];
}

static bool png_size(const uint8_t *p, size_t len, uint32_t *w, uint32_t *h)
{
	if (len < 24)
		return false;
	*w = big16(p + 16) << 16 | big16(p + 18);
	*h = big16(p + 20) << 16 | big16(p + 22);
	return true;
}

/* Walks over the segments to the frame header. */
static bool jpeg_size(const uint8_t *p, size_t len, uint32_t *w, uint32_t *h)
{
	for (size_t at = 2; len - at >= 10;) {
		uint8_t kind = p[at + 1];
		if (p[at] != 0xff)
			return false;
		if (kind == 0xff) { /* padding */
			at++;
			continue;
		}
		if (kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc) {
			*h = big16(p + at + 5);
			*w = big16(p + at + 7);
			return true;
		}
		size_t n = big16(p + at + 2);
		if (n < 2 || n > len - at - 2)
			return false;
		at += n + 2;
	}

	return false;
}

static bool gif_size(const uint8_t *p, size_t len, uint32_t *w, uint32_t *h)
{
	if (len < 10)
		return false;
	*w = little16(p + 6);
	*h = little16(p + 8);
	return true;
}

static bool webp_size(const uint8_t *p, size_t len, uint32_t *w, uint32_t *h)
{
	if (len < 30 || memcmp(p + 8, "WEBP", 4) != 0)
		return false;
	if (!memcmp(p + 12, "VP8X", 4)) {
		*w = (little16(p + 24) | (uint32_t)p[26] << 16) + 1;
		*h = (little16(p + 27) | (uint32_t)p[29] << 16) + 1;
	} else if (!memcmp(p + 12, "VP8L", 4)) {
		*w = (little16(p + 21) & 0x3fff) + 1;
		*h = ((little16(p + 22) >> 6 | (uint32_t)p[24] << 10) & 0x3fff) + 1;
	} else {
		*w = little16(p + 26) & 0x3fff;
		*h = little16(p + 28) & 0x3fff;
	}
	return true;
}

const char *picture_size(const uint8_t *data, size_t len, uint32_t *ret_width, uint32_t *ret_height)
{
	static const struct {
		const char *magic, *mime;
		size_t len;
		bool (*size)(const uint8_t *p, size_t len, uint32_t *w, uint32_t *h);

	} types[] = {
		{ "\x89PNG\r\n\x1a\n", "image/png", 8, png_size },
		{ "\xff\xd8\xff", "image/jpeg", 3, jpeg_size },
		{ "GIF8", "image/gif", 4, gif_size },
		{ "RIFF", "image/webp", 4, webp_size },
	};
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (len >= types[i].len && !memcmp(data, types[i].magic, types[i].len))
			return types[i].size(data, len, ret_width, ret_height) ? types[i].mime
									       : NULL;
	return NULL;
}
