/* Animated PNG: hostile pictures in, sound chunks out. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "display/image/apng.h"
#include "tap.h"

/* A PNG of one size whose data is "data"; only what is looked at is right. */
static size_t make_png(char *out, uint32_t width, uint32_t height, uint32_t data_len)
{
	static const char start[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
	memcpy(out, start, 16);
	memset(out + 16, 0, 17);
	out[19] = (char)width;
	out[23] = (char)height;
	out[24] = 8;
	out[25] = 2;
	memset(out + 33, 0, 4);
	out[36] = (char)data_len;
	memcpy(out + 37, "IDATdata....", 12);
	return 49;
}

static uint32_t get32(const char *p)
{
	return (uint32_t)(uint8_t)p[0] << 24 | (uint32_t)(uint8_t)p[1] << 16 |
	       (uint32_t)(uint8_t)p[2] << 8 | (uint8_t)p[3];
}

static void film(void)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct frame_info whole = { 40, 30, 0, 0, 40, 30 }, part = { 40, 30, 10, 20, 5, 6 };
	uint8_t count[APNG_COUNT_BYTES];
	struct apng a;
	char png[64];
	OK(apng_begin(&a, 40, 30, &b) == 0 && b.len == APNG_COUNT_AT + APNG_COUNT_BYTES);
	size_t len = make_png(png, 40, 30, 4);
	OK(apng_frame(&a, &whole, 250, png, len, &b) == 0);
	size_t first = APNG_COUNT_AT + APNG_COUNT_BYTES;
	OK(!memcmp(b.data + first + 4, "fcTL", 4) && get32(b.data + first + 8) == 0);
	OK((uint8_t)b.data[first + 8 + 21] == 250 &&
		!memcmp(b.data + first + 38 + 4, "IDATdata", 8));
	len = make_png(png, 5, 6, 4);
	size_t second = b.len;
	OK(apng_frame(&a, &part, 100000, png, len, &b) == 0);
	OK(get32(b.data + second + 8) == 1 && get32(b.data + second + 20) == 10 &&
		get32(b.data + second + 24) == 20);
	/* seconds, when milliseconds do not fit */
	OK(b.data[second + 8 + 21] == 100 && b.data[second + 8 + 23] == 1);
	OK(!memcmp(b.data + second + 38 + 4, "fdAT", 4) && get32(b.data + second + 38 + 8) == 2);
	OK(apng_end(&a, &b) == 0 && !memcmp(b.data + b.len - 8, "IEND\xae\x42\x60\x82", 8));
	apng_count(&a, count);
	OK(a.frames == 2 && !memcmp(count + 4, "acTL\0\0\0\2", 8));
}

static void hostile(void)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct frame_info whole = { 40, 30, 0, 0, 40, 30 }, part = { 40, 30, 0, 0, 5, 6 },
			  outside = { 40, 30, 38, 0, 5, 6 };
	struct apng a;
	char png[64];
	apng_begin(&a, 40, 30, &b);
	size_t begun = b.len, len = make_png(png, 5, 6, 4);
	OK(apng_frame(&a, &part, 1, png, len, &b) == -EPROTO);  /* the first must be whole */
	OK(apng_frame(&a, &whole, 1, png, len, &b) == -EPROTO); /* of another size than it says */
	len = make_png(png, 40, 30, 5);
	OK(apng_frame(&a, &whole, 1, png, len, &b) == -EPROTO); /* a chunk beyond the end */
	len = make_png(png, 40, 30, 4);
	for (size_t cut = 0; cut < len; cut++) {
		char *copy = malloc(cut + 1);
		memcpy(copy, png, cut);
		if (apng_frame(&a, &whole, 1, copy, cut, &b) != -EPROTO)
			OK(!"a cut file was taken");
		free(copy);
	}
	OK(b.len == begun && a.frames == 0);
	OK(apng_frame(&a, &whole, 1, png, len, &b) == 0);
	len = make_png(png, 5, 6, 4);
	OK(apng_frame(&a, &outside, 1, png, len, &b) == -EPROTO);
	png[25] = 3;
	OK(apng_frame(&a, &part, 1, png, len, &b) == -EPROTO); /* with a palette */
}

int main(void)
{
	film();
	hostile();
	return tap_done();
}
