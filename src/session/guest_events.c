/* Events of the guest that the session handles: ready, failed, dead. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "session/display/film.h"
#include "session/internal.h"

/* more than there are ready jails: all of them may have died at once */
enum { GUEST_RETRIES_MAX = 8 };

/*
 * What became of the variables, and why they are not as before when a copy was wished for: into
 * s->death.remedy, from byte `at` on.
 */
static void say_state(struct session *s, bool rolled_back, size_t at)
{
	const char *left = sandbox_files_not_restored(s->sandbox);
	char *text = s->death.remedy + at;
	size_t size = sizeof(s->death.remedy) - at;
	char again[REPLAY_WORDS_MAX];

	replay_words(s, again);
	if (rolled_back && *left)
		snprintf(text, size,
			"Variables are as they were before this cell%s; files were left as they are: %s.",
			again, left);
	else if (rolled_back)
		snprintf(text, size,
			"Variables and files are as they were before this cell%s; change the code and try again.",
			again);
	else if (s->death.last.jail)
		snprintf(text, size,
			"Variables and files are gone; send the files again, and run the imports and definitions again.");
	else
		snprintf(text, size,
			"Variables are gone, files under /workspace are still there; run the imports and definitions "
			"again. There was no snapshot to go back to: %s.",
			s->history.no_snapshot[0] ? s->history.no_snapshot : "none had been taken");
}

/* Whatever ended the interpreter: the error's remedy also says what became of the variables. */
static void add_state(struct session *s, bool rolled_back)
{
	struct cell_error *e = &s->outcome.error;
	char own[256];

	if (!s->outcome.has_error)
		return;

	int n = snprintf(own, sizeof(own), "%s", e->remedy ? e->remedy : "");
	/* one that does not fit gives way */
	size_t at = n > 0 && (size_t)n < sizeof(own) ? (size_t)n : 0;
	if (at)
		own[at++] = ' ';

	memcpy(s->death.remedy, own, at);
	say_state(s, rolled_back, at);
	e->remedy = s->death.remedy;
}

static void say_death(struct session *s)
{
	char text[256];
	death_say_why(s, text, sizeof(text));
	if (s->death.last.out_of_memory)
		session_override_error(s, "MemoryError", "out_of_memory",
			"Use less memory at once (files in /workspace and /tmp count), or allow more with {memory_bytes}.",
			text);
	else if (s->death.last.display)
		session_override_error(s, "InterpreterDied", "display_gone",
			"Open the windows again: a new display starts when it is used next.", text);
	else
		session_override_error(s, "InterpreterDied", "interpreter_died", "", text);
}

/*
 * A one-shot that ended its process itself, or became another program by os.execv(): its exit code
 * is the program's, as python3's would be.
 */
static enum cell_status end_of_program(struct session *s, int exit_code)
{
	char text[32];
	snprintf(text, sizeof(text), "exit code %d", exit_code);
	if (exit_code)
		session_override_error(s, "SystemExit", "", "", text);
	return exit_code ? CELL_ERROR : CELL_OK;
}

/* Reports a cell whose code had ended: only a picture or a film was awaited. */
static void close_ended_cell(struct session *s, int exit_code, enum state_after after)
{
	struct cell *c = s->queue.running;
	enum cell_status status = c->capture ? cell_picture_status(c->capture, &exit_code)
					     : CELL_OK;
	if (c->recording.film)
		status = film_cell_status(c->recording.film, status, &exit_code);
	session_close_cell(s, status, exit_code, after);
}

/* True for a one-shot that ended its process itself: that is no failure. */
static bool program_has_ended(const struct session *s)
{
	const struct process_exit *end = &s->death.last.end;
	return s->queue.running->options.program && !end->signaled && !s->death.last.broken &&
	       end->status != WIRE_CUT_OFF;
}

/*
 * Puts the reason into the outcome's error: what the daemon did to the cell comes before what the
 * kernel says.
 */
static enum cell_status explain_death(struct session *s, int *exit_code)
{
	struct cell *c = s->queue.running;
	if (c->stop == STOP_TIMEOUT) {
		*exit_code = 124;
		session_tell_timeout(s, true);
		return CELL_TIMEOUT;
	}

	if (cell_stop_is_limit(c->stop)) {
		enum cell_status status = session_tell_stop(s, true);
		*exit_code = status == CELL_TIMEOUT ? 124 : 137;
		return status;
	}

	if (c->stop == STOP_INTERRUPT) {
		session_override_error(s, "KeyboardInterrupt", "interrupted", "",
			"the cell was killed, because it did not stop when interrupted");
		return CELL_INTERRUPTED;
	}

	if (!s->death.last.out_of_memory && c->capture && cell_picture_tell_kill(c->capture))
		return CELL_INTERRUPTED;

	say_death(s);
	return s->death.last.out_of_memory ? CELL_OUT_OF_MEMORY : CELL_KILLED;
}

/* Reports the running cell, which died with its interpreter. */
static void close_dead_cell(struct session *s, bool rolled_back)
{
	struct cell *c = s->queue.running;
	const struct process_exit *end = &s->death.last.end;
	enum state_after after = rolled_back ? STATE_BEFORE : STATE_LOST;
	int exit_code = end->signaled ? 128 + end->status : end->status;

	if (s->outcome.done) {
		close_ended_cell(s, exit_code, after);
		return;
	}

	s->outcome.has_result = false;
	bool killed_by_us = c->stop != STOP_NONE || s->death.last.out_of_memory ||
			    (c->capture && cell_picture_tell_kill(c->capture));
	if (!killed_by_us && program_has_ended(s)) {
		session_close_cell(s, end_of_program(s, exit_code), exit_code, STATE_KEPT);
		return;
	}

	enum cell_status status = explain_death(s, &exit_code);
	add_state(s, rolled_back);
	s->table->stats.cells_rolled_back += rolled_back;
	session_close_cell(s, status, exit_code, after);
}

void session_end_with_guest(struct session *s, bool rolled_back)
{
	s->queue.n_background = 0;
	s->table->stats.guests_replaced++;
	if (!rolled_back) {
		session_set_phase(s, PHASE_STARTING); /* no queued cell may start now */
		s->setup.sent = false;
	}

	if (!s->queue.running)
		death_between_cells(s, rolled_back);
	s->death.holds.state &= rolled_back;
	s->death.holds.files &= rolled_back || !s->death.last.jail;
	if (s->queue.running)
		close_dead_cell(s, rolled_back);
}

void session_guest_exit(struct session *s, const struct process_exit *end, bool broken)
{
	bool again = session_is_restoring(s); /* then the operation that restores decides */

	/*
	 * before the check is dropped, whose asker may send a cell: it waits for the next
	 * interpreter
	 */
	if (!again)
		session_set_phase(s, PHASE_DEAD);
	source_check_drop(s);
	introspect_drop(s);
	if (s->phase == PHASE_ENDING)
		return;

	if (!again)
		death_note(s, end, broken);
	operation_guest_died(s);
}

void session_guest_ready(struct session *s)
{
	s->origin.retries = 0;
	if (session_is_restoring(s)) {
		history_ready(s);
		return;
	}

	session_set_phase(s, PHASE_IDLE);
	if (!s->origin.ready && !s->queue.cells)
		stats_observe(&s->table->stats.create_seconds,
			(double)(clock_now_ns() - s->times.created_ns) / 1e9);
	if (s->setup.sent)
		session_send_paths(s); /* a fork: its parent's interpreter may have lacked some */
	fork_child_ready(s);
	operation_begin(s);
	session_start_next(s);
}

/*
 * The jail of a session that had an interpreter ended: the running cell, the variables and the
 * files are lost.
 */
static void lose_jail(struct session *s)
{
	operation_jail_died(s);
	if (s->phase == PHASE_ENDING)
		return;
	if (!s->queue.running && !s->death.holds.state && !s->death.holds.files)
		return;

	death_note(s, &(struct process_exit){ .signaled = true, .status = SIGKILL }, false);
	s->death.last.jail = true;
	evict_named(s);
	session_end_with_guest(s, false);
}

/* Takes another sandbox; false when there were too many attempts. */
static bool try_another_sandbox(struct session *s)
{
	/* a resource that has run out is not there a moment later */
	unsigned tries = sandbox_pool_shortage(s->table->pool) ? 1 : GUEST_RETRIES_MAX;
	uint64_t now = clock_now_ns();
	bool ready;
	if (!s->origin.retries)
		s->origin.failing_ns = now;
	/* each of them may take as long as the watchdog allows */
	if (++s->origin.retries > tries ||
		now - s->origin.failing_ns > LIMIT_START_SECONDS * NSEC_PER_SEC)
		return false;

	if (s->display)
		display_detach(s->display);
	sandbox_close(s->sandbox);
	s->sandbox = NULL;

	if (session_take_sandbox(s, NULL, &ready) < 0)
		return false;

	if (ready)
		session_guest_ready(s);
	return true;
}

void session_guest_failed(struct session *s, const char *text)
{
	if (session_is_restoring(s)) {
		operation_restore_failed(s);
		return;
	}

	if (s->origin.context_of) {
		session_fail_all_cells(s, CELL_KILLED, "no_guest", text, "Make another context.");
		session_end(s,
			sandbox_has_jail(s->sandbox)
				? "its interpreter could not be started"
				: "the jail of its session was ended, with all processes and files");
		return;
	}
	if (s->origin.fork_of) {
		fork_child_failed(s, text);
		session_end(s, "it could not be forked");
		return;
	}

	lose_jail(s);
	if (s->phase == PHASE_ENDING)
		return;

	s->death.holds.files = false;
	history_forget(s);
	session_set_phase(s, PHASE_STARTING);
	s->setup.sent = false;
	if (try_another_sandbox(s))
		return;

	operation_cancel(s, text);
	session_fail_all_cells(s, CELL_KILLED, "no_guest", text,
		"The server's log says more; `glovebox doctor` checks the machine.");

	/* kept, the session would let cells wait for an interpreter that never comes */
	char why[160];
	snprintf(why, sizeof(why), "its interpreter could not be started: %s", text);
	session_end(s, why);
}

/* ---- events of the sandbox, passed on ---------------------------------------- */

static void on_frame(void *owner, const struct wire_frame *f)
{
	session_guest_frame(owner, f);
}

static void on_output(void *owner, enum stream stream, const char *data, size_t len)
{
	session_guest_output(owner, stream, data, len);
}

static void on_exit_event(void *owner, const struct process_exit *end, bool broken)
{
	session_guest_exit(owner, end, broken);
}

static void on_ready(void *owner)
{
	session_guest_ready(owner);
}

static void on_failed(void *owner, const char *text)
{
	session_guest_failed(owner, text);
}

static void on_network(void *owner, const struct proxy_event *e)
{
	session_network_event(owner, e);
}

static void on_display(void *owner, int *fds)
{
	struct session *s = owner;
	if (s->display)
		display_take_socket(s->display, fds);
}

const struct sandbox_events session_events = {
	.guest = { on_frame, on_output, on_exit_event },
	.on_ready = on_ready,
	.on_failed = on_failed,
	.on_network = on_network,
	.on_display = on_display,
};
