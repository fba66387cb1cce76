#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "display/client/screen.h"
#include "display/image/decode.h"
#include "display/image/encode.h"

int picture_read(const uint8_t *data, size_t len, uint32_t side, struct image *ret)
{
	bool jpeg = len > 3 && !memcmp(data, "\xff\xd8\xff", 3);
	return jpeg ? jpeg_read(data, len, side, ret) : png_read(data, len, side, ret);
}

static int encode_small(
	const struct image *i, size_t max_bytes, struct buffer *out, enum shot_format *ret)
{
	static const struct {
		enum shot_format format;
		unsigned quality;

	} tries[] = { { SHOT_PNG, 0 }, { SHOT_JPEG, PICTURE_QUALITY }, { SHOT_JPEG, 60 },
		{ SHOT_JPEG, 35 } };
	for (size_t k = 0; k < sizeof(tries) / sizeof(tries[0]); k++) {
		out->len = 0;
		int r = encoders[tries[k].format].encode(i, tries[k].quality, out);
		if (r < 0)
			return r;
		*ret = tries[k].format;
		if (out->len <= max_bytes)
			return 0;
	}

	return -ENOBUFS;
}

int picture_fit(const uint8_t *data, size_t len, uint32_t side, size_t max_bytes,
	struct buffer *out, enum shot_format *ret)
{
	for (unsigned halvings = 0; halvings < 4; halvings++, side /= 2) {
		struct image image = { 0 };
		int r = picture_read(data, len, side, &image);
		if (!r)
			r = encode_small(&image, max_bytes, out, ret);
		free(image.pixels);
		if (r != -ENOBUFS)
			return r;
	}
	return -ENOBUFS;
}
