/*
 * What a screen says: it lives with hostile code, so that every size and number is checked here,
 * and used nowhere before. No I/O.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/limits.h"
#include "session/display/session_display.h"
#include "wire/wire.h"

/*
 * Text of a field as a C string in the frame's own order; bytes that are no text are the JSON
 * writer's matter.
 */
static const char *keep_text(const struct wire_field *f, char *out, size_t size)
{
	size_t n = f->len < size ? f->len : size - 1;
	memcpy(out, f->data, n);
	out[n] = '\0';
	return out;
}

static int take_picture_info(const struct wire_field *f, struct picture_info *ret)
{
	if (f->len != sizeof(*ret))
		return -EPROTO;

	memcpy(ret, f->data, sizeof(*ret));
	if (ret->width > UINT16_MAX || ret->height > UINT16_MAX ||
		ret->format >= SHOT_FORMAT_COUNT || ret->reason >= SHOT_REASON_COUNT)
		return -EPROTO;

	/* A bool or a number that is none would be ours to trip over. */
	uint8_t flags[2];
	memcpy(&flags[0], f->data + offsetof(struct picture_info, settled), 1);
	memcpy(&flags[1], f->data + offsetof(struct picture_info, in_event_loop), 1);
	ret->settled = flags[0] & 1;
	ret->in_event_loop = flags[1] & 1;
	if (!(ret->after_ms >= 0 && ret->after_ms < 1e12))
		ret->after_ms = 0;
	if (!(ret->paint_ms >= -1 && ret->paint_ms < 1e12))
		ret->paint_ms = -1;
	return 0;
}

static int take_window(const struct wire_field *f, struct window_entry *ret)
{
	if (f->len != sizeof(*ret))
		return -EPROTO;

	memcpy(ret, f->data, sizeof(*ret));
	uint8_t flags[2];
	memcpy(&flags[0], f->data + offsetof(struct window_entry, focused), 1);
	memcpy(&flags[1], f->data + offsetof(struct window_entry, dialog), 1);
	ret->focused = flags[0] & 1;
	ret->dialog = flags[1] & 1;
	ret->title[sizeof(ret->title) - 1] = '\0';
	ret->class_name[sizeof(ret->class_name) - 1] = '\0';
	return 0;
}

static int take_frame(const struct wire_field *f, struct frame_info *ret)
{
	struct frame_info i;
	if (f->len != sizeof(i))
		return -EPROTO;

	memcpy(&i, f->data, sizeof(i));
	if (!i.width || !i.height || i.width > LIMIT_DISPLAY_SIDE ||
		i.height > LIMIT_DISPLAY_SIDE || i.x > i.width || i.y > i.height ||
		i.part_width > i.width - i.x || i.part_height > i.height - i.y)
		return -EPROTO;

	*ret = i;
	return 0;
}

int display_reply_take(const struct wire_frame *f, struct display_reply *r)
{
	static struct window_entry windows[LIMIT_WINDOWS];
	static char code[64], text[256], remedy[256];
	struct wire_field field;
	size_t at = 0;
	int e;

	code[0] = text[0] = remedy[0] = '\0';
	*r = (struct display_reply){
		.type = f->type, .code = code, .text = text, .remedy = remedy, .windows = windows
	};
	while ((e = wire_field_next(f, &at, &field)) == 1) {
		if (field.tag == DISPLAY_TAG_INFO) {
			e = take_picture_info(&field, &r->info);
		} else if (field.tag == DISPLAY_TAG_FRAME) {
			e = take_frame(&field, &r->frame);
		} else if (field.tag == DISPLAY_TAG_DATA) {
			r->data = field.data;
			r->len = field.len;
			e = field.len > LIMIT_PICTURE_BYTES ? -EPROTO : 0;
		} else if (field.tag == DISPLAY_TAG_WINDOW) {
			e = r->n_windows < LIMIT_WINDOWS
				    ? take_window(&field, &windows[r->n_windows++])
				    : -EPROTO;
		} else if (field.tag == DISPLAY_TAG_COUNT) {
			e = wire_field_u64(&field, &r->count);
		} else if (field.tag == DISPLAY_TAG_CODE) {
			keep_text(&field, code, sizeof(code));
		} else if (field.tag == DISPLAY_TAG_TEXT) {
			keep_text(&field, text, sizeof(text));
		} else if (field.tag == DISPLAY_TAG_REMEDY) {
			keep_text(&field, remedy, sizeof(remedy));
		}
		if (e < 0)
			return e;
	}

	return e;
}
