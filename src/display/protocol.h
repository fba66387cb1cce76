/*
 * The protocol between the daemon and the processes of a display.
 *
 * Three kinds of processes, none of which is the daemon:
 *   X zygote   an unmodified Xvfb with glovebox-xserver.so in it: forks X servers into jails (xzygote.c)
 *   screens    `glovebox screens`: forks screen processes into jails, starts plain X servers there (screens.c)
 *   screen     one per display, inside the jail: our only X client; window manager, damage watcher, capturer (screen.c)
 * and, while a recording becomes a film of another format, a fourth:
 *   film       the program ffmpeg, inside the jail: its input is made of what a screen said (screens.c)
 *
 * The first two get SEQPACKET messages with descriptors. A screen speaks frames of wire.h over a stream socket: the daemon asks
 * (enum display_ask, the serial names the question), the screen says (enum display_say, with the serial of what it answers). Both
 * ends are the same program, so options travel as structs; but a screen lives with hostile code, so the daemon checks every
 * size and number that comes from it.
 *
 * A new action on a display is: a value in display_ask, its struct here, a row in screen.c's table, and display_ask() in
 * the daemon (session/display/session_display.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "jail/xsocket.h"

/* ---- forking ---------------------------------------------------------------------- */

enum display_process { DISPLAY_SERVER, DISPLAY_SCREEN, DISPLAY_FILM, DISPLAY_PROCESSES };

/*
 * What a recording can be fetched as. The first is what it is; the others are made of it by
 * FILM_PROGRAM.
 */
enum film_format { FILM_APNG, FILM_WEBM, FILM_MP4, FILM_GIF, FILM_FORMATS };
/* NULL at the end of the names */
extern const char *const film_names[FILM_FORMATS + 1], *const film_media_types[FILM_FORMATS];

/*
 * What a film is made of, beside the recording itself: its last frame would be shown for no time
 * otherwise.
 */
struct film_make {
	uint32_t format; /* enum film_format */
	uint32_t frames;
	uint64_t end_ms, last_ms; /* when it ends, and how long its last frame is shown */
};
#define FILM_PROGRAM "/usr/bin/ffmpeg"
enum { FILM_NO_PROGRAM = 127 }; /* exit code of a film process that found none */

/*
 * Start a process in a jail. Descriptors: [jail init pidfd, A, B], then the descriptors of the
 * control group as for wire_spawn. SERVER: A is the listening socket, B a file with the cookie in
 * Xauthority's form. SCREEN: A is the stream to the daemon, B the connection to the X server. FILM:
 * A is the recording, B an empty file in memory for the film.
 */
struct display_spawn {
	uint32_t serial;
	uint32_t process; /* enum display_process */
	uint32_t into;    /* the control group's descriptor is a directory to be cloned into */
	uint32_t dpi;
	uint32_t width, height, depth;
	struct film_make film;
	uint8_t cookie[XSOCKET_COOKIE];
};
enum { DISPLAY_SPAWN_FDS = 3, DISPLAY_SPAWN_FDS_MAX = 8 };

/*
 * The answer brings the pidfd when err is 0. Serial 0: the helper is able to serve (or err and text
 * say why not).
 */
struct display_spawned {
	uint32_t serial;
	int32_t err; /* negative errno */
	int32_t pid;
	uint32_t process;
	char text[128]; /* the step that failed */
};

enum { DISPLAY_HELPER_SOCKET = 3, DISPLAY_HELPER_JAILER = 4 };

/* ---- asking ------------------------------------------------------------------------- */

enum display_ask {
	DISPLAY_ASK_SHOT = 1, /* struct shot_options; answered by PICTURE or TROUBLE */
	DISPLAY_ASK_WINDOWS,  /* answered by WINDOWS */
	/* asks all windows to close, as the button of a title bar does; answered by DONE */
	DISPLAY_ASK_CLOSE,
	/* an event that means nothing to every window: wakes a main loop; answered by DONE */
	DISPLAY_ASK_POKE,
	DISPLAY_ASK_CANCEL, /* the question of this serial needs no answer any more */
	DISPLAY_ASK_NOW,    /* the shot of this serial waits no longer: the cell is over */
	/* struct frame_options; answered by FRAME when the screen has changed since this watcher's
	 * last */
	DISPLAY_ASK_FRAME,
	/* struct input_action; answered by DONE when it was carried out, with where the pointer is
	 * then */
	DISPLAY_ASK_INPUT,
};

enum display_say {
	DISPLAY_SAY_UP = 32, /* serial 0: the X server answers */
	DISPLAY_SAY_PICTURE, /* INFO, DATA, WINDOW* */
	DISPLAY_SAY_WINDOWS, /* WINDOW* */
	DISPLAY_SAY_DONE,    /* COUNT */
	DISPLAY_SAY_TROUBLE, /* CODE, TEXT, REMEDY */
	DISPLAY_SAY_FRAME,   /* FRAME, DATA (a PNG; none when nothing changed) */
};

enum display_tag {
	DISPLAY_TAG_OPTIONS = 1, /* the struct of the question */
	DISPLAY_TAG_INFO,        /* struct picture_info */
	DISPLAY_TAG_DATA,        /* bytes of an image */
	DISPLAY_TAG_WINDOW,      /* struct window_entry */
	DISPLAY_TAG_COUNT,       /* u64 */
	DISPLAY_TAG_CODE,        /* text, a word for programs */
	DISPLAY_TAG_TEXT,        /* text, what is wrong */
	DISPLAY_TAG_REMEDY,      /* text, what to do */
	DISPLAY_TAG_FRAME,       /* struct frame_info */
};

enum shot_format { SHOT_PNG, SHOT_JPEG, SHOT_FORMAT_COUNT };

struct shot_options {
	uint32_t window; /* this one alone, also where others cover it; 0: the whole screen */
	bool active;     /* the window that has the focus */
	bool has_region; /* only this part of it */
	int32_t x, y;
	uint32_t width, height;
	double scale;     /* of the answer's size; 0: as it is */
	uint32_t format;  /* enum shot_format */
	uint32_t quality; /* of JPEG, 1 to 100 */
	bool settle;      /* wait until the screen has settled, else as it is now */
	/* wait for a window that appears or is painted from now on, and then settle */
	bool first_window;
	bool from_start; /* … or that was there before the screen could look */
	/* only when the clients are seen to wait for events, however long that takes: code that
	 * still draws is left alone */
	bool in_loop;
	bool or_settled; /* … or when it has settled on the way there */
	/* how long nothing must change where it cannot be seen what clients do; 0: the default */
	uint32_t settle_ms;
	/* longest wait for that, after the first window was there; 0: the default */
	uint32_t max_ms;
	/* longest wait for a first window; 0: for ever. Of a cell: for its windows to be painted
	 * when its code has ended */
	uint32_t render_ms;
};

/* Why a picture was taken when it was. */
enum shot_reason {
	SHOT_AS_IT_IS,  /* nobody asked to wait */
	SHOT_QUIET,     /* every client waits for events, not for the server */
	SHOT_IDLE,      /* nothing was painted for a while, and the clients do little */
	SHOT_BUSY,      /* the clients compute but do not paint */
	SHOT_CAP,       /* it was still changing at the longest wait */
	SHOT_NO_WINDOW, /* no window appeared in time */
	SHOT_STILL,     /* it is painted again and again, always the same */
	SHOT_REASON_COUNT
};

struct picture_info {
	uint32_t width, height;
	uint32_t format;    /* enum shot_format */
	uint32_t reason;    /* enum shot_reason */
	uint32_t n_windows; /* there were so many; at most LIMIT_WINDOWS are listed */
	/* the colour that most of the upper window has, and how many pixels have another; of
	 * pictures that waited */
	uint32_t paper, ink;
	bool settled;
	bool in_event_loop; /* the clients wait for events rather than work: a main loop blocks */
	double after_ms;    /* from the first window (or the question) to the picture */
	double paint_ms;    /* from the last paint to the picture; negative: nothing was painted */
};

struct window_entry {
	uint32_t id, pid;
	int32_t x, y;
	uint32_t width, height;
	bool focused, dialog;
	char title[192], class_name[64];
};

/* ---- watching -------------------------------------------------------------------------------- */

/*
 * A watcher sees the screen change: it asks for a frame, gets one when there is something new, and
 * asks again. So it is never sent more than it takes. The screen keeps what each watcher has seen
 * and answers with the part that differs; the first is the whole.
 */
struct frame_options {
	/* a number of the daemon's choice, not 0; the screen forgets those that did not ask for
	 * longest */
	uint32_t watcher;
	uint32_t gap_ms; /* minimum time after the last frame of this watcher */
	bool rgb;        /* no palettes: frames of one file must be alike */
	bool now;        /* answer at once, also when nothing changed */
	bool leave;      /* … and forget the watcher */
};

struct frame_info {
	uint32_t width, height; /* of the screen */
	/* where the picture belongs; 0 wide: nothing changed */
	uint32_t x, y, part_width, part_height;
};

/* ---- mouse and keyboard ------------------------------------------------------------------ */

enum input_kind {
	INPUT_NOTHING, /* only tells where the pointer is */
	INPUT_MOVE,
	INPUT_CLICK, /* `count` times; where the pointer is, unless there is a point */
	INPUT_DOWN,  /* a button, until INPUT_UP */
	INPUT_UP,
	/* with the button held, from the start (or where the pointer is) to the point */
	INPUT_DRAG,
	INPUT_KEYS,     /* all pressed, for `ms`, then released in reverse */
	INPUT_KEY_DOWN, /* until INPUT_KEY_UP */
	INPUT_KEY_UP,
	INPUT_TYPE, /* the text, character by character */
	INPUT_WAIT, /* `ms` */
	INPUT_KIND_COUNT
};

/* Buttons as X numbers them; turning a wheel is clicking one. */
enum {
	INPUT_LEFT = 1,
	INPUT_MIDDLE,
	INPUT_RIGHT,
	INPUT_WHEEL_UP,
	INPUT_WHEEL_DOWN,
	INPUT_WHEEL_LEFT,
	INPUT_WHEEL_RIGHT
};

struct input_action {
	uint32_t kind; /* enum input_kind */
	bool has_point, has_start;
	int32_t x, y, start_x, start_y;
	uint32_t button, count;
	/* X's symbols; around a click they are held meanwhile */
	uint32_t n_keys, keys[LIMIT_INPUT_KEYS];
	uint32_t ms;
	uint32_t text_len;
	char text[LIMIT_INPUT_TEXT]; /* UTF-8; only text_len bytes travel */
};

/* How much of an action travels. */
static inline size_t input_action_bytes(const struct input_action *a)
{
	return offsetof(struct input_action, text) + a->text_len;
}

/* The count of INPUT's answer: where the pointer is. */
#define INPUT_POINTER(x, y) ((uint64_t)(uint16_t)(x) << 16 | (uint16_t)(y))
#define INPUT_POINTER_X(count) ((unsigned)((count) >> 16 & 0xffff))
#define INPUT_POINTER_Y(count) ((unsigned)((count)&0xffff))

/* Appends a frame with one struct, or none. -ENOMEM. */
struct buffer;
int display_frame(
	struct buffer *b, unsigned type, uint32_t serial, const void *options, size_t len);
