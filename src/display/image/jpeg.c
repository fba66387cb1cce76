/* JPEG, shrinking, and the table of encoders. */
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "display/client/screen.h"
#include "display/image/encode.h"

const struct encoder encoders[SHOT_FORMAT_COUNT] = {
	[SHOT_PNG] = { "png", "image/png", png_encode },
	[SHOT_JPEG] = { "jpeg", "image/jpeg", jpeg_encode },
};

struct failure {
	struct jpeg_error_mgr manager;
	jmp_buf back;
};

/* libjpeg's own would end the process. */
static void on_error(j_common_ptr c)
{
	longjmp(((struct failure *)c->err)->back, 1);
}

static void write_rows(struct jpeg_compress_struct *c, const struct image *i)
{
	while (c->next_scanline < c->image_height) {
		JSAMPROW row = i->pixels + (size_t)c->next_scanline * i->width * 4;
		jpeg_write_scanlines(c, &row, 1);
	}
}

int jpeg_encode(const struct image *i, unsigned quality, struct buffer *out)
{
	struct jpeg_compress_struct c;
	struct failure failure;
	unsigned char *volatile file = NULL;
	unsigned char *data = NULL;
	unsigned long size = 0;

	c.err = jpeg_std_error(&failure.manager);
	failure.manager.error_exit = on_error;
	jpeg_create_compress(&c);
	if (setjmp(failure.back)) {
		jpeg_destroy_compress(&c);
		free(file);
		return -ENOMEM;
	}

	jpeg_mem_dest(&c, &data, &size);
	c.image_width = i->width;
	c.image_height = i->height;
	c.input_components = 4;
	c.in_color_space = JCS_EXT_BGRX;
	jpeg_set_defaults(&c);
	jpeg_set_quality(&c, quality ? (int)quality : 85, TRUE);
	jpeg_start_compress(&c, TRUE);
	file = data;
	write_rows(&c, i);
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	int r = buffer_append(out, data, size);
	free(data);
	return r;
}

/* The mean of the pixels that fall into one of the smaller picture. */
static uint32_t mean(const struct image *i, uint32_t x0, uint32_t x1, uint32_t y0, uint32_t y1)
{
	uint64_t sum[3] = { 0 }, n = (uint64_t)(x1 - x0) * (y1 - y0);
	for (uint32_t y = y0; y < y1; y++) {
		const uint8_t *p = i->pixels + ((size_t)y * i->width + x0) * 4;
		for (uint32_t x = x0; x < x1; x++, p += 4)
			for (int k = 0; k < 3; k++)
				sum[k] += p[k];
	}
	return (uint32_t)(sum[0] / n) | (uint32_t)(sum[1] / n) << 8 | (uint32_t)(sum[2] / n) << 16;
}

int image_shrink(const struct image *i, double scale, struct image *ret)
{
	struct image small = { .width = (uint32_t)(i->width * scale + 0.5),
		.height = (uint32_t)(i->height * scale + 0.5) };

	small.width = small.width ? small.width : 1;
	small.height = small.height ? small.height : 1;
	small.pixels = malloc((size_t)small.width * small.height * 4);
	if (!small.pixels)
		return -ENOMEM;
	uint32_t *out = (uint32_t *)(void *)small.pixels;
	for (uint32_t y = 0; y < small.height; y++) {
		uint32_t y0 = (uint32_t)((uint64_t)y * i->height / small.height);
		uint32_t y1 = (uint32_t)((uint64_t)(y + 1) * i->height / small.height);
		for (uint32_t x = 0; x < small.width; x++) {
			uint32_t x0 = (uint32_t)((uint64_t)x * i->width / small.width);
			uint32_t x1 = (uint32_t)((uint64_t)(x + 1) * i->width / small.width);
			*out++ = mean(i, x0, x1 > x0 ? x1 : x0 + 1, y0, y1 > y0 ? y1 : y0 + 1);
		}
	}

	*ret = small;
	return 0;
}
