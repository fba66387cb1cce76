/* The guest's life, as its session sees it: ready, failed, dead. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "session/display/film.h"
#include "session/internal.h"

enum { GUEST_RETRIES_MAX = 8 }; /* more than there are jails in stock: all of them may have died at once */

/* What became of the variables, and why they are not as before when a copy was wished for: into s->remedy, from byte `at` on. */
static void say_state(struct session *s, bool rolled_back, size_t at)
{
	const char *left = sandbox_files_not_restored(s->sandbox);
	char *text = s->remedy + at;
	size_t size = sizeof(s->remedy) - at;
	char again[REPLAY_WORDS_MAX];
	replay_words(s, again);
	if (rolled_back && *left)
		snprintf(text, size, "Variables are as they were before this cell%s; files were left as they are: %s.", again, left);
	else if (rolled_back)
		snprintf(text, size, "Variables and files are as they were before this cell%s; change the code and try again.", again);
	else if (s->death.jail)
		snprintf(text, size, "Variables and files are gone; send the files again, and run the imports and definitions again.");
	else
		snprintf(text, size, "Variables are gone, files under /workspace are still there; run the imports and definitions "
			"again. There was no copy to go back to: %s.", s->no_snapshot[0] ? s->no_snapshot : "none had been taken");
}

/* Whatever ended the interpreter: the error's remedy also says what became of the variables. */
static void add_state(struct session *s, bool rolled_back)
{
	struct cell_error *e = &s->outcome.error;
	char own[256];
	if (!s->outcome.has_error)
		return;
	int n = snprintf(own, sizeof(own), "%s", e->remedy ? e->remedy : "");
	size_t at = n > 0 && (size_t)n < sizeof(own) ? (size_t)n : 0; /* one that does not fit gives way */
	if (at)
		own[at++] = ' ';

	memcpy(s->remedy, own, at);
	say_state(s, rolled_back, at);
	e->remedy = s->remedy;
}

/* True when the kernel killed something of the session for want of memory since the last look. */
bool session_ran_out_of_memory(struct session *s)
{
	struct cgroup_usage u;
	sandbox_usage(s->sandbox, &u);
	bool more = u.oom_kills > s->oom_kills;
	s->oom_kills = u.oom_kills;
	return more;
}

static void say_death(struct session *s)
{
	char text[256];
	death_say_why(s, text, sizeof(text));
	if (s->death.out_of_memory)
		session_override_error(s, "MemoryError", "out_of_memory",
			"Use less memory at once (files in /workspace and /tmp count), or make the session with a larger limits.memory_bytes (--memory).",
			text);
	else if (s->death.display)
		session_override_error(s, "InterpreterDied", "display_gone", "Open the windows again: the display starts anew when it is used next.", text);
	else
		session_override_error(s, "InterpreterDied", "interpreter_died", "", text);
}

/* A one-shot that ended its process itself, or became another program by os.execv(): its exit code is the program's, as python3's would be. */
static enum cell_status end_of_program(struct session *s, int exit_code)
{
	char text[32];
	snprintf(text, sizeof(text), "exit code %d", exit_code);
	if (exit_code)
		session_override_error(s, "SystemExit", "", "", text);
	return exit_code ? CELL_ERROR : CELL_OK;
}

void session_end_with_guest(struct session *s, bool rolled_back)
{
	struct cell *c = s->running;
	const struct process_exit *end = &s->death.end;
	enum cell_status status = CELL_KILLED;
	int exit_code = end->signaled ? 128 + end->status : end->status;
	s->n_left = 0;
	s->table->stats.guests_replaced++;
	if (!rolled_back)
		s->guest_ready = s->setup_sent = false; /* no queued cell may start now */
	if (!c)
		death_between_cells(s, rolled_back);
	s->holds.state &= rolled_back;
	s->holds.files &= rolled_back || !s->death.jail;
	if (!c)
		return;
	if (s->outcome.done) { /* its code was over: only a picture or a film was awaited */
		status = c->capture ? capture_status(c->capture, &exit_code) : CELL_OK;
		status = c->film ? film_cell_status(c->film, status, &exit_code) : status;
		session_close_cell(s, status, exit_code, rolled_back ? STATE_BEFORE : STATE_LOST);
		return;
	}
	s->outcome.has_result = false;
	if (c->timed_out) {
		status = CELL_TIMEOUT;
		exit_code = 124;
		session_tell_timeout(s, true);
	} else if (c->stop) {
		status = session_tell_stop(s, true);
		exit_code = status == CELL_TIMEOUT ? 124 : 137;
	} else if (c->interrupted) {
		status = CELL_INTERRUPTED;
		session_override_error(s, "KeyboardInterrupt", "interrupted", "",
			"the cell was killed, because it did not stop when interrupted");
	} else if (s->death.out_of_memory) {
		status = CELL_OUT_OF_MEMORY;
		say_death(s);
	} else if (c->capture && capture_tell_kill(c->capture)) {
		status = CELL_INTERRUPTED;
	} else if (c->program && !end->signaled && !s->death.broken && end->status != WIRE_CUT_OFF) {
		session_close_cell(s, end_of_program(s, exit_code), exit_code, STATE_KEPT);
		return;
	} else {
		say_death(s);
	}
	add_state(s, rolled_back);
	s->table->stats.cells_rolled_back += rolled_back;
	session_close_cell(s, status, exit_code, rolled_back ? STATE_BEFORE : STATE_LOST);
}

void session_guest_exit(struct session *s, const struct process_exit *end, bool broken)
{
	s->guest_ready = false; /* whoever hears of it may send a cell, which waits for the next interpreter */
	source_check_drop(s);
	if (!operation_restores(s))
		death_note(s, end, broken);
	operation_guest_died(s);
}

void session_guest_ready(struct session *s)
{
	s->guest_ready = true;
	s->retries = 0;
	if (operation_restores(s)) {
		operation_ready(s);
		return;
	}
	if (!s->warm && !s->cells)
		stats_observe(&s->table->stats.create_seconds, (double)(clock_now_ns() - s->created_ns) / 1e9);
	if (s->setup_sent)
		session_send_paths(s); /* a fork: its parent's interpreter may have lacked some */
	fork_child_ready(s);
	operation_begin(s);
	session_start_next(s);
}

void session_fail_all_cells(struct session *s, enum cell_status status, const char *code, const char *text, const char *remedy)
{
	if (s->running) {
		session_override_error(s, "SessionEnded", code, remedy, text);
		session_close_cell(s, status, 137, STATE_LOST);
	}
	while (!TAILQ_EMPTY(&s->queue)) {
		struct cell *c = TAILQ_FIRST(&s->queue);
		TAILQ_REMOVE(&s->queue, c, link);
		s->queued--;
		s->table->stats.queued_cells--;
		session_count_cell(s, status);
		session_override_error(s, "SessionEnded", code, remedy, text);
		session_report_cell(s, c, status, 137, STATE_LOST);
		outcome_finish(&s->outcome);
		cell_free(c);
	}
}

void session_guest_failed(struct session *s, const char *text)
{
	if (operation_restores(s)) {
		operation_restore_failed(s);
		return;
	}
	if (s->fork_of) {
		fork_child_failed(s, text);
		session_end(s, "it could not be forked");
		return;
	}
	if (s->running || s->holds.state || s->holds.files) { /* its jail went with it */
		death_note(s, &(struct process_exit){ .signaled = true, .status = SIGKILL }, false);
		s->death.jail = true;
		room_lose_named(s);
		session_end_with_guest(s, false);
	}
	s->holds.files = false;
	history_forget(s);
	s->guest_ready = s->setup_sent = false;
	unsigned tries = sandbox_pool_shortage(s->table->pool) ? 1 : GUEST_RETRIES_MAX; /* what has run out is not there a moment later */
	if (++s->retries <= tries && !s->ending) {
		bool ready;
		if (s->display)
			display_detach(s->display);
		sandbox_close(s->sandbox);
		s->sandbox = NULL;
		if (session_take_sandbox(s, &ready) == 0) {
			if (ready)
				session_guest_ready(s);
			return;
		}
	}
	operation_cancel(s, text);
	session_fail_all_cells(s, CELL_KILLED, "no_guest", text, "The server's log says more; `glovebox doctor` checks the machine.");
	session_end(s, "its interpreter could not be started"); /* kept, it would let cells wait for what does not come */
}
