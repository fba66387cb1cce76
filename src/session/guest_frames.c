/* The frames that a guest sends while it runs a cell. */
#include <signal.h>

#include "base/log.h"
#include "session/internal.h"

/* The status of a cell whose code has ended, and the daemon's words about it. */
static enum cell_status judge(struct session *s, const struct cell *c, int *exit_code)
{
	struct outcome *o = &s->outcome;
	if (c->stop == STOP_TIMEOUT) {
		*exit_code = 124;
		session_tell_timeout(s, false);
		return CELL_TIMEOUT;
	}

	if (cell_stop_is_limit(c->stop)) {
		enum cell_status status = session_tell_stop(s, false);
		*exit_code = status == CELL_TIMEOUT ? 124 : 1;
		return status;
	}

	if (o->kind == WIRE_OUTCOME_INTERRUPT) {
		if (c->stop == STOP_INTERRUPT)
			o->error.code = "interrupted";
		return CELL_INTERRUPTED;
	}

	if (o->kind == WIRE_OUTCOME_MEMORY) {
		session_explain_memory(s);
		return CELL_OUT_OF_MEMORY;
	}

	if (o->kind == WIRE_OUTCOME_REFUSED)
		return CELL_REFUSED;
	if (o->kind == WIRE_OUTCOME_OK || (o->kind == WIRE_OUTCOME_EXIT && !*exit_code))
		return CELL_OK;

	session_explain_error(s);
	return CELL_ERROR;
}

/* The guest said DONE: everything it printed is in the pipes. */
static void finish_cell(struct session *s)
{
	struct outcome *o = &s->outcome;
	struct cell *c = s->queue.running;
	int exit_code = o->exit_code;

	guest_drain(sandbox_guest(s->sandbox));
	if (s->queue.running != c)
		return;

	history_cell_done(s, c->stop != STOP_TIMEOUT && c->stop != STOP_INTERRUPT &&
				     o->kind != WIRE_OUTCOME_INTERRUPT);
	enum cell_status status = judge(s, c, &exit_code);
	if (c->capture && cell_picture_finish(c->capture, status, exit_code))
		/* the code has ended; the picture that is awaited now has a limit of its own */
		session_stop_clock(s);
	else
		session_end_cell(s, status, exit_code);
}

static void take_loop(struct session *s, const struct wire_frame *f)
{
	struct wire_field field;
	uint64_t loop;
	for (size_t at = 0; wire_field_next(f, &at, &field) == 1;)
		if (field.tag == WIRE_LOOP && wire_field_u64(&field, &loop) == 0 &&
			loop < WIRE_LOOP_COUNT && s->queue.running->capture)
			cell_picture_loop(s->queue.running->capture, (enum wire_loop)loop);
}

/*
 * Of the cell that runs now. A cell that died with its interpreter is still the running one while
 * another interpreter is made, which must not end it.
 */
static bool is_of_cell(const struct session *s, const struct wire_frame *f)
{
	return s->queue.running && !s->outcome.done && !session_is_restoring(s) &&
	       f->serial == s->queue.cells;
}

void session_guest_frame(struct session *s, const struct wire_frame *f)
{
	const struct bundle *display = NULL;
	if (source_check_frame(s, f) || introspect_frame(s, f))
		return;
	if (history_frame(s, f))
		return;
	if (background_frame(s, f))
		return;

	if (f->type == WIRE_STARTED && s->queue.running && s->queue.n_background &&
		f->serial == s->queue.cells) {
		uv_timer_stop(&s->queue.wake_timer);
		return;
	}

	if (f->type == WIRE_WAITS && is_of_cell(s, f)) {
		take_loop(s, f);
		return;
	}

	bool of_tools = f->type == WIRE_TOOL_CALL || f->type == WIRE_TOOL_CANCEL;
	if (of_tools && s->queue.running)
		s->queue.running->has_side_effects = true;

	/*
	 * A frame that was not requested, or that is invalid, is a forgery. Only the session that
	 * sent the frame is affected.
	 */
	if (!is_of_cell(s, f) ||
		(of_tools ? tools_take(s, f) : outcome_take(&s->outcome, f, &display)) < 0) {
		log_warning("session %s: guest sent an invalid frame; killing it", s->id);
		guest_signal(sandbox_guest(s->sandbox), SIGKILL);
		return;
	}

	if (display)
		watch_display(s);
	if (display && !s->queue.running->abandoned && s->queue.running->observer.on_display)
		s->queue.running->observer.on_display(s->queue.running->userdata, display);
	if (s->outcome.done)
		finish_cell(s);
}
