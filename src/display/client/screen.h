/*
 * One display seen from inside its jail: the process that is our only X client. It manages windows,
 * watches what is painted, decides when a picture has settled, takes it and encodes it. It may
 * block in the X server: nobody else waits for it.
 *
 * It stands in the session's jail, with the session's user and its control groups, and trusts
 * nothing the X server says; the daemon in turn trusts nothing that it says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <xcb/composite.h>
#include <xcb/damage.h>
#include <xcb/xcb.h>

#include "base/buffer.h"
#include "display/client/input.h"
#include "display/client/watchers.h"
#include "display/protocol.h"
#include "display/settle/settle.h"
#include "wire/wire.h"

/*
 * Serves the daemon on `daemon` and the X server on `server` until either is gone; returns the exit
 * code.
 */
int screen_run(int daemon, int server, const uint8_t cookie[XSOCKET_COOKIE]);

/* Before forking: what all screens can share. */
void screen_prepare(void);

/* ---- what the files of this room share ------------------------------------------------- */

enum { SCREEN_CLIENTS = 128, SCREEN_WAITING = 16 };

/*
 * A window under management: a top-level one that was mapped and asked for no exception. Stacking
 * order, the last is on top.
 */
struct client {
	xcb_window_t id;
	int x, y, width, height;
	int kept_x, kept_y, kept_width, kept_height; /* before it filled the screen */
	bool fullscreen, maximized, iconic, dialog;
};

enum screen_atom {
	ATOM_WM_PROTOCOLS,
	ATOM_WM_DELETE_WINDOW,
	ATOM_WM_TAKE_FOCUS,
	ATOM_WM_STATE,
	ATOM_WM_CHANGE_STATE,
	ATOM_NET_SUPPORTED,
	ATOM_NET_SUPPORTING_WM_CHECK,
	ATOM_NET_WM_NAME,
	ATOM_NET_WM_PID,
	ATOM_NET_WM_STATE,
	ATOM_NET_WM_STATE_FULLSCREEN,
	ATOM_NET_WM_STATE_MAXIMIZED_VERT,
	ATOM_NET_WM_STATE_MAXIMIZED_HORZ,
	ATOM_NET_WM_STATE_HIDDEN,
	ATOM_NET_CLIENT_LIST,
	ATOM_NET_CLIENT_LIST_STACKING,
	ATOM_NET_ACTIVE_WINDOW,
	ATOM_NET_CLOSE_WINDOW,
	ATOM_NET_WORKAREA,
	ATOM_NET_FRAME_EXTENTS,
	ATOM_NET_REQUEST_FRAME_EXTENTS,
	ATOM_UTF8_STRING,
	ATOM_GLOVEBOX_POKE,
	ATOM_COUNT
};

struct image {
	/* rows of 4-byte B G R x, no padding; inside the capture's shared memory */
	uint8_t *pixels;
	uint32_t width, height;
};

/* A question for a picture that waits for the screen to settle. */
struct waiting {
	bool used;
	uint32_t serial;
	struct shot_options options;
	struct settle settle;
};

struct screen {
	int daemon;
	struct wire_reader in;
	struct buffer out;
	xcb_connection_t *x;
	xcb_window_t root;
	uint32_t width, height, depth;
	xcb_visualid_t visual;
	xcb_atom_t atom[ATOM_COUNT];
	int32_t server_pid; /* in the jail; 0 when it cannot be seen */
	uint8_t damage_event;
	xcb_damage_damage_t damage;
	/* capture */
	uint32_t segment; /* of MIT-SHM; 0 when there is none */
	uint8_t *shared;
	size_t shared_bytes;
	/* windows */
	struct client client[SCREEN_CLIENTS];
	unsigned n_clients, cascade;
	bool windows_known, windows; /* are there any, as far as the events told */
	xcb_window_t check;
	/* painting */
	struct activity activity;
	uint64_t managed;   /* events that the window manager handled */
	uint64_t looked_ns; /* at the clients */
	struct waiting waiting[SCREEN_WAITING];
	struct input input;
	struct watcher watcher[LIMIT_WATCHERS];
	size_t options_len; /* of the question that is being answered */
};

/* screen_answers.c */
/* Starts a frame in s->out; ends the process when there is no memory. */
size_t screen_begin(struct screen *s, enum display_say type, uint32_t serial);
void screen_put_windows(struct screen *s, const struct window_entry *list, unsigned n);
void screen_send(struct screen *s); /* s->out; ends the process when the daemon is gone */
/*
 * Captures, encodes and sends, or sends an error. `from_ns`: since when the picture was awaited, 0
 * for not at all.
 */
void screen_take_picture(struct screen *s, uint32_t serial, const struct shot_options *o,
	uint64_t from_ns, struct picture_info *info);
/* Complete answers: */
void screen_say_done(struct screen *s, uint32_t serial, uint64_t count);
void screen_say_frame(struct screen *s, uint32_t serial, const struct frame_info *info,
	const struct buffer *file);
void screen_say_trouble(
	struct screen *s, uint32_t serial, const char *code, const char *text, const char *remedy);

/* screen.c */
/* Looks at the clients. True when all of them wait and nobody ran for a while since then. */
bool screen_is_quiet(struct screen *s, uint64_t since_ns);

/* connect.c: the connection, extensions, atoms. -ECONNREFUSED, -EPROTO. */
int screen_connect(struct screen *s, int server, const uint8_t cookie[XSOCKET_COOKIE]);

/* manager.c */
int manager_start(struct screen *s);  /* becomes the window manager */
void manager_adopt(struct screen *s); /* takes the windows that are there already */
void manager_event(struct screen *s, const xcb_generic_event_t *event);
xcb_window_t manager_active(const struct screen *s); /* the window that has the focus, or 0 */
/* asks every window to close; how many there were */
unsigned manager_close_all(struct screen *s);
unsigned manager_send_noop_all(struct screen *s);
/* a click: that window comes to the top and gets the keyboard */
void manager_raise_under_pointer(struct screen *s);

/*
 * windows.c: mapped top-level windows from the bottom up; returns how many there are, of which at
 * most max are in the list
 */
unsigned windows_list(struct screen *s, struct window_entry *list, unsigned max);
bool windows_any(struct screen *s);
/* pids of the X clients, the server's own among them, ours not */
unsigned windows_pids(struct screen *s, int32_t *pids, unsigned max);

/* capture.c: pixels of the screen, of a window, of a part; -ENOENT: no such window, -E2BIG, -EIO */
int capture_image(struct screen *s, const struct shot_options *o, struct image *ret);
void capture_release(struct screen *s); /* gives the memory back; the next picture takes it again */
/* a number that tells one state of the screen from another */
int capture_sum(struct screen *s, uint64_t *ret);
/*
 * How many pixels of the top window have another colour than most of it, and that colour;
 * UINT32_MAX: there is none.
 */
uint32_t capture_ink(struct screen *s, uint32_t *ret_paper);
/* the top window is one colour: mapped, but not painted yet */
bool capture_is_flat(struct screen *s);
