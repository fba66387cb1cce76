/*
 * The end of a cell whose picture is wanted. Its guest has its toolkits paint, and lives until the picture is there:
 *
 *   guest: ENDED     the clock of the cell stands still; the refresh has a limit of its own
 *   guest: PAINTED   the screen is asked for a picture, which waits until the windows have settled, at most render_ms
 *   daemon: CONTINUE the guest closes the figures that were opened for the picture and goes on to its end
 *   guest: NONE      the clock of the cell goes on
 *
 * All of it is code beside the session's own, which may forge each word: then it spoils its own picture. It gains time beyond the limit of
 * the cell, once, and no more than the limits here.
 */
#include "base/cleanup.h"
#include "session/display/cell_picture_internal.h"

enum {
	/* callbacks of the code may take so long, before they are interrupted */
	REFRESH_MS = 10000,
	PICTURE_MS = 3000, /* beyond the limit of the question for the picture */
	RETURN_MS = 2000,  /* from CONTINUE to the guest's return */
	RENDER_MS = 500,   /* of a request that names none */
};

void session_tell_continue(struct session *s, uint32_t serial)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	size_t start;
	struct guest *guest = sandbox_guest(s->sandbox);
	if (!guest || wire_begin(&b, WIRE_CONTINUE, serial, &start) < 0)
		return; /* its wait has a limit */
	wire_end(&b, start);
	guest_send(guest, &b);
}

static void release(struct cell_picture *p)
{
	p->painting = PAINTING_RELEASED;
	session_clock_painting(p->session, RETURN_MS);
	session_tell_continue(p->session, p->session->queue.cells);
}

static uint32_t render_ms(const struct cell_picture *p)
{
	return p->options.render_ms ? p->options.render_ms : RENDER_MS;
}

/*
 * The longest wait for the picture. A window that its program could not paint for lack of CPU time
 * gets more time than the request allows (settle.c).
 */
static double picture_s(const struct cell_picture *p)
{
	return LAST_PICTURE_S + (double)render_ms(p) / 1000;
}

/*
 * `own`: the windows are the interpreter's, and painted. Else a thread or a child process may be
 * about to open one.
 */
static void ask_picture(struct cell_picture *p, bool own)
{
	struct shot_options o = p->options;
	o.settle = true;
	o.max_ms = o.max_ms && o.max_ms < render_ms(p) ? o.max_ms : render_ms(p);
	o.render_ms = own ? 0 : render_ms(p);
	o.first_window = !own;
	o.from_start = !own && !display_is_up(p->session->display);
	if (p->question)
		display_forget(p->session->display, p->question);
	p->question = 0;

	bool seen = p->first.data.len && p->first.info.n_windows;
	if (!seen)
		picture_finish(&p->first);
	cell_picture_ask(p, seen ? &p->later : &p->first, &o, false, picture_s(p));
	if (!p->question)
		release(p);
}

void painting_pictured(struct cell_picture *p)
{
	struct picture_info *info = &p->first.info;
	if (p->first.data.len && !info->n_windows) {
		info->settled = false;
		info->reason = SHOT_NO_WINDOW;
	}
	if (!cell_picture_ask_last(p))
		release(p);
}

void painting_hear(struct cell_picture *p, enum wire_loop loop)
{
	if (loop == WIRE_LOOP_ENDED && p->painting == PAINTING_NONE && p->wanted && !p->finishing) {
		p->painting = PAINTING_REFRESH;
		/* nobody closes windows, or leaves the cell, from here on */
		uv_timer_stop(&p->timer);
		session_clock_painting(p->session, REFRESH_MS);
	} else if ((loop == WIRE_LOOP_PAINTED || loop == WIRE_LOOP_AWAITS) &&
		   p->painting == PAINTING_REFRESH) {
		p->painting = PAINTING_PICTURE;
		session_clock_painting(p->session, (uint64_t)(picture_s(p) * 1000) + PICTURE_MS);
		if (p->closed) /* the picture is that of the main loop, which ended by our hand */
			painting_pictured(p);
		else
			ask_picture(p, loop == WIRE_LOOP_PAINTED);
	} else if (loop == WIRE_LOOP_NONE && p->painting != PAINTING_NONE &&
		   p->painting != PAINTING_DONE) {
		p->painting = PAINTING_DONE;
		p->stuck = false;
		session_clock_painted(p->session);
	}
}
