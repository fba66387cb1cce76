/* Pictures of strangers: reading, shrinking, and their sizes from headers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dialects/common/picture_job.h"
#include "display/client/screen.h"
#include "display/image/decode.h"
#include "display/image/encode.h"
#include "tap.h"

/* Red on the left, and darker towards the bottom. */
static struct image drawn(uint32_t width, uint32_t height)
{
	struct image i = {
		.pixels = malloc((size_t)width * height * 4), .width = width, .height = height
	};
	for (uint32_t y = 0; y < height; y++)
		for (uint32_t x = 0; x < width; x++) {
			uint8_t *p = i.pixels + ((size_t)y * width + x) * 4;
			p[0] = p[1] = (uint8_t)(200 - y * 200 / height);
			p[2] = x < width / 2 ? 255 : p[0];
			p[3] = 0;
		}
	return i;
}

static bool near(const struct image *i, uint32_t x, uint32_t y, int b, int g, int r)
{
	const uint8_t *p = i->pixels + ((size_t)y * i->width + x) * 4;
	return abs(p[0] - b) < 12 && abs(p[1] - g) < 12 && abs(p[2] - r) < 12;
}

static void test_round_trip(void)
{
	for (int format = 0; format < SHOT_FORMAT_COUNT; format++) {
		_cleanup_buffer_ struct buffer file = BUFFER_INIT(0);
		struct image i = drawn(400, 100), back = { 0 };
		uint32_t width = 0, height = 0;
		OK(encoders[format].encode(&i, 90, &file) == 0);

		const uint8_t *data = (const uint8_t *)file.data;
		OK_STR(picture_size(data, file.len, &width, &height), encoders[format].mime);
		OK(width == 400 && height == 100);

		OK(picture_read(data, file.len, 1000, &back) == 0 && back.width == 400 &&
			back.height == 100);
		OK(near(&back, 10, 0, 200, 200, 255) && near(&back, 390, 99, 2, 2, 2));
		free(back.pixels);

		OK(picture_read(data, file.len, 40, &back) == 0 && back.width == 40 &&
			back.height == 10);
		OK(near(&back, 1, 0, 191, 191, 255) && near(&back, 39, 9, 9, 9, 9));
		free(back.pixels);
		free(i.pixels);
	}
}

/* A file that ends anywhere is an error, never a crash. */
static void test_truncated(void)
{
	bool all_refused = true;
	for (int format = 0; format < SHOT_FORMAT_COUNT; format++) {
		_cleanup_buffer_ struct buffer file = BUFFER_INIT(0);
		struct image i = drawn(30, 30), back = { 0 };
		uint32_t width, height;
		encoders[format].encode(&i, 90, &file);
		for (size_t n = 0; n + 16 < file.len; n++) {
			_cleanup_free_ uint8_t *part = malloc(n + 1); /* for AddressSanitizer */
			memcpy(part, file.data, n);
			picture_size(part, n, &width, &height);
			int r = picture_read(part, n, 10, &back);
			if (r == 0)
				free(back.pixels);
			all_refused &= r < 0 ||
				       format == SHOT_JPEG; /* libjpeg fills up with grey */
		}
		free(i.pixels);
	}
	OK(all_refused);
}

static void test_refused(void)
{
	static const uint8_t huge[] =
		"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\0\0\0\1\0\0\x08\2\0\0\0abcd";
	static const uint8_t interlaced[] =
		"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\1abcd";
	static const uint8_t depth[] =
		"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\3\2\0\0\0abcd";
	struct image back = { 0 };
	uint32_t width, height;
	OK(picture_read(huge, sizeof(huge), 10, &back) == -EFBIG);
	OK(picture_read(interlaced, sizeof(interlaced), 10, &back) == -ENOTSUP);
	OK(picture_read(depth, sizeof(depth), 10, &back) == -EPROTO);
	OK(picture_read((const uint8_t *)"GIF89a", 6, 10, &back) == -ENOTSUP);
	OK(!picture_size((const uint8_t *)"GIF89a", 6, &width, &height));
	OK(!picture_size((const uint8_t *)"text", 4, &width, &height));
	OK(picture_size((const uint8_t *)"GIF89a\2\1\3\0", 10, &width, &height) && width == 258 &&
		height == 3);
}

/* Noise does not become small as a PNG: it becomes a JPEG, and then a smaller one. */
static void test_fit(void)
{
	_cleanup_buffer_ struct buffer file = BUFFER_INIT(0), small = BUFFER_INIT(0);
	enum shot_format format;
	struct image i = drawn(600, 600), back = { 0 };
	srand(1);
	for (size_t k = 0; k < 600 * 600 * 4; k++)
		i.pixels[k] = (uint8_t)rand();
	png_encode(&i, 0, &file);
	const uint8_t *data = (const uint8_t *)file.data;

	OK(picture_fit(data, file.len, 2000, 4000000, &small, &format) == 0 && format == SHOT_PNG);
	OK(picture_fit(data, file.len, 2000, 300000, &small, &format) == 0 && format == SHOT_JPEG &&
		small.len <= 300000);
	OK(picture_fit(data, file.len, 2000, 20000, &small, &format) == 0 && small.len <= 20000);
	OK(picture_read((const uint8_t *)small.data, small.len, 2000, &back) == 0 &&
		back.width < 600);
	OK(picture_fit(data, file.len, 2000, 10, &small, &format) == -ENOBUFS);
	free(back.pixels);
	free(i.pixels);
}

int main(void)
{
	test_round_trip();
	test_truncated();
	test_refused();
	test_fit();
	return tap_done();
}
