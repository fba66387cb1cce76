/*
 * The display of one session, from the daemon's side: its socket in the jail, and, after the first
 * connection or request, an X server and a screen process (src/display/protocol.h) that answers
 * requests about the screen.
 *
 * Lazy: until the first connection a display costs two descriptors. When the X server or the screen
 * process dies (a sweep of the jail, a reset, lack of memory), open requests are answered with an
 * error, and the next connection starts new processes behind the same socket. If no request was
 * open, the next request for windows or screenshots gets the error, once. Everything runs on the
 * loop; nothing blocks on the screen process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "display/protocol.h"
#include "session/display/display_servers.h"

struct sandbox;

/* Everything it points to is valid during the call only. */
struct display_reply {
	unsigned type;                    /* enum display_say; TROUBLE when it failed */
	const char *code, *text, *remedy; /* of TROUBLE; never NULL then */
	struct picture_info info;
	struct frame_info frame; /* of FRAME: inside of the screen, or nothing */
	const char *data;        /* of PICTURE and FRAME */
	size_t len;
	const struct window_entry *windows;
	unsigned n_windows;
	uint64_t count; /* of DONE */
};

struct wire_frame;

/*
 * What a frame of a screen says, checked; -EPROTO: it cannot be. Points into the frame, and into
 * memory that the next call uses again.
 */
int display_reply_take(const struct wire_frame *f, struct display_reply *ret);

typedef void (*display_answer)(void *userdata, const struct display_reply *reply);

struct display_events {
	void (*on_ready)(void *owner); /* its socket is there: code that connects will find it */
	void (*on_failed)(void *owner, const char *text);
};

int display_create(struct displays *all, const struct display_size *size, bool lazy,
	const struct display_events *events, void *owner, struct display **ret);
/*
 * Open questions get no answer any more, but for those of display_outlive(): they are answered in
 * another turn of the loop. NULL is fine.
 */
void display_close(struct display *d);

/* The session's jail: now this one (its socket is asked for), or none. */
void display_attach(struct display *d, struct sandbox *b);
/*
 * The jail is about to be swept: server and screen end now, and start again at the next connection.
 */
void display_restart(struct display *d);

void display_detach(struct display *d);
void display_take_socket(struct display *d, int *fds); /* the sandbox's on_display */

/*
 * How its X server or screen ended, when nobody here told them to, since the interpreter of now was
 * started; NULL: they did not. Programs with windows end then.
 */
const char *display_death(const struct display *d);
void display_forget_death(struct display *d);

/* -EBUSY: an X server of another size runs, or is on its way. */
int display_resize(struct display *d, const struct display_size *size);

bool display_is_ready(const struct display *d); /* on_ready was or could be called */
bool display_is_up(const struct display *d);    /* an X server runs */

/*
 * Asks the screen. `answer` is called exactly once, in another turn of the loop, unless
 * display_forget() is called before. Starts the X server unless `lazy` (then the question waits for
 * somebody to connect). timeout_s 0: no limit. Returns the serial, or a negative errno: -EBUSY
 * (slug "too_many_questions").
 */
int64_t display_ask(struct display *d, enum display_ask what, const void *options, size_t len,
	bool lazy, double timeout_s, display_answer answer, void *userdata, struct error *e);
void display_forget(struct display *d, uint32_t serial);
void display_forget_all(struct display *d, const void *userdata); /* all that was asked with it */

/*
 * The question comes from outside the session: when the session ends before the answer, the answer
 * is an error.
 */
void display_outlive(struct display *d, uint32_t serial);

/* To a question that waits already: DISPLAY_ASK_NOW. Starts the X server. */
void display_prioritise(struct display *d, uint32_t serial, double timeout_s);
