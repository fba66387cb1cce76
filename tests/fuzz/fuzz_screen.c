/*
 * What a hostile screen process may say: bytes into the reader, frames into replies, pictures of a
 * film into its file. Whatever is let through must be as the daemon's other parts rely on.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "display/image/apng.h"
#include "session/display/session_display.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
	if (!holds)
		abort();
}

static void check_windows(const struct display_reply *r)
{
	expect(r->n_windows <= LIMIT_WINDOWS);
	for (unsigned i = 0; i < r->n_windows; i++) {
		expect(strnlen(r->windows[i].title, sizeof(r->windows[i].title)) <
			sizeof(r->windows[i].title));
		expect(strnlen(r->windows[i].class_name, sizeof(r->windows[i].class_name)) <
			sizeof(r->windows[i].class_name));
	}
}

static void check_reply(const struct display_reply *r)
{
	const struct frame_info *f = &r->frame;
	expect(r->info.format < SHOT_FORMAT_COUNT && r->info.reason < SHOT_REASON_COUNT);
	expect(r->info.width <= UINT16_MAX && r->info.height <= UINT16_MAX);
	expect(r->info.after_ms >= 0 && r->info.paint_ms >= -1);
	expect(f->width <= LIMIT_DISPLAY_SIDE && f->height <= LIMIT_DISPLAY_SIDE);
	expect(f->x + f->part_width <= f->width && f->y + f->part_height <= f->height);
	expect(!r->len || r->data);
	check_windows(r);
}

/* As a recording does: the first frame tells the size of the film. */
static void film(struct apng *a, const struct display_reply *r, struct buffer *out)
{
	if (r->type != DISPLAY_SAY_FRAME || !r->len || !r->frame.part_width)
		return;
	size_t before = out->len;
	if (!a->width && apng_begin(a, r->frame.width, r->frame.height, out) < 0)
		return;
	uint32_t frames = a->frames;
	int e = apng_frame(a, &r->frame, 40, r->data, r->len, out);
	expect(e == 0 ? a->frames == frames + 1 && out->len > before : a->frames == frames);
}

static void feed(
	struct wire_reader *in, struct apng *a, struct buffer *out, const uint8_t *data, size_t len)
{
	char *at;
	size_t room;
	struct wire_frame f;
	struct display_reply r;
	if (wire_reader_room(in, len, &at, &room) < 0)
		return;
	memcpy(at, data, len);
	wire_reader_filled(in, len);
	while (wire_reader_next(in, &f) == 1) {
		if (display_reply_take(&f, &r) < 0)
			continue;
		check_reply(&r);
		film(a, &r, out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_reader in;
	struct apng a = { 0 };
	struct buffer out = BUFFER_INIT(1 << 20);
	if (!size)
		return 0;
	size_t cut = data[0] % size;
	wire_reader_init(&in, 1 << 16);
	feed(&in, &a, &out, data + 1, cut);
	feed(&in, &a, &out, data + 1 + cut, size - 1 - cut);
	apng_end(&a, &out);
	buffer_finish(&out);
	wire_reader_finish(&in);
	return 0;
}
