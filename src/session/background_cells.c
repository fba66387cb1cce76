/*
 * Cells that were left in a main loop: they have been answered, and later cells run inside their
 * loop.
 */
#include <stdbool.h>

#include "session/internal.h"

enum { WAKE_FIRST_MS = 20, WAKE_AGAIN_MS = 200 };

/* The code of such a cell has been answered: what it says when its loop ends is told to nobody. */
bool background_frame(struct session *s, const struct wire_frame *f)
{
	for (unsigned i = 0; i < s->queue.n_background; i++) {
		if (s->queue.background[i] != f->serial)
			continue;
		if (f->type == WIRE_WAITS)
			/*
			 * its picture is not wanted any more; other frames of this kind are ignored
			 */
			session_tell_continue(s, f->serial);
		if (f->type == WIRE_DONE) {
			s->queue.background[i] = s->queue.background[--s->queue.n_background];
			session_start_next(s);
		}
		return true;
	}

	return false;
}

/*
 * A signal makes Python look for the cell; an event without meaning makes a main loop call Python.
 */
void session_wake_guest(struct session *s)
{
	guest_signal(sandbox_guest(s->sandbox), WIRE_CELL_SIGNAL);
	if (s->display && display_is_up(s->display))
		display_ask(s->display, DISPLAY_ASK_POKE, NULL, 0, true, 1, NULL, NULL, NULL);
}

static void on_wake_guest(uv_timer_t *t)
{
	struct session *s = t->data;
	if (!s->queue.n_background || s->phase != PHASE_RUNNING) {
		uv_timer_stop(t);
		return;
	}
	session_wake_guest(s);
}

void session_keep_waking_guest(struct session *s)
{
	if (!s->queue.n_background)
		return;
	session_wake_guest(s);
	uv_timer_start(&s->queue.wake_timer, on_wake_guest, WAKE_FIRST_MS, WAKE_AGAIN_MS);
}

void session_leave_cell(struct session *s)
{
	guest_drain(sandbox_guest(s->sandbox));
	if (!s->queue.running || s->outcome.done || s->queue.n_background == LIMIT_LEFT_CELLS)
		return;
	s->queue.background[s->queue.n_background++] = s->queue.cells;
	session_close_cell(s, CELL_RUNNING, 0, STATE_KEPT);
}
