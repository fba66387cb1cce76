/* The guest's life, as its session sees it: ready, failed, dead. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "session/film.h"
#include "session/internal.h"

enum { GUEST_RETRIES_MAX = 8 }; /* more than there are jails in stock: all of them may have died at once */

/* Why the interpreter ended under a running cell, in words. */
static void say_death(struct session *s, const struct process_exit *end, bool broken, const char *remedy)
{
	char text[256];
	if (broken)
		snprintf(text, sizeof(text), "the interpreter was ended: the code wrote to its control socket");
	else if (end->signaled)
		snprintf(text, sizeof(text), "the interpreter was ended by signal %d (%s)", end->status, strsignal(end->status));
	else
		snprintf(text, sizeof(text), "the code ended the interpreter itself with exit code %d (os._exit%s)", end->status,
			end->status ? "" : ", or it closed descriptor 1023, which is the session's own");
	session_override_error(s, "InterpreterDied", "interpreter_died", remedy, text);
}

/* What became of the variables, and why they are not as before when a copy was wished for. The text lives in the session. */
static const char *say_state(struct session *s, bool rolled_back)
{
	const char *left = berth_files_left(s->berth);
	if (rolled_back && *left)
		snprintf(s->remedy, sizeof(s->remedy), "Variables are as they were before this cell; files were left as they are: %s.", left);
	else if (rolled_back)
		snprintf(s->remedy, sizeof(s->remedy), "Variables and files are as they were before this cell; change the code and try again.");
	else
		snprintf(s->remedy, sizeof(s->remedy), "Variables are gone, files under /workspace are still there; run the imports and definitions "
			"again.%s%s%s", s->no_copy[0] ? " There was no copy to go back to: " : "", s->no_copy, s->no_copy[0] ? "." : "");
	return s->remedy;
}

/* True when the kernel killed something of the session for want of memory since the last look. */
bool session_ran_out_of_memory(struct session *s)
{
	struct cgroup_usage u;
	berth_usage(s->berth, &u);
	bool more = u.oom_kills > s->oom_kills;
	s->oom_kills = u.oom_kills;
	return more;
}

static void say_out_of_memory(struct session *s)
{
	char text[160];
	snprintf(text, sizeof(text), "the session reached its memory limit of %llu bytes and its interpreter was killed",
		(unsigned long long)s->params.limits.memory_bytes);
	session_override_error(s, "MemoryError", "out_of_memory",
		"Use less memory at once (files in /workspace and /tmp count), or make the session with a larger limits.memory_bytes (--memory).",
		text);
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
		say_out_of_memory(s);
	} else if (c->capture && capture_tell_kill(c->capture)) {
		status = CELL_INTERRUPTED;
	} else {
		say_death(s, end, s->death.broken, say_state(s, rolled_back));
	}
	s->table->stats.cells_rolled_back += rolled_back;
	session_close_cell(s, status, exit_code, rolled_back ? STATE_BEFORE : STATE_LOST);
}

static void note_death(struct session *s, const struct process_exit *end, bool broken)
{
	s->death.end = *end;
	s->death.broken = broken;
	s->death.out_of_memory = end->signaled && end->status == SIGKILL && session_ran_out_of_memory(s);
}

void session_guest_exit(struct session *s, const struct process_exit *end, bool broken)
{
	s->guest_ready = false; /* whoever hears of it may send a cell, which waits for the next interpreter */
	if (!operation_restores(s))
		note_death(s, end, broken);
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
		s->table->stats.cells[status]++;
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
	if (s->running) { /* its jail went with it */
		note_death(s, &(struct process_exit){ .signaled = true, .status = SIGKILL }, false);
		session_end_with_guest(s, false);
	}
	travel_forget(s);
	s->guest_ready = s->setup_sent = false;
	if (++s->retries <= GUEST_RETRIES_MAX && !s->ending) {
		bool ready;
		if (s->display)
			display_detach(s->display);
		berth_close(s->berth);
		s->berth = NULL;
		if (session_take_berth(s, &ready) == 0) {
			if (ready)
				session_guest_ready(s);
			return;
		}
	}
	operation_cancel(s, text);
	session_fail_all_cells(s, CELL_KILLED, "no_guest", text, "The server's log says more; `glovebox doctor` checks the machine.");
	session_end(s, "its interpreter could not be started"); /* kept, it would let cells wait for what does not come */
}
