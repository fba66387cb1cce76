#include "display/client/watchers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "display/client/screen.h"
#include "display/image/encode.h"

/* ---- who watches ------------------------------------------------------------------------- */

static void forget(struct watcher *w)
{
	free(w->seen);
	*w = (struct watcher){ 0 };
}

/*
 * The watcher's place, or a free one, or that of whoever did not ask for longest and does not wait.
 */
static struct watcher *place_of(struct screen *s, uint32_t id)
{
	struct watcher *best = NULL;
	for (int i = 0; i < LIMIT_WATCHERS; i++) {
		struct watcher *w = &s->watcher[i];
		if (w->options.watcher == id)
			return w;
		if (!w->serial && (!best || w->asked_ns < best->asked_ns))
			best = w;
	}
	if (best)
		forget(best);
	return best;
}

void watch_ask(struct screen *s, uint32_t serial, const struct frame_options *o)
{
	struct watcher *w = o->watcher ? place_of(s, o->watcher) : NULL;
	if (!w) {
		screen_say_trouble(s, serial, "too_many_watchers",
			"too many recordings and live views of this display", "End one of them.");
		return;
	}

	if (w->serial) { /* it asks anew before it was answered */
		struct buffer nothing = BUFFER_INIT(0);
		screen_say_frame(s, w->serial,
			&(struct frame_info){ .width = s->width, .height = s->height }, &nothing);
	}

	w->options = *o;
	w->serial = serial;
	w->asked_ns = clock_now_ns();
}

void watch_cancel(struct screen *s, uint32_t serial)
{
	for (int i = 0; i < LIMIT_WATCHERS; i++)
		if (serial && s->watcher[i].serial == serial)
			forget(&s->watcher[i]); /* it asks no more */
}

/* ---- what changed ------------------------------------------------------------------------- */

struct box {
	uint32_t x0, y0, x1, y1; /* empty when x1 is 0 */
};

static void widen(struct box *b, const uint32_t *was, const uint32_t *is, uint32_t width)
{
	uint32_t from = 0, to = width;
	while (from < b->x0 && was[from] == is[from])
		from++;
	while (to > b->x1 && was[to - 1] == is[to - 1])
		to--;
	b->x0 = from < b->x0 ? from : b->x0;
	b->x1 = to > b->x1 ? to : b->x1;
}

/* The smallest rectangle outside of which the two are alike. */
static struct box difference(const uint8_t *was, const struct image *is)
{
	size_t row = (size_t)is->width * 4;
	struct box b = { .x0 = is->width };
	for (uint32_t y = 0; y < is->height; y++) {
		const uint8_t *old = was + y * row, *new = is->pixels + y *row;
		if (!memcmp(old, new, row))
			continue;
		b.y0 = b.y1 ? b.y0 : y;
		b.y1 = y + 1;
		widen(&b, (const uint32_t *)(const void *)old, (const uint32_t *)(const void *)new,
			is->width);
	}
	return b.y1 ? b : (struct box){ 0 };
}

static int cut(const struct image *from, const struct box *b, struct image *ret)
{
	uint32_t width = b->x1 - b->x0, height = b->y1 - b->y0;
	uint8_t *p = malloc((size_t)width * height * 4);
	if (!p)
		return -ENOMEM;
	for (uint32_t y = 0; y < height; y++)
		memcpy(p + (size_t)y * width * 4,
			from->pixels + ((size_t)(b->y0 + y) * from->width + b->x0) * 4,
			(size_t)width * 4);
	*ret = (struct image){ .pixels = p, .width = width, .height = height };
	return 0;
}

/* ---- answering ------------------------------------------------------------------------------- */

static int encode_part(const struct watcher *w, const struct image *whole, const struct box *b,
	struct buffer *file)
{
	struct image part;
	int r = cut(whole, b, &part);
	if (r < 0)
		return r;
	r = w->options.rgb ? png_encode_rgb(&part, file) : png_encode(&part, 0, file);
	free(part.pixels);
	return r == 0 && file->len > LIMIT_PICTURE_BYTES ? -E2BIG : r;
}

static void answer(
	struct screen *s, struct watcher *w, const struct box *b, const struct buffer *file)
{
	struct frame_info info = { .width = s->width, .height = s->height };
	uint32_t serial = w->serial;
	if (b->x1) {
		info.x = b->x0;
		info.y = b->y0;
		info.part_width = b->x1 - b->x0;
		info.part_height = b->y1 - b->y0;
		w->sent_ns = clock_now_ns();
	}
	w->serial = 0;
	if (w->options.leave)
		forget(w);
	screen_say_frame(s, serial, &info, file);
}

static void fail(struct screen *s, struct watcher *w)
{
	uint32_t serial = w->serial;
	forget(w);
	screen_say_trouble(
		s, serial, "capture_failed", "the screen could not be captured", "Try again.");
}

/* Looks at the screen for a watcher; nothing is said when nothing changed and it can wait. */
static void look(struct screen *s, struct watcher *w)
{
	struct shot_options all = { 0 };
	_cleanup_buffer_ struct buffer file = BUFFER_INIT(LIMIT_PICTURE_BYTES + 65536);
	struct box b = { .x1 = s->width, .y1 = s->height };
	struct image i;
	size_t bytes = (size_t)s->width * s->height * 4;
	uint64_t changes = s->activity.changes;

	if (capture_image(s, &all, &i) < 0) {
		fail(s, w);
		return;
	}

	for (size_t k = 3; k < bytes; k += 4)
		i.pixels[k] = 0; /* what a server leaves in the unused byte is no difference */
	w->changes = changes;
	if (w->seen)
		b = difference(w->seen, &i);
	else if (!(w->seen = malloc(bytes))) {
		fail(s, w);
		return;
	}

	if (!b.x1 && !w->options.now)
		return;
	if (b.x1 && encode_part(w, &i, &b, &file) < 0) {
		fail(s, w);
		return;
	}

	memcpy(w->seen, i.pixels, bytes);
	answer(s, w, &b, &file);
}

int watch_run(struct screen *s)
{
	uint64_t now = clock_now_ns();
	int wait = -1;

	for (int i = 0; i < LIMIT_WATCHERS; i++) {
		struct watcher *w = &s->watcher[i];
		if (!w->serial || (w->seen && w->changes == s->activity.changes && !w->options.now))
			continue;
		uint64_t gap = w->options.gap_ms * NSEC_PER_MSEC;
		if (w->options.now || !w->sent_ns || now - w->sent_ns >= gap) {
			look(s, w);
			continue;
		}
		int left = (int)((gap - (now - w->sent_ns)) / NSEC_PER_MSEC) + 1;
		wait = wait < 0 || left < wait ? left : wait;
	}

	return wait;
}
