/* JPEG by libjpeg, which makes large pictures smaller while it decodes them. */
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "display/client/screen.h"
#include "display/image/decode.h"

struct failure {
	struct jpeg_error_mgr manager;
	jmp_buf back;
};

/* libjpeg's own would end the process, and print. */
static void on_error(j_common_ptr c)
{
	longjmp(((struct failure *)c->err)->back, 1);
}

static void on_message(j_common_ptr c)
{
	(void)c;
}

/* Halves, quarters or eighths, as long as the picture stays at least as large as asked for. */
static unsigned denominator(uint32_t longest, uint32_t side)
{
	unsigned n = 1;
	while (n < 8 && longest / (n * 2) >= side)
		n *= 2;
	return n;
}

struct reading {
	struct jpeg_decompress_struct c;
	struct failure failure;
	struct image image;
	struct row_shrinker shrinker;
	uint8_t *row;
};

/* Everything that may jump back. */
static int read_rows(struct reading *d, const uint8_t *data, size_t len, uint32_t side)
{
	jpeg_mem_src(&d->c, data, len);
	jpeg_read_header(&d->c, TRUE);
	uint32_t longest = d->c.image_width > d->c.image_height ? d->c.image_width
								: d->c.image_height;
	d->c.scale_num = 1;
	d->c.scale_denom = denominator(longest, side);
	d->c.out_color_space = JCS_EXT_RGBA;
	jpeg_start_decompress(&d->c);

	int r = row_shrinker_init(
		&d->shrinker, d->c.output_width, d->c.output_height, side, &d->image);
	d->row = r < 0 ? NULL : malloc((size_t)d->c.output_width * 4);
	if (r < 0 || !d->row)
		return r < 0 ? r : -ENOMEM;
	while (d->c.output_scanline < d->c.output_height) {
		JSAMPROW row = d->row;
		jpeg_read_scanlines(&d->c, &row, 1);
		row_shrinker_add(&d->shrinker, d->row);
	}
	return 0;
}

int jpeg_read(const uint8_t *data, size_t len, uint32_t side, struct image *ret)
{
	struct reading *volatile d = calloc(1, sizeof(*d));
	int r;
	if (!d)
		return -ENOMEM;

	d->c.err = jpeg_std_error(&d->failure.manager);
	d->failure.manager.error_exit = on_error;
	d->failure.manager.output_message = on_message;
	if (setjmp(d->failure.back)) {
		r = -EPROTO;
	} else {
		jpeg_create_decompress(&d->c);
		r = read_rows(d, data, len, side);
	}
	jpeg_destroy_decompress(&d->c);
	row_shrinker_finish(&d->shrinker);
	free(d->row);
	if (r < 0)
		free(d->image.pixels);
	else
		*ret = d->image;
	free(d);
	return r;
}
