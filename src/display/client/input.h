/*
 * Mouse and keyboard of a screen, by XTEST: the server cannot tell them from real ones.
 *
 * An action becomes strokes, which are carried out one after another from the screen's loop, so
 * that a pause or a held key keeps nobody waiting. Actions are carried out in the order in which
 * they came.
 *
 * Characters that no key has (ü, 中, 😀) are put on keys that have none. There are about 20 of those.
 * A key's meaning changes only after the clients have read what was typed with it: they look a key
 * up when they come to its event, not when it was pressed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xcb/xcb.h>

#include "display/protocol.h"

struct screen;

enum { INPUT_WAITING = 16, KEYCODES = 256 };

enum stroke_kind {
	STROKE_KEY,    /* key, down */
	STROKE_BUTTON, /* key, down */
	STROKE_MOVE,   /* x, y */
	STROKE_RAISE,  /* the window under the pointer gets the keyboard */
	STROKE_PAUSE,  /* ms */
	STROKE_QUIET,  /* until the clients wait for events, at most ms */
	STROKE_BIND,   /* key means symbol from now on */
};

struct stroke {
	enum stroke_kind kind;
	uint8_t key;
	bool down;
	int16_t x, y;
	uint32_t value; /* ms, or the symbol */
};

/* keyboard.c: what the keys mean, and which are to spare. */
struct keyboard {
	unsigned first, last, columns;
	xcb_keysym_t symbol[KEYCODES][2]; /* plain, with shift */
	uint8_t spare[KEYCODES];          /* keys that mean nothing, or what we gave them */
	/* by key: it has been given a meaning; since the clients were last quiet */
	bool ours[KEYCODES], taken[KEYCODES];
	unsigned n_spare, next;
};

int keyboard_load(struct screen *s, struct keyboard *k); /* -EIO */
/* The key that has the symbol, and whether with shift; 0: none. */
uint8_t keyboard_find(const struct keyboard *k, xcb_keysym_t symbol, bool *ret_shift);
/*
 * Sets a spare key aside for the symbol; 0: all are taken, wait until the clients are quiet and
 * call keyboard_free().
 */
uint8_t keyboard_take(struct keyboard *k, xcb_keysym_t symbol);
void keyboard_free(struct keyboard *k);
void keyboard_bind(struct screen *s, const struct keyboard *k, uint8_t key, xcb_keysym_t symbol);

struct input {
	struct input_waiting {
		uint32_t serial;
		struct input_action *action;
	} waiting[INPUT_WAITING];
	unsigned n_waiting;
	struct keyboard keyboard;
	uint32_t serial; /* of the action whose strokes these are; 0: none */
	struct stroke *stroke;
	size_t n, at, room;
	uint64_t since_ns; /* the current stroke waits; 0: it does not */
	bool held_key[KEYCODES];
	bool held_button[8];
};

/*
 * An action from the daemon, with as many bytes as came. 0, or -EBUSY, -EINVAL, -ENOMEM: it will
 * not be carried out.
 */
int input_add(struct screen *s, uint32_t serial, const void *action, size_t len);
/* Not wanted any more: what is still held of it is let go. */
void input_cancel(struct screen *s, uint32_t serial);
/* Carries out what is due. Returns the milliseconds to the next stroke, -1 when there is none. */
int input_run(struct screen *s);
