#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "display/client/screen.h"
#include "display/image/decode.h"

static uint32_t scaled(uint32_t length, uint32_t longest, uint32_t side)
{
	uint32_t n = longest > side ? (uint32_t)((uint64_t)length * side / longest) : length;
	return n ? n : 1;
}

int row_shrinker_init(
	struct row_shrinker *s, uint32_t width, uint32_t height, uint32_t side, struct image *out)
{
	uint32_t longest = width > height ? width : height;
	*s = (struct row_shrinker){ .out = out, .width = width, .height = height };
	if (!width || !height)
		return -EPROTO;
	if (longest > PICTURE_SIDE_MAX)
		return -EFBIG;

	out->width = scaled(width, longest, side);
	out->height = scaled(height, longest, side);
	out->pixels = calloc((size_t)out->width * out->height, 4);
	s->sums = calloc((size_t)out->width * 3, sizeof(*s->sums));
	s->counts = calloc(out->width, sizeof(*s->counts));
	return out->pixels && s->sums && s->counts ? 0 : -ENOMEM;
}

void row_shrinker_finish(struct row_shrinker *s)
{
	free(s->sums);
	free(s->counts);
	s->sums = s->counts = NULL;
}

static uint32_t over_white(uint32_t colour, uint32_t alpha)
{
	return (colour * alpha + 255 * (255 - alpha) + 127) / 255;
}

/* Writes the row that was summed up, and begins the next one. */
static void flush(struct row_shrinker *s, uint32_t row)
{
	uint8_t *p = s->out->pixels + (size_t)row * s->out->width * 4;
	for (uint32_t x = 0; x < s->out->width; x++, p += 4) {
		uint32_t n = s->counts[x] ? s->counts[x] : 1;
		p[2] = (uint8_t)(s->sums[x * 3] / n);
		p[1] = (uint8_t)(s->sums[x * 3 + 1] / n);
		p[0] = (uint8_t)(s->sums[x * 3 + 2] / n);
	}
	memset(s->sums, 0, (size_t)s->out->width * 3 * sizeof(*s->sums));
	memset(s->counts, 0, (size_t)s->out->width * sizeof(*s->counts));
}

void row_shrinker_add(struct row_shrinker *s, const uint8_t *rgba)
{
	uint64_t width = s->out->width, height = s->out->height;
	if (s->next >= s->height)
		return;

	for (uint32_t x = 0; x < s->width; x++, rgba += 4) {
		uint32_t to = (uint32_t)(x * width / s->width);
		for (int k = 0; k < 3; k++)
			s->sums[to * 3 + (uint32_t)k] += over_white(rgba[k], rgba[3]);
		s->counts[to]++;
	}
	uint32_t row = (uint32_t)(s->next * height / s->height);
	s->next++;
	if (s->next == s->height || s->next * height / s->height != row)
		flush(s, row);
}
