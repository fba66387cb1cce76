#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "display/client/input.h"
#include "display/client/screen.h"

enum { COLUMNS_MAX = 16 };

/*
 * The map as it is now: the session's code may have changed it. Keys that we gave a meaning stay
 * ours.
 */
int keyboard_load(struct screen *s, struct keyboard *k)
{
	const xcb_setup_t *setup = xcb_get_setup(s->x);
	k->first = setup->min_keycode;
	k->last = setup->max_keycode;
	if (k->first < 1 || k->last < k->first)
		return -EIO;
	unsigned n = k->last - k->first + 1;
	_cleanup_free_ xcb_get_keyboard_mapping_reply_t *r = xcb_get_keyboard_mapping_reply(
		s->x, xcb_get_keyboard_mapping(s->x, (uint8_t)k->first, (uint8_t)n), NULL);
	if (!r || !r->keysyms_per_keycode ||
		(unsigned)xcb_get_keyboard_mapping_keysyms_length(r) < n * r->keysyms_per_keycode)
		return -EIO;
	const xcb_keysym_t *all = xcb_get_keyboard_mapping_keysyms(r);
	k->columns = r->keysyms_per_keycode;
	k->n_spare = 0;
	for (unsigned key = k->last; key >= k->first; key--) {
		const xcb_keysym_t *row = all + (size_t)(key - k->first) * k->columns;
		bool empty = true;
		for (unsigned c = 0; c < k->columns; c++)
			empty = empty && !row[c];
		k->symbol[key][0] = row[0];
		k->symbol[key][1] = k->columns > 1 ? row[1] : 0;
		if (empty || k->ours[key])
			k->spare[k->n_spare++] = (uint8_t)key;
	}

	return 0;
}

uint8_t keyboard_find(const struct keyboard *k, xcb_keysym_t symbol, bool *ret_shift)
{
	for (int column = 0; column < 2; column++)
		for (unsigned key = k->first; key <= k->last; key++)
			if (k->symbol[key][column] == symbol) {
				*ret_shift = column == 1;
				return (uint8_t)key;
			}
	return 0;
}

uint8_t keyboard_take(struct keyboard *k, xcb_keysym_t symbol)
{
	for (unsigned i = 0; i < k->n_spare; i++) {
		/* In turns, so that a key's last meaning stays as long as possible. */
		uint8_t key = k->spare[(k->next + i) % k->n_spare];
		if (k->taken[key])
			continue;
		k->next = (k->next + i + 1) % k->n_spare;
		k->ours[key] = k->taken[key] = true;
		k->symbol[key][0] = k->symbol[key][1] = symbol;
		return key;
	}
	return 0;
}

void keyboard_free(struct keyboard *k)
{
	memset(k->taken, 0, sizeof(k->taken));
}

void keyboard_bind(struct screen *s, const struct keyboard *k, uint8_t key, xcb_keysym_t symbol)
{
	xcb_keysym_t row[COLUMNS_MAX] = { symbol, symbol };
	xcb_change_keyboard_mapping(
		s->x, 1, key, (uint8_t)(k->columns < COLUMNS_MAX ? k->columns : COLUMNS_MAX), row);
}
