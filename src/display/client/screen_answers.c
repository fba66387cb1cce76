/* What the screen process sends to the daemon: answers, pictures, errors. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "display/client/screen.h"
#include "display/image/encode.h"

void screen_send(struct screen *s)
{
	if (fd_write_full(s->daemon, s->out.data, s->out.len) < 0)
		_exit(0);       /* the daemon is gone, or the session */
	buffer_finish(&s->out); /* pictures are large and rare */
}

static void put(struct screen *s, enum display_tag tag, const void *data, size_t len)
{
	if (wire_put(&s->out, (enum wire_tag)tag, data, len) < 0)
		_exit(1);
}

size_t screen_begin(struct screen *s, enum display_say type, uint32_t serial)
{
	size_t start;
	if (wire_begin(&s->out, (enum wire_type)type, serial, &start) < 0)
		_exit(1);
	return start;
}

void screen_say_trouble(
	struct screen *s, uint32_t serial, const char *code, const char *text, const char *remedy)
{
	size_t start = screen_begin(s, DISPLAY_SAY_TROUBLE, serial);
	put(s, DISPLAY_TAG_CODE, code, strlen(code));
	put(s, DISPLAY_TAG_TEXT, text, strlen(text));
	put(s, DISPLAY_TAG_REMEDY, remedy, strlen(remedy));
	wire_end(&s->out, start);
	screen_send(s);
}

void screen_say_done(struct screen *s, uint32_t serial, uint64_t count)
{
	size_t start = screen_begin(s, DISPLAY_SAY_DONE, serial);
	if (wire_put_u64(&s->out, (enum wire_tag)DISPLAY_TAG_COUNT, count) < 0)
		_exit(1);
	wire_end(&s->out, start);
	screen_send(s);
}

void screen_say_frame(
	struct screen *s, uint32_t serial, const struct frame_info *info, const struct buffer *file)
{
	size_t start = screen_begin(s, DISPLAY_SAY_FRAME, serial);
	put(s, DISPLAY_TAG_FRAME, info, sizeof(*info));
	if (file->len)
		put(s, DISPLAY_TAG_DATA, file->data, file->len);
	wire_end(&s->out, start);
	screen_send(s);
}

void screen_put_windows(struct screen *s, const struct window_entry *list, unsigned n)
{
	for (unsigned i = 0; i < n && i < LIMIT_WINDOWS; i++)
		put(s, DISPLAY_TAG_WINDOW, &list[i], sizeof(list[i]));
}

/* ---- pictures -------------------------------------------------------------------------------- */

static void say_capture_failed(
	struct screen *s, uint32_t serial, const struct shot_options *o, int err)
{
	char text[128];
	if (err == -ENOENT && o->active) {
		screen_say_trouble(s, serial, "no_window", "no window has the focus",
			"Leave `window` out for the whole screen.");
	} else if (err == -ENOENT) {
		snprintf(text, sizeof(text), "there is no window %u on the screen", o->window);
		screen_say_trouble(s, serial, "window_not_found", text, "{list_windows}.");
	} else if (err == -ERANGE) {
		snprintf(text, sizeof(text),
			"the region is outside the picture (the screen has %ux%u pixels)", s->width,
			s->height);
		screen_say_trouble(
			s, serial, "region_outside", text, "Give a region that overlaps it.");
	} else if (err == -E2BIG) {
		screen_say_trouble(s, serial, "picture_too_large",
			"the window is larger than a picture may be", "Ask for a region of it.");
	} else {
		snprintf(text, sizeof(text), "the picture could not be taken: %s", strerror(-err));
		screen_say_trouble(s, serial, "capture_failed", text,
			"Try again; {reset} starts the session's display anew.");
	}
}

/*
 * Now that it is made: how long after `from_ns` (0: nothing was awaited) and after the last paint.
 */
static void tell_times(const struct screen *s, uint64_t from_ns, struct picture_info *info)
{
	uint64_t now = clock_now_ns(), paint = s->activity.paint_ns;
	info->after_ms = from_ns ? (double)(now - from_ns) / 1e6 : 0;
	info->paint_ms = paint ? (double)(now - paint) / 1e6 : -1;
}

/* Encodes what was captured into the frame. */
static int put_picture(struct screen *s, const struct shot_options *o, const struct image *full,
	uint64_t from_ns, struct picture_info *info)
{
	struct image small = { 0 };
	const struct image *i = full;
	_cleanup_buffer_ struct buffer file = BUFFER_INIT(LIMIT_PICTURE_BYTES + 65536);

	if (o->scale > 0 && o->scale < 1) {
		int r = image_shrink(full, o->scale, &small);
		if (r < 0)
			return r;
		i = &small;
	}

	int r = encoders[o->format % SHOT_FORMAT_COUNT].encode(i, o->quality, &file);
	info->width = i->width;
	info->height = i->height;
	info->format = o->format % SHOT_FORMAT_COUNT;
	free(small.pixels);
	tell_times(s, from_ns, info);
	if (r < 0 || file.len > LIMIT_PICTURE_BYTES)
		return r < 0 ? r : -E2BIG;
	put(s, DISPLAY_TAG_INFO, info, sizeof(*info));
	put(s, DISPLAY_TAG_DATA, file.data, file.len);
	return 0;
}

void screen_take_picture(struct screen *s, uint32_t serial, const struct shot_options *o,
	uint64_t from_ns, struct picture_info *info)
{
	static struct window_entry list[LIMIT_WINDOWS];
	struct image i;

	info->n_windows = windows_list(s, list, LIMIT_WINDOWS);
	int r = capture_image(s, o, &i);
	size_t start = screen_begin(s, DISPLAY_SAY_PICTURE, serial);
	if (r == 0)
		r = put_picture(s, o, &i, from_ns, info);
	if (r < 0) {
		s->out.len = start;
		say_capture_failed(s, serial, o, r);
		return;
	}

	screen_put_windows(s, list, info->n_windows);
	wire_end(&s->out, start);
	screen_send(s);
}
