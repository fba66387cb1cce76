#include "display/client/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xcb/xtest.h>
#include <xkbcommon/xkbcommon-keysyms.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "display/client/keys.h"
#include "display/client/screen.h"

enum {
	DRAG_STEPS = 12,
	DRAG_STEP_MS = 4, /* programs that follow the pointer see it on its way */
	LEARN_MS = 150,   /* at most, for the clients to hear that keys mean something else */
	/* at most, for the clients to read what was typed before a key gets another meaning */
	READ_MS = 2000,
	STROKES_MAX = 1 << 18,
};

/* ---- making strokes ----------------------------------------------------------------------- */

static int push(struct input *in, struct stroke k)
{
	if (in->n == in->room) {
		size_t room = in->room ? in->room * 2 : 64;
		struct stroke *p = room > STROKES_MAX ? NULL
						      : realloc(in->stroke, room * sizeof(*p));
		if (!p)
			return -ENOMEM;
		in->stroke = p;
		in->room = room;
	}
	in->stroke[in->n++] = k;
	return 0;
}

static int push_key(struct input *in, uint8_t key, bool down)
{
	return push(in, (struct stroke){ .kind = STROKE_KEY, .key = key, .down = down });
}

static int push_button(struct input *in, uint32_t button, bool down)
{
	return push(
		in, (struct stroke){ .kind = STROKE_BUTTON, .key = (uint8_t)button, .down = down });
}

static int push_move(struct input *in, int x, int y)
{
	return push(in, (struct stroke){ .kind = STROKE_MOVE, .x = (int16_t)x, .y = (int16_t)y });
}

static int push_wait(struct input *in, enum stroke_kind kind, uint32_t ms)
{
	return push(in, (struct stroke){ .kind = kind, .value = ms });
}

/* The key of a symbol. One that no key has is put on a spare key, which is another stroke. */
static int find_or_bind(
	struct input *in, xcb_keysym_t symbol, uint8_t *ret_key, bool *ret_shift, bool *ret_bound)
{
	*ret_shift = false;
	*ret_key = keyboard_find(&in->keyboard, symbol, ret_shift);
	if (*ret_key)
		return 0;
	*ret_key = keyboard_take(&in->keyboard, symbol);
	if (!*ret_key)
		return -ENOSPC;
	*ret_bound = true;
	return push(in, (struct stroke){ .kind = STROKE_BIND, .key = *ret_key, .value = symbol });
}

static uint32_t next_character(const char *text, size_t len, size_t *at)
{
	const unsigned char *s = (const unsigned char *)text + *at;
	size_t n;
	enum utf8 what = utf8_step(s, len - *at, &n);
	uint32_t u = n == 1 ? s[0] : s[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++)
		u = u << 6 | (s[i] & 0x3f);
	*at += n;
	return what == UTF8_VALID ? u : 0xfffd;
}

/*
 * Assigns unused keys to the characters of the text while there are unused keys; *ret_end is the
 * end of the part that has keys.
 */
static int bind_some(struct input *in, const struct input_action *a, size_t from, size_t *ret_end)
{
	bool bound = false, shift;
	uint8_t key;
	size_t at = from, end = from;
	int r = 0;

	for (; at < a->text_len; end = at) {
		uint32_t symbol = keys_of_character(next_character(a->text, a->text_len, &at));
		r = symbol ? find_or_bind(in, symbol, &key, &shift, &bound) : 0;
		if (r < 0)
			break;
	}

	*ret_end = end;
	if (r == -ENOSPC && end > from)
		r = 0;
	return r == 0 && bound ? push_wait(in, STROKE_QUIET, LEARN_MS) : r;
}

static int press_text(struct input *in, const char *text, size_t len)
{
	bool held = false, shift, none;
	uint8_t key, shift_key = keyboard_find(&in->keyboard, XKB_KEY_Shift_L, &none);
	int r = 0;

	for (size_t at = 0; at < len && r == 0;) {
		uint32_t symbol = keys_of_character(next_character(text, len, &at));
		key = symbol ? keyboard_find(&in->keyboard, symbol, &shift) : 0;
		if (!key)
			continue;
		if (shift != held && shift_key)
			r = push_key(in, shift_key, held = shift);
		r = r < 0 ? r : push_key(in, key, true);
		r = r < 0 ? r : push_key(in, key, false);
	}

	return r == 0 && held ? push_key(in, shift_key, false) : r;
}

static int make_type(struct input *in, const struct input_action *a)
{
	size_t from = 0, end;
	int r = 0;

	while (from < a->text_len && r == 0) {
		r = bind_some(in, a, from, &end);
		/* what was typed first must have been read */
		if (r == -ENOSPC || (r == 0 && end < a->text_len)) {
			r = r < 0 ? 0 : press_text(in, a->text + from, end - from);
			r = r < 0 ? r : push_wait(in, STROKE_QUIET, READ_MS);
			if (r == 0 && end == from && !in->keyboard.n_spare)
				return -ENOSPC;
			keyboard_free(&in->keyboard);
		} else if (r == 0) {
			r = press_text(in, a->text + from, end - from);
		}
		from = end;
	}

	return r;
}

/*
 * Presses the keys of the action, or releases them in reverse order. For symbols that need Shift,
 * Shift is pressed as well.
 */
static int make_keys(struct input *in, const struct input_action *a, bool down)
{
	uint8_t keys[LIMIT_INPUT_KEYS + 1];
	bool bound = false, shift, any_shift = false, none;
	size_t n = 0;
	int r = 0;

	for (uint32_t i = 0; i < a->n_keys && r == 0; i++) {
		r = find_or_bind(in, a->keys[i], &keys[n], &shift, &bound);
		if (r == -ENOSPC) {
			keyboard_free(&in->keyboard);
			r = push_wait(in, STROKE_QUIET, READ_MS);
			r = r < 0 ? r : find_or_bind(in, a->keys[i], &keys[n], &shift, &bound);
		}
		any_shift |= shift;
		n++;
	}

	if (r == 0 && bound)
		r = push_wait(in, STROKE_QUIET, LEARN_MS);
	uint8_t shift_key = any_shift ? keyboard_find(&in->keyboard, XKB_KEY_Shift_L, &none) : 0;
	if (shift_key && down)
		r = r < 0 ? r : push_key(in, shift_key, true);
	for (size_t i = 0; i < n && r == 0; i++)
		r = push_key(in, down ? keys[i] : keys[n - 1 - i], down);
	return shift_key && !down && r == 0 ? push_key(in, shift_key, false) : r;
}

static int make_clicks(struct input *in, const struct input_action *a)
{
	int r = a->button <= INPUT_RIGHT ? push(in, (struct stroke){ .kind = STROKE_RAISE }) : 0;
	for (uint32_t i = 0; i < a->count && r == 0; i++) {
		r = push_button(in, a->button, true);
		r = r < 0 ? r : push_button(in, a->button, false);
	}
	return r;
}

static int make_drag(struct input *in, const struct input_action *a, int x, int y)
{
	int r = push(in, (struct stroke){ .kind = STROKE_RAISE });
	r = r < 0 ? r : push_button(in, a->button, true);
	for (int i = 1; i <= DRAG_STEPS && r == 0; i++) {
		r = push_wait(in, STROKE_PAUSE, DRAG_STEP_MS);
		r = r < 0 ? r
			  : push_move(in, x + (a->x - x) * i / DRAG_STEPS,
				    y + (a->y - y) * i / DRAG_STEPS);
	}
	r = r < 0 ? r : push_wait(in, STROKE_PAUSE, DRAG_STEP_MS);
	return r < 0 ? r : push_button(in, a->button, false);
}

static void where(struct screen *s, int *x, int *y)
{
	_cleanup_free_ xcb_query_pointer_reply_t *p = xcb_query_pointer_reply(
		s->x, xcb_query_pointer(s->x, s->root), NULL);
	*x = p ? p->root_x : 0;
	*y = p ? p->root_y : 0;
}

static int make_pointing(struct screen *s, struct input *in, const struct input_action *a)
{
	int x = a->start_x, y = a->start_y, r = 0;
	if (a->kind == INPUT_DRAG && !a->has_start)
		where(s, &x, &y);
	if (a->kind == INPUT_DRAG)
		r = push_move(in, x, y);
	else if (a->has_point)
		r = push_move(in, a->x, a->y);
	if (r == 0 && a->n_keys)
		r = make_keys(in, a, true);
	if (r == 0 && a->kind == INPUT_CLICK)
		r = make_clicks(in, a);
	else if (r == 0 && a->kind == INPUT_DRAG)
		r = make_drag(in, a, x, y);
	else if (r == 0 && a->kind == INPUT_DOWN)
		r = push(in, (struct stroke){ .kind = STROKE_RAISE });
	if (r == 0 && (a->kind == INPUT_DOWN || a->kind == INPUT_UP))
		r = push_button(in, a->button, a->kind == INPUT_DOWN);
	return r == 0 && a->n_keys ? make_keys(in, a, false) : r;
}

static int make_strokes(struct screen *s, const struct input_action *a)
{
	struct input *in = &s->input;
	bool keys = a->n_keys || a->kind == INPUT_TYPE;
	int r = keys ? keyboard_load(s, &in->keyboard) : 0;

	if (r < 0)
		return r;
	switch (a->kind) {
	case INPUT_TYPE:
		return make_type(in, a);
	case INPUT_WAIT:
		return push_wait(in, STROKE_PAUSE, a->ms);
	case INPUT_KEYS:
		r = make_keys(in, a, true);
		r = r == 0 && a->ms ? push_wait(in, STROKE_PAUSE, a->ms) : r;
		return r < 0 ? r : make_keys(in, a, false);
	case INPUT_KEY_DOWN:
	case INPUT_KEY_UP:
		return make_keys(in, a, a->kind == INPUT_KEY_DOWN);
	case INPUT_NOTHING:
		return 0;
	default:
		return make_pointing(s, in, a);
	}
}

/* ---- carrying them out ---------------------------------------------------------------------- */

static void fake(struct screen *s, uint8_t type, uint8_t detail, int x, int y)
{
	xcb_test_fake_input(
		s->x, type, detail, XCB_CURRENT_TIME, s->root, (int16_t)x, (int16_t)y, 0);
}

static void strike_key(struct screen *s, uint8_t key, bool down)
{
	s->input.held_key[key] = down;
	fake(s, down ? XCB_KEY_PRESS : XCB_KEY_RELEASE, key, 0, 0);
}

static void strike_button(struct screen *s, uint8_t button, bool down)
{
	s->input.held_button[button & 7] = down;
	fake(s, down ? XCB_BUTTON_PRESS : XCB_BUTTON_RELEASE, button & 7, 0, 0);
}

/* True when the stroke is done; a stroke that waits is asked again. */
static bool strike(struct screen *s, const struct stroke *k, uint64_t now)
{
	struct input *in = &s->input;
	switch (k->kind) {
	case STROKE_KEY:
		strike_key(s, k->key, k->down);
		return true;
	case STROKE_BUTTON:
		strike_button(s, k->key, k->down);
		return true;
	case STROKE_MOVE:
		fake(s, XCB_MOTION_NOTIFY, 0, k->x, k->y);
		return true;
	case STROKE_RAISE:
		manager_raise_under_pointer(s);
		return true;
	case STROKE_BIND:
		keyboard_bind(s, &in->keyboard, k->key, k->value);
		return true;
	default:
		break;
	}

	if (!in->since_ns) {
		in->since_ns = now;
		xcb_flush(s->x);
	}

	bool over = now - in->since_ns >= k->value * NSEC_PER_MSEC;
	if (!over && k->kind == STROKE_QUIET)
		over = screen_is_quiet(s, in->since_ns);
	if (over)
		in->since_ns = 0;
	return over;
}

static void end_strokes(struct input *in)
{
	free(in->stroke);
	in->stroke = NULL;
	in->n = in->at = in->room = 0;
	in->serial = 0;
	in->since_ns = 0;
}

static struct input_waiting take_first(struct input *in)
{
	struct input_waiting first = in->waiting[0];
	memmove(in->waiting, in->waiting + 1, --in->n_waiting * sizeof(first));
	return first;
}

static void begin_next(struct screen *s)
{
	struct input_waiting next = take_first(&s->input);
	s->input.serial = next.serial;
	int r = make_strokes(s, next.action);
	free(next.action);
	if (r == 0)
		return;
	end_strokes(&s->input);
	screen_say_trouble(s, next.serial, "input_failed",
		r == -ENOSPC ? "the keyboard of the display has no unused key for these characters"
			     : "the display did not take the keys",
		"Try again with less text; {reset} starts the session's display anew.");
}

int input_run(struct screen *s)
{
	struct input *in = &s->input;
	for (;;) {
		if (!in->serial && !in->n_waiting)
			return -1;
		if (!in->serial) {
			begin_next(s);
			continue;
		}
		uint64_t now = clock_now_ns();
		while (in->at < in->n && strike(s, &in->stroke[in->at], now))
			in->at++;
		if (in->at < in->n) {
			const struct stroke *k = &in->stroke[in->at];
			uint64_t left = k->value * NSEC_PER_MSEC - (now - in->since_ns);
			return k->kind == STROKE_QUIET ? SETTLE_TICK_MS
						       : (int)(left / NSEC_PER_MSEC) + 1;
		}
		uint32_t serial = in->serial;
		int x, y;
		end_strokes(in);
		where(s, &x, &y); /* its answer comes after the server has passed all of it on */
		screen_say_done(s, serial, INPUT_POINTER(x, y));
	}
}

/* ---- coming and going --------------------------------------------------------------- */

static bool is_sound(const struct input_action *a, size_t len)
{
	return a->text_len <= LIMIT_INPUT_TEXT && len == input_action_bytes(a) &&
	       a->kind < INPUT_KIND_COUNT && a->n_keys <= LIMIT_INPUT_KEYS;
}

int input_add(struct screen *s, uint32_t serial, const void *action, size_t len)
{
	struct input *in = &s->input;
	if (in->n_waiting == INPUT_WAITING)
		return -EBUSY;
	_cleanup_free_ struct input_action *a = calloc(1, sizeof(*a));
	if (!a || len > sizeof(*a))
		return a ? -EINVAL : -ENOMEM;
	memcpy(a, action, len);
	if (!is_sound(a, len))
		return -EINVAL;
	in->waiting[in->n_waiting++] = (struct input_waiting){ serial, TAKE_PTR(a) };
	return 0;
}

static void let_go(struct screen *s)
{
	for (unsigned key = 0; key < KEYCODES; key++)
		if (s->input.held_key[key])
			strike_key(s, (uint8_t)key, false);
	for (uint8_t button = 1; button < 8; button++)
		if (s->input.held_button[button])
			strike_button(s, button, false);
	xcb_flush(s->x);
}

void input_cancel(struct screen *s, uint32_t serial)
{
	struct input *in = &s->input;
	for (unsigned i = 0; i < in->n_waiting; i++) {
		if (in->waiting[i].serial != serial)
			continue;
		free(in->waiting[i].action);
		memmove(in->waiting + i, in->waiting + i + 1,
			(--in->n_waiting - i) * sizeof(in->waiting[0]));
		return;
	}
	if (!serial || in->serial != serial)
		return;
	end_strokes(in);
	let_go(s);
}
