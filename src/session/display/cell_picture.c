/*
 * Pictures of a cell, and what becomes of a cell that blocks in a main loop.
 *
 * One question goes to the screen when the cell starts: a picture once a window is there and has settled. It is answered while the
 * code runs, or, when the code ends first, from what is on the screen then. After the answer a cell that should not block has its
 * windows closed, as a person would; if that does not help it is interrupted.
 *
 * Code that still draws or computes is not blocked, and closing its windows would break it. So after the first picture we wait for a main loop:
 * until the screen sees the program wait for events, or the guest says that a toolkit's loop was entered (enum wire_loop). A picture of
 * that moment, when it has settled, takes the place of the first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "display/settle/settle.h"
#include "session/display/cell_picture_internal.h"

enum {
	/* a program whose screen never stops changing may be about to end on its own */
	CLOSE_AFTER_MS = 400,
	/* a program that waits for no events is left running after so long at the latest */
	LEAVE_AFTER_MS = 2500,
	PAUSE_MS = 250, /* in a main loop for a moment only: looked at again after so long */
	/* a picture with so many times less on it is none of what the program had to show */
	WIPED = 4,
	CLOSE_TICK_MS = 250,
	CLOSE_TICKS = 8, /* without progress, before it is interrupted */
};

const char *const cell_picture_environment[] = { "DISPLAY=" XSOCKET_DISPLAY,
	"XAUTHORITY=" XSOCKET_AUTHORITY, "XDG_RUNTIME_DIR=" XSOCKET_DIR, "XDG_SESSION_TYPE=x11",
	/* Toolkits look for other screens and fall back to none without a word; this is the one there is. */
	"SDL_VIDEODRIVER=x11", "QT_QPA_PLATFORM=xcb", "GDK_BACKEND=x11",
	/* No sound card, no accessibility bus, no graphics card. */
	"SDL_AUDIODRIVER=dummy", "NO_AT_BRIDGE=1", "LIBGL_ALWAYS_SOFTWARE=1",
	/* A software renderer for what needs no OpenGL costs up to 90 MB a process. */
	"SDL_FRAMEBUFFER_ACCELERATION=0", "QT_XCB_GL_INTEGRATION=none", "GSK_RENDERER=cairo",
	"MPLBACKEND=TkAgg", NULL };

#define STAYED_OPEN "window_stayed_open"
#define STAYED_OPEN_REMEDY                                                                                                           \
	"The windows of the cell did not close when requested, so the cell was interrupted. Let the code react to the close button " \
	"(WM_DELETE_WINDOW, pygame.QUIT), or choose another on_block."

#define STUCK "window_stayed_busy"
#define STUCK_REMEDY                                                                                                                                 \
	"To take the picture, the windows were painted, which runs their waiting callbacks (after(), idle and draw callbacks). Let these callbacks " \
	"return soon, or do not request a picture."

/* ---- keeping a picture ------------------------------------------------------------------------- */

static void keep_trouble(struct picture *p, const char *code, const char *text, const char *remedy)
{
	p->there = true;
	snprintf(p->code, sizeof(p->code), "%s", code);
	snprintf(p->text, sizeof(p->text), "%s", text);
	snprintf(p->remedy, sizeof(p->remedy), "%s", remedy);
}

static void keep(struct picture *p, const struct display_reply *r)
{
	if (r->type != DISPLAY_SAY_PICTURE || !r->len) {
		bool told = r->type == DISPLAY_SAY_TROUBLE;
		keep_trouble(p, told ? r->code : "capture_failed",
			told ? r->text : "the display sent no picture", told ? r->remedy : "");
		return;
	}

	p->data.counted = true;
	p->windows = calloc(r->n_windows + 1, sizeof(*p->windows));
	if (!p->windows || buffer_append(&p->data, r->data, r->len) < 0) {
		keep_trouble(
			p, "no_memory", "out of memory", "Request a smaller picture with `scale`.");
		return;
	}

	memcpy(p->windows, r->windows, r->n_windows * sizeof(*p->windows));
	p->n_windows = r->n_windows;
	p->info = r->info;
	p->there = true;
}

void picture_finish(struct picture *p)
{
	buffer_finish(&p->data);
	free(p->windows);
	*p = (struct picture){ 0 };
}

/* It is not awaited any more. */
static void forget_later(struct cell_picture *p)
{
	if (!p->question || p->asking != &p->later)
		return;
	display_forget(p->session->display, p->question);
	p->question = 0;
}

/* ---- closing windows ------------------------------------------------------------------------------ */

static void on_close_tick(uv_timer_t *t);

/* Windows went, or new ones came: the program does something about it. */
static void on_closing(void *userdata, const struct display_reply *r)
{
	struct cell_picture *p = userdata;
	if (r->type == DISPLAY_SAY_DONE && r->count != p->progress) {
		p->progress = r->count;
		p->ticks = 0;
	}
}

static void ask_quietly(struct cell_picture *p, enum display_ask what)
{
	/* Nobody waits for the answer of one that is gone by then: the session ends its display first. */
	display_ask(p->session->display, what, NULL, 0, true, LAST_PICTURE_S,
		what == DISPLAY_ASK_CLOSE ? on_closing : NULL, p, NULL);
}

static void close_windows(struct cell_picture *p)
{
	p->closed = true;
	forget_later(p);
	ask_quietly(p, DISPLAY_ASK_CLOSE);
	uv_timer_start(&p->timer, on_close_tick, CLOSE_TICK_MS, CLOSE_TICK_MS);
}

/* It has left one main loop, and is not in the next: it draws, or computes. */
static bool is_between_loops(const struct cell_picture *p)
{
	return p->hinted && (p->loop == WIRE_LOOP_NONE || p->loop == WIRE_LOOP_PAUSE);
}

static void on_close_tick(uv_timer_t *t)
{
	struct cell_picture *p = t->data;
	if (p->on_block == ON_BLOCK_LEAVE) {
		session_leave_cell(p->session); /* p is gone after it */
	} else if (!p->closed) {
		close_windows(p);
	} else if (p->interrupted) {
		ask_quietly(p, DISPLAY_ASK_POKE); /* Tk looks for signals after an event only */
	} else if (is_between_loops(p)) {
		p->ticks = 0;
	} else if (++p->ticks < CLOSE_TICKS) {
		ask_quietly(p, DISPLAY_ASK_CLOSE);
	} else {
		p->interrupted = true;
		session_interrupt_running(p->session);
	}
}

/* It is in a main loop: now, or a little later, it ends by our hand. Not from inside the display's answer. */
static void end_loop(struct cell_picture *p, unsigned after_ms)
{
	uv_timer_start(&p->timer, on_close_tick, after_ms, CLOSE_TICK_MS);
}

static void wait_for_loop(struct cell_picture *p);

static void on_pause_tick(uv_timer_t *t)
{
	wait_for_loop(t->data);
}

/* How long what it paints in its main loop may take to settle, from when it got there. At least a moment: it may be about to end by itself. */
static unsigned loop_patience_ms(const struct cell_picture *p)
{
	uint64_t longest = p->options.max_ms ? p->options.max_ms : SETTLE_MAX_MS;
	uint64_t gone = uv_now(p->session->table->config.loop) - p->loop_ms;
	return gone + CLOSE_AFTER_MS < longest ? (unsigned)(longest - gone) : CLOSE_AFTER_MS;
}

/* The first picture is there while the code runs. */
static void after_picture(struct cell_picture *p)
{
	const struct picture_info *info = &p->first.info;
	bool pauses = p->loop == WIRE_LOOP_PAUSE || p->pause_over,

	     loops = p->loop == WIRE_LOOP_MAIN || p->loop == WIRE_LOOP_POLLS;
	if (p->on_block == ON_BLOCK_WAIT || !p->first.data.len || info->reason == SHOT_NO_WINDOW)
		return;

	if (info->in_event_loop && !pauses) {
		end_loop(p, 0);
		return;
	}

	if (loops)
		end_loop(p, info->settled ? CLOSE_AFTER_MS : loop_patience_ms(p));
	else if (p->on_block == ON_BLOCK_LEAVE)
		end_loop(p, info->reason == SHOT_CAP ? CLOSE_AFTER_MS : LEAVE_AFTER_MS);
	wait_for_loop(p);
}

void cell_picture_loop(struct cell_picture *p, enum wire_loop loop)
{
	if (loop >= WIRE_LOOP_ENDED || p->painting != PAINTING_NONE) {
		painting_hear(p, loop);
		return;
	}

	bool before = p->loop == WIRE_LOOP_MAIN || p->loop == WIRE_LOOP_POLLS,
	     now = loop == WIRE_LOOP_MAIN || loop == WIRE_LOOP_POLLS;
	if (now && !before)
		p->loop_ms = uv_now(p->session->table->config.loop);
	p->pause_over |= p->loop == WIRE_LOOP_PAUSE && loop != WIRE_LOOP_PAUSE;
	p->loop = loop;
	p->hinted |= loop == WIRE_LOOP_MAIN;
	if (!now || before || !p->first.data.len || p->finishing || p->closed ||
		p->on_block == ON_BLOCK_WAIT)
		return;

	end_loop(p, loop_patience_ms(p));
	wait_for_loop(p); /* for its picture, which may come sooner */
}

/* ---- asking ------------------------------------------------------------------------------------------ */

bool cell_picture_shows_less(const struct picture *later, const struct picture *before)
{
	return !later->info.n_windows || (later->info.paper == before->info.paper &&
						 later->info.ink < before->info.ink / WIPED);
}

void cell_picture_replace(struct cell_picture *p)
{
	uint64_t now = uv_now(p->session->table->config.loop);
	p->later.info.after_ms = p->first.info.after_ms + (double)(now - p->picture_ms);
	picture_finish(&p->first);
	p->first = p->later;
	p->picture_ms = now;
	p->later = (struct picture){ 0 };
}

/* A picture of the main loop, or one that has settled on the way there, is better than one that had not; and the later the better. At the
 * end of the code, where its toolkits were refreshed, also one that has not settled. */
static void keep_later(struct cell_picture *p)
{
	bool good = p->later.info.settled || p->painting == PAINTING_PICTURE;
	if (p->later.data.len && good && p->wanted &&
		!cell_picture_shows_less(&p->later, &p->first))
		cell_picture_replace(p);
	picture_finish(&p->later);
}

/* While the code runs: the program was seen in a main loop, or has settled and goes on. */
static void after_later(struct cell_picture *p, const struct picture_info *info)
{
	bool looked_for = info->in_event_loop || info->reason == SHOT_CAP;
	if (p->loop == WIRE_LOOP_PAUSE && p->on_block == ON_BLOCK_CLOSE)
		uv_timer_start(&p->timer, on_pause_tick, PAUSE_MS, 0);
	else if (!looked_for || p->pause_over)
		wait_for_loop(p);
	else if (p->loop != WIRE_LOOP_PAUSE && !p->closed)
		end_loop(p, info->in_event_loop ? 0 : CLOSE_AFTER_MS);
}

static void on_picture(void *userdata, const struct display_reply *r)
{
	struct cell_picture *p = userdata;
	bool later = p->asking == &p->later;

	p->question = 0;
	keep(p->asking, r);
	if (later)
		keep_later(p);
	else
		p->picture_ms = uv_now(p->session->table->config.loop);
	if (!p->finishing && p->painting == PAINTING_PICTURE)
		painting_pictured(p);
	else if (!p->finishing && later && r->type == DISPLAY_SAY_PICTURE)
		after_later(p, &r->info);
	else if (!p->finishing && later)
		return; /* the display is gone, and the windows with it */
	else if (!p->finishing)
		after_picture(p);
	else if (!cell_picture_ask_last(p))
		session_end_cell(p->session, p->status, p->exit_code); /* p is gone after it */
}

void cell_picture_ask(struct cell_picture *p, struct picture *about, const struct shot_options *o,
	bool lazy, double timeout_s)
{
	struct error e = { 0 };
	int64_t r = display_ask(p->session->display, DISPLAY_ASK_SHOT, o, sizeof(*o), lazy,
		timeout_s, on_picture, p, &e);
	p->asking = about;
	p->pause_over = false;
	if (r < 0)
		keep_trouble(about, e.slug, e.text, e.remedy);
	else
		p->question = (uint32_t)r;
}

/*
 * Requests a picture that is taken when the program enters a main loop, however long that takes, or
 * at the end of the code.
 */
static void wait_for_loop(struct cell_picture *p)
{
	struct shot_options o = p->options;
	o.settle = o.in_loop = true;
	o.or_settled = !p->first.info.settled;
	o.first_window = o.from_start = false;
	if (!p->question && !p->finishing && !p->closed)
		cell_picture_ask(p, &p->later, &o, true, 0);
}

void cell_picture_begin(struct cell_picture *p)
{
	struct shot_options o = p->options;
	o.settle = o.first_window = true;
	o.from_start = !display_is_up(p->session->display);
	o.render_ms = 0; /* it counts from the end of the code */
	cell_picture_ask(p, &p->first, &o, true, 0);
}

bool cell_picture_ask_last(struct cell_picture *p)
{
	struct shot_options o = p->options;
	if (!p->wants_end || p->end.there)
		return false;
	o.settle = true;
	cell_picture_ask(p, &p->end, &o, false, LAST_PICTURE_S);
	return p->question != 0;
}

void cell_picture_stuck(struct cell_picture *p)
{
	p->stuck = true;
}

bool cell_picture_tell_kill(const struct cell_picture *p)
{
	if (p->stuck)
		session_override_error(p->session, "KeyboardInterrupt", STUCK, STUCK_REMEDY,
			"the cell was killed: its code had ended, but a callback of its windows did not return");
	if (p->interrupted)
		session_override_error(p->session, "KeyboardInterrupt", STAYED_OPEN,
			STAYED_OPEN_REMEDY,
			"the cell was killed, because it did not stop when interrupted");
	return p->interrupted || p->stuck;
}

bool cell_picture_finish(struct cell_picture *p, enum cell_status status, int exit_code)
{
	struct cell_error *error = &p->session->outcome.error;
	uv_timer_stop(&p->timer);

	p->finishing = true;
	p->status = status;
	p->exit_code = exit_code;
	if (p->interrupted && status == CELL_INTERRUPTED) {
		error->code = STAYED_OPEN;
		error->remedy = STAYED_OPEN_REMEDY;
	}

	if (p->first.info.settled) /* it was taken while the code ran, as it should be */
		forget_later(p);
	if (!p->question)
		return cell_picture_ask_last(p);
	if (!p->wanted) /* it was only to see whether the code blocks */
		return false;

	display_prioritise(p->session->display, p->question, LAST_PICTURE_S);
	return true;
}

enum cell_status cell_picture_status(const struct cell_picture *p, int *ret_exit_code)
{
	*ret_exit_code = p->exit_code;
	return p->status;
}

void cell_picture_abort(struct cell_picture *p)
{
	uv_timer_stop(&p->timer);
	if (p->question) {
		display_forget(p->session->display, p->question);
		if (p->asking != &p->later)
			keep_trouble(p->asking, "interpreter_died",
				"the interpreter ended before a picture was taken", "");
	}

	p->question = 0;
}

/* ---- telling ------------------------------------------------------------------------------------------- */

static const struct screenshot *show(const struct cell_picture *p, const struct picture *from)
{
	struct screenshot *s = &((struct picture *)from)->shown;
	*s = (struct screenshot){ .data = from->data.data,
		.len = from->data.len,
		.info = from->info,
		.windows = from->windows,
		.n_windows = from->n_windows,
		.no_window = from->data.data && !from->info.n_windows,
		.closed = p->closed,
		.code = from->code[0] ? from->code : NULL,
		.text = from->text,
		.remedy = from->remedy };
	return from->there ? s : NULL;
}

void cell_picture_report(const struct cell_picture *p, struct observation *o)
{
	if (p->wanted)
		o->screenshot = show(p, &p->first);
	if (p->wants_end)
		o->end_screenshot = show(p, &p->end);
}

void cell_picture_take_pictures(struct cell_picture *p, struct buffer ret[CAPTURE_PICTURES])
{
	struct buffer *own[CAPTURE_PICTURES] = { &p->first.data, &p->end.data };
	for (int i = 0; i < CAPTURE_PICTURES; i++) {
		ret[i] = *own[i];
		*own[i] = (struct buffer)BUFFER_COUNTED(0);
	}
}

/* ---- life ------------------------------------------------------------------------------------------------ */

int cell_picture_create(
	struct session *s, struct cell *c, const struct cell_request *q, struct error *e)
{
	bool close = q->on_block == ON_BLOCK_CLOSE ||
		     (q->on_block == ON_BLOCK_AUTO && q->has_screenshot);
	if (!q->has_screenshot && !close && q->on_block != ON_BLOCK_LEAVE)
		return 0;

	if (!s->display) {
		error_set(e, -ENOTSUP,
			"the session has no display, so there is no screen to take a picture of");
		error_remedy(e,
			"Create a session with {display}. Plots need no display: they are returned in `displays`.");
		return error_slug(e, "no_display");
	}

	struct cell_picture *p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(e, -ENOMEM, "out of memory");

	p->session = s;
	p->cell = c;
	p->options = q->screenshot;
	p->wanted = q->has_screenshot;
	p->wants_end = q->has_screenshot && q->end_screenshot;
	p->on_block = close                           ? ON_BLOCK_CLOSE
		      : q->on_block == ON_BLOCK_LEAVE ? ON_BLOCK_LEAVE
						      : ON_BLOCK_WAIT;
	uv_timer_init(s->table->config.loop, &p->timer);
	p->timer.data = p;
	c->capture = p;
	return 0;
}

static void capture_closed(uv_handle_t *h)
{
	struct cell_picture *p = h->data;
	picture_finish(&p->first);
	picture_finish(&p->end);
	picture_finish(&p->later);
	free(p);
}

void cell_picture_destroy(struct cell_picture *p)
{
	if (!p)
		return;
	if (p->session->display)
		display_forget_all(p->session->display, p);
	uv_close((uv_handle_t *)&p->timer, capture_closed);
}
