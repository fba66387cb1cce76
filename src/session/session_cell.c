/* Cells of a session: queue, start, deadline, end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "session/film.h"
#include "session/internal.h"

enum {
	WAKE_MS = 20,
	GUEST_RETRIES_MAX = 8, /* more than there are jails in stock: all of them may have died at once */
};

const double stats_bounds_s[STATS_BUCKETS - 1] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 10, 60 };


void stats_observe(struct stats_histogram *h, double seconds)
{
	for (unsigned i = 0; i < STATS_BUCKETS - 1; i++)
		h->bucket[i] += seconds <= stats_bounds_s[i];
	h->bucket[STATS_BUCKETS - 1]++;
	h->count++;
	h->sum += seconds;
}

const char *cell_status_name(enum cell_status s)
{
	static const char *const names[] = { "ok", "error", "timeout", "interrupted", "out_of_memory", "killed", "refused", "running" };
	return names[s];
}

static void cell_free(struct cell *c)
{
	capture_destroy(c->capture);
	film_cell_destroy(c->film);
	buffer_finish(&c->frame);
	free(c);
}

/* What a cell left of the session's variables. */
enum state_after { STATE_KEPT, STATE_LOST, STATE_BEFORE };

/* ---- output ------------------------------------------------------------------- */

/* Tells the listener whole characters only; up to three bytes wait for what follows. */
static void tell_output(struct session *s, enum stream stream, const char *data, size_t len)
{
	struct cell *c = s->running;
	char joined[8];
	if (!c || c->abandoned || !c->observer.on_output || !len)
		return;
	if (c->observer.uncapped) {
		c->observer.on_output(c->userdata, stream, data, len);
		return;
	}
	size_t carried = s->carried[stream];
	if (carried) { /* the unfinished character and the bytes that can belong to it, as a piece of their own */
		size_t more = len < 4 - carried ? len : 4 - carried;
		memcpy(joined, s->carry[stream], carried);
		memcpy(joined + carried, data, more);
		size_t open = output_unfinished(joined, carried + more);
		if (open && open == carried + more) {
			memcpy(s->carry[stream], joined, open);
			s->carried[stream] = open;
			return;
		}
		s->carried[stream] = 0;
		c->observer.on_output(c->userdata, stream, joined, carried + more - open);
		data += more - open;
		len -= more - open;
	}
	size_t open = output_unfinished(data, len);
	memcpy(s->carry[stream], data + len - open, open);
	s->carried[stream] = open;
	if (len > open)
		c->observer.on_output(c->userdata, stream, data, len - open);
}

void session_guest_output(struct session *s, enum stream stream, const char *data, size_t len)
{
	size_t in_head = len;
	uint64_t *total = stream == STREAM_STDOUT ? &s->table->stats.stdout_bytes : &s->table->stats.stderr_bytes;
	*total += len;
	spool_add(&s->spool, s->cells, stream, clock_wall_ns(), data, len);
	session_count_output(s, len);
	bool uncapped = s->running && s->running->observer.uncapped;
	if (!uncapped && output_add(&s->output[stream], data, len, &in_head) < 0)
		in_head = 0;
	if (in_head < len)
		guest_rest(berth_guest(s->berth)); /* beyond the cap: no hurry, and others need the CPUs */
	tell_output(s, stream, data, in_head);
}

/* ---- the end of a cell ------------------------------------------------------------ */

void session_stop_clock(struct session *s)
{
	s->clock = CLOCK_OFF;
	uv_timer_stop(&s->deadline);
}

/* An error of the daemon's own making, in place of or over what the guest said. */
static void override_error(struct session *s, const char *type, const char *code, const char *remedy, const char *text)
{
	struct outcome *o = &s->outcome;
	if (!o->has_error)
		o->error = (struct cell_error){ .traceback = "" };
	o->error.type = type;
	o->error.code = code;
	o->error.remedy = remedy;
	free(o->error_message);
	o->error_message = strdup(text);
	o->error.message = o->error_message ? o->error_message : "";
	o->error.message_len = strlen(o->error.message);
	o->has_error = true;
}

static void report(struct session *s, struct cell *c, enum cell_status status, int exit_code, enum state_after after)
{
	struct outcome *o = &s->outcome;
	_cleanup_free_ char *let_go = c->abandoned ? NULL : TAKE_PTR(s->let_go);
	struct observation obs = { .id = c->id,
		.session = s->id,
		.cell = c->started ? s->cells : 0,
		.status = status,
		.exit_code = exit_code,
		.state_lost = after == STATE_LOST,
		.rolled_back = after == STATE_BEFORE,
		.packages = s->packages_news ? s->params.packages_report : NULL,
		.let_go = let_go,
		.result = o->has_result ? &o->result : NULL,
		.displays = o->displays,
		.n_displays = o->n_displays,
		.displays_left_out = o->displays_left_out,
		.error = o->has_error ? &o->error : NULL,
		.answer = o->has_answer ? &o->answer : NULL,
		.files = o->files,
		.n_files = o->n_files,
		.files_cut = o->files_cut,
		.cpu_ms = o->cpu_ms,
		.peak_memory_bytes = o->peak_memory_bytes };
	if (after == STATE_BEFORE) {
		obs.files_rolled_back = s->params.keep_files_bytes && !*berth_files_left(s->berth);
		obs.rolled_back_to = s->latest ? s->latest->cell : 0;
	}
	s->packages_news = false;
	if (c->started)
		obs.wall_ms = (double)(clock_now_ns() - s->started_ns) / 1e6;
	if (c->capture)
		capture_report(c->capture, &obs);
	obs.recording = c->recording_id;
	if (c->film)
		film_cell_report(c->film, &obs);
	output_view(&s->output[STREAM_STDOUT], &obs.out);
	output_view(&s->output[STREAM_STDERR], &obs.err);
	for (int i = 0; i < 2; i++) { /* an unfinished character at the very end is told as it is */
		size_t n = s->carried[i];
		s->carried[i] = 0;
		if (n && !c->abandoned && c->observer.on_output)
			c->observer.on_output(c->userdata, (enum stream)i, s->carry[i], n);
	}
	struct sessions *t = s->table;
	uint64_t before = clock_now_ns();
	if (!c->abandoned && c->observer.on_done)
		c->observer.on_done(c->userdata, &obs);
	step_add(&t->stats.steps, STEP_ENCODE, clock_now_ns() - before);
}

/* The running cell is over. The next one starts in this call when the guest can take it. */
static void end_cell(struct session *s, enum cell_status status, int exit_code, enum state_after after)
{
	struct cell *c = s->running;
	struct sessions *t = s->table;
	session_stop_clock(s);
	tools_end_cell(s);
	if (c->capture)
		capture_abort(c->capture);
	if (c->recording_id)
		recording_stop(s, c->recording_id, "cell", NULL);
	t->stats.cells[status]++;
	if (s->outcome.has_error && s->outcome.rule < POLICY_RULES)
		t->stats.violations[s->outcome.rule]++;
	t->stats.running_cells--;
	uint64_t took = clock_now_ns() - s->started_ns;
	stats_observe(&t->stats.cell_seconds, (double)took / 1e9);
	if (s->outcome.done) {
		step_add_all(&t->stats.steps, &s->outcome.steps);
		step_add(&t->stats.steps, STEP_CELL, step_rest(&s->outcome.steps, STEP_COMPILE, STEP_REPORT, took));
	}
	s->used_ns = clock_now_ns();
	s->used_wall_ns = clock_wall_ns();
	report(s, c, status, exit_code, after);
	s->running = NULL;
	outcome_finish(&s->outcome);
	output_finish(&s->output[0]);
	output_finish(&s->output[1]);
	cell_free(c);
	session_start_next(s);
}

/* ---- cells that were left in a main loop -------------------------------------------- */

enum { NUDGE_FIRST_MS = 20, NUDGE_MS = 200 };

/* What such a cell says when its loop ended at last is told nobody: its answer is long out. True when the frame was one of those. */
static bool session_frame_of_left(struct session *s, const struct wire_frame *f)
{
	for (unsigned i = 0; i < s->n_left; i++) {
		if (s->left[i] != f->serial)
			continue;
		if (f->type == WIRE_DONE) {
			s->left[i] = s->left[--s->n_left];
			session_start_next(s);
		}
		return true;
	}
	return false;
}

/* A signal makes Python look for the cell; an event that means nothing makes a main loop let Python run. */
static void nudge(struct session *s)
{
	guest_signal(berth_guest(s->berth), WIRE_CELL_SIGNAL);
	if (s->display && display_is_up(s->display))
		display_ask(s->display, DISPLAY_ASK_POKE, NULL, 0, true, 1, NULL, NULL, NULL);
}

static void on_nudge(uv_timer_t *t)
{
	struct session *s = t->data;
	if (!s->n_left || !s->running || !s->guest_ready) {
		uv_timer_stop(t);
		return;
	}
	nudge(s);
}

static void start_nudging(struct session *s)
{
	if (!s->n_left)
		return;
	nudge(s);
	uv_timer_start(&s->nudge, on_nudge, NUDGE_FIRST_MS, NUDGE_MS);
}

void session_leave_cell(struct session *s)
{
	guest_drain(berth_guest(s->berth));
	if (!s->running || s->outcome.done || s->n_left == LIMIT_LEFT_CELLS)
		return;
	s->left[s->n_left++] = s->cells;
	end_cell(s, CELL_RUNNING, 0, false);
}

void session_end_cell(struct session *s, enum cell_status status, int exit_code)
{
	struct cell *c = s->running;
	if (c->film && film_cell_finish(c->film, c->recording_id, status, exit_code))
		session_stop_clock(s); /* making a film has a limit of its own */
	else
		end_cell(s, status, exit_code, STATE_KEPT);
}

static void say_timeout(struct session *s, bool killed)
{
	char text[160];
	snprintf(text, sizeof(text), "the cell ran longer than its limit of %g s and was %s", s->running->timeout_s,
		killed ? "killed, because it did not stop when interrupted" : "interrupted");
	override_error(s, "TimeoutError", "cell_timeout",
		"Make the code faster or split it into cells, or ask for more time with timeout_s.", text);
}

/* A limit other than the time stopped it. */
static enum cell_status say_stop(struct session *s, bool killed)
{
	struct cell_error said;
	char text[160];
	session_say_stop(s, killed, text, sizeof(text), &said);
	override_error(s, said.type, said.code, said.remedy, text);
	return s->running->stop == STOP_CPU ? CELL_TIMEOUT : killed ? CELL_KILLED : CELL_ERROR;
}

/* The guest said DONE: all it printed is in the pipes. */
static void finish_cell(struct session *s)
{
	struct outcome *o = &s->outcome;
	struct cell *c = s->running;
	enum cell_status status = CELL_OK;
	int exit_code = o->exit_code;
	guest_drain(berth_guest(s->berth));
	if (s->running != c)
		return;
	travel_cell_done(s, !c->timed_out && !c->interrupted && o->kind != WIRE_OUTCOME_INTERRUPT);
	if (c->timed_out) {
		status = CELL_TIMEOUT;
		exit_code = 124;
		say_timeout(s, false);
	} else if (c->stop) {
		status = say_stop(s, false);
		exit_code = status == CELL_TIMEOUT ? 124 : 1;
	} else if (o->kind == WIRE_OUTCOME_INTERRUPT) {
		status = CELL_INTERRUPTED;
		if (c->interrupted)
			o->error.code = "interrupted";
	} else if (o->kind == WIRE_OUTCOME_MEMORY) {
		status = CELL_OUT_OF_MEMORY;
		o->error.code = "out_of_memory";
		o->error.remedy = "Use less memory at once, or make the session with a larger limits.memory_bytes.";
	} else if (o->kind == WIRE_OUTCOME_REFUSED) {
		status = CELL_REFUSED;
	} else if (o->kind != WIRE_OUTCOME_OK && (o->kind != WIRE_OUTCOME_EXIT || exit_code)) {
		status = CELL_ERROR;
		session_explain_error(s);
	}
	if (c->capture && capture_finish(c->capture, status, exit_code))
		session_stop_clock(s); /* the code is over; what is awaited now has a limit of its own */
	else
		session_end_cell(s, status, exit_code);
}

static void take_loop(struct session *s, const struct wire_frame *f)
{
	struct wire_field field;
	uint64_t loop;
	for (size_t at = 0; wire_field_next(f, &at, &field) == 1;)
		if (field.tag == WIRE_LOOP && wire_field_u64(&field, &loop) == 0 && loop < WIRE_LOOP_COUNT && s->running->capture)
			capture_loop(s->running->capture, (enum wire_loop)loop);
}

void session_guest_frame(struct session *s, const struct wire_frame *f)
{
	const struct bundle *display = NULL;
	if (f->type == WIRE_CHECKED && s->check_answer && f->serial == s->check_serial) {
		struct wire_field field;
		size_t at = 0;
		char verdict[16] = "invalid";
		while (wire_field_next(f, &at, &field) == 1)
			if (field.tag == WIRE_TEXT)
				snprintf(verdict, sizeof(verdict), "%.*s", (int)(field.len < 15 ? field.len : 15), field.data);
		void (*answer)(void *, const char *) = s->check_answer;
		s->check_answer = NULL;
		answer(s->check_userdata, verdict);
		return;
	}
	if (travel_frame(s, f))
		return;
	if (session_frame_of_left(s, f))
		return;
	if (f->type == WIRE_STARTED && s->running && s->n_left && f->serial == s->cells) {
		uv_timer_stop(&s->nudge);
		return;
	}
	if (f->type == WIRE_WAITS && s->running && !s->outcome.done && f->serial == s->cells) {
		take_loop(s, f);
		return;
	}
	bool of_tools = f->type == WIRE_TOOL_CALL || f->type == WIRE_TOOL_CANCEL;
	if (of_tools && s->running)
		s->running->outside = true;
	/* A frame nobody asked for, or one that cannot be, is a forgery: it costs the session that sent it. */
	if (!s->running || s->outcome.done || f->serial != s->cells ||
		(of_tools ? tools_take(s, f) : outcome_take(&s->outcome, f, &display)) < 0) {
		log_warning("session %s: its guest sent a frame that cannot be; it is killed", s->id);
		guest_signal(berth_guest(s->berth), SIGKILL);
		return;
	}
	if (display && !s->running->abandoned && s->running->observer.on_display)
		s->running->observer.on_display(s->running->userdata, display);
	if (s->outcome.done)
		finish_cell(s);
}

/* ---- deadlines and interrupts ------------------------------------------------------- */

static void interrupt_running(struct session *s);
static void on_deadline(uv_timer_t *t);

#define PAUSE_MAX_NS (LIMIT_TOOL_PAUSE_SECONDS * NSEC_PER_SEC)

/* The timer goes off at what comes first: the cell's limit (the end of the longest pause while it stands still), or a call's. */
static void arm_clock(struct session *s)
{
	uint64_t now = clock_now_ns(), at = s->limit_at_ns, call_at = tools_next_deadline(s);
	if (s->paused_at_ns)
		at = s->paused_at_ns + (PAUSE_MAX_NS - s->paused_ns);
	if (call_at < at)
		at = call_at;
	uv_timer_start(&s->deadline, on_deadline, at > now ? (at - now + 999999) / 1000000 : 0, 0);
}

static void go_on(struct session *s, uint64_t now)
{
	if (!s->paused_at_ns)
		return;
	s->limit_at_ns += now - s->paused_at_ns;
	s->paused_ns += now - s->paused_at_ns;
	s->paused_at_ns = 0;
}

void session_tools_waiting(struct session *s, bool waiting)
{
	uint64_t now = clock_now_ns();
	if (s->clock != CLOCK_LIMIT)
		return;
	if (!waiting)
		go_on(s, now);
	else if (!s->paused_at_ns && s->paused_ns < PAUSE_MAX_NS)
		s->paused_at_ns = now;
	arm_clock(s);
}

static void check_limit(struct session *s)
{
	uint64_t now = clock_now_ns();
	tools_expire(s, now);
	if (s->paused_at_ns && now - s->paused_at_ns + s->paused_ns >= PAUSE_MAX_NS)
		go_on(s, now);
	if (s->paused_at_ns || now < s->limit_at_ns) {
		arm_clock(s);
		return;
	}
	s->running->timed_out = true;
	interrupt_running(s);
}

static void on_deadline(uv_timer_t *t)
{
	struct session *s = t->data;
	if (s->clock == CLOCK_RECOVERING) {
		if (!s->recovering)
			travel_cancel(s, "the interpreter did not answer in time (a thread that holds it?)");
		else
			travel_failed(s);
		return;
	}
	if (!s->running)
		return;
	if (s->clock == CLOCK_LIMIT) {
		check_limit(s);
	} else if (clock_now_ns() - s->interrupt_ns >= (uint64_t)(s->table->config.grace_s * 1e9)) {
		berth_kill_all(s->berth);
		uv_timer_stop(t); /* its end is reported when it is there */
	} else {
		guest_signal(berth_guest(s->berth), WIRE_WAKE_SIGNAL);
	}
}

void session_start_clock(struct session *s, enum session_clock clock, uint64_t ms)
{
	s->clock = clock;
	uv_timer_start(&s->deadline, on_deadline, ms, 0);
}

static void interrupt_running(struct session *s)
{
	if (s->clock == CLOCK_INTERRUPTING || s->recovering)
		return;
	s->clock = CLOCK_INTERRUPTING;
	s->interrupt_ns = clock_now_ns();
	guest_signal(berth_guest(s->berth), SIGINT);
	uv_timer_start(&s->deadline, on_deadline, WAKE_MS, WAKE_MS);
}

void session_interrupt_running(struct session *s)
{
	interrupt_running(s);
}

void session_stop_cell(struct session *s, enum cell_stop why)
{
	if (s->running->stop || s->running->timed_out)
		return;
	s->running->stop = why;
	interrupt_running(s);
}

bool session_interrupt(struct session *s)
{
	if (!s->running && s->n_left) { /* what was left running ends */
		guest_signal(berth_guest(s->berth), SIGINT);
		nudge(s);
		return true;
	}
	if (!s->running)
		return false;
	if (s->outcome.done) /* the code is over, its last picture is not there yet */
		return true;
	s->running->interrupted = true;
	interrupt_running(s);
	return true;
}

void cell_abandon(struct cell *c)
{
	struct session *s = c->session;
	c->abandoned = true;
	if (c->detach)
		return;
	if (s->running == c) {
		session_interrupt(s);
	} else {
		TAILQ_REMOVE(&s->queue, c, link);
		s->queued--;
		s->table->stats.queued_cells--;
		cell_free(c);
	}
}

/* ---- the guest's life ------------------------------------------------------------------ */

/* Why the interpreter ended under a running cell, in words. */
static void say_death(struct session *s, const struct process_exit *end, bool broken, const char *remedy)
{
	char text[256];
	if (broken)
		snprintf(text, sizeof(text), "the interpreter was ended: the code wrote to its control socket");
	else if (end->signaled)
		snprintf(text, sizeof(text), "the interpreter was ended by signal %d (%s)", end->status, strsignal(end->status));
	else
		snprintf(text, sizeof(text), "the code ended the interpreter itself with exit code %d (os._exit)", end->status);
	override_error(s, "InterpreterDied", "interpreter_died", remedy, text);
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
	override_error(s, "MemoryError", "out_of_memory",
		"Use less memory at once (files in /workspace and /tmp count), or make the session with a larger limits.memory_bytes.",
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
		end_cell(s, status, exit_code, rolled_back ? STATE_BEFORE : STATE_LOST);
		return;
	}
	s->outcome.has_result = false;
	if (c->timed_out) {
		status = CELL_TIMEOUT;
		exit_code = 124;
		say_timeout(s, true);
	} else if (c->stop) {
		status = say_stop(s, true);
		exit_code = status == CELL_TIMEOUT ? 124 : 137;
	} else if (c->interrupted) {
		status = CELL_INTERRUPTED;
		override_error(s, "KeyboardInterrupt", "interrupted", "",
			"the cell was killed, because it did not stop when interrupted");
	} else if (s->death.out_of_memory) {
		status = CELL_OUT_OF_MEMORY;
		say_out_of_memory(s);
	} else {
		say_death(s, end, s->death.broken, say_state(s, rolled_back));
	}
	s->table->stats.cells_rolled_back += rolled_back;
	end_cell(s, status, exit_code, rolled_back ? STATE_BEFORE : STATE_LOST);
}

static void note_death(struct session *s, const struct process_exit *end, bool broken)
{
	s->death.end = *end;
	s->death.broken = broken;
	s->death.out_of_memory = end->signaled && end->status == SIGKILL && session_ran_out_of_memory(s);
}

void session_guest_exit(struct session *s, const struct process_exit *end, bool broken)
{
	if (s->recovering) {
		travel_failed(s);
		return;
	}
	note_death(s, end, broken);
	if (travel_recover(s))
		return;
	session_end_with_guest(s, false);
	travel_forget(s);
	berth_replace_guest(s->berth);
}

void session_guest_ready(struct session *s)
{
	s->guest_ready = true;
	s->retries = 0;
	if (s->recovering) {
		travel_ready(s);
		return;
	}
	if (!s->warm && !s->cells)
		stats_observe(&s->table->stats.create_seconds, (double)(clock_now_ns() - s->created_ns) / 1e9);
	travel_born(s, NULL);
	travel_begin(s);
	session_start_next(s);
}

void session_fail_all_cells(struct session *s, enum cell_status status, const char *code, const char *text, const char *remedy)
{
	if (s->running) {
		override_error(s, "SessionEnded", code, remedy, text);
		end_cell(s, status, 137, STATE_LOST);
	}
	while (!TAILQ_EMPTY(&s->queue)) {
		struct cell *c = TAILQ_FIRST(&s->queue);
		TAILQ_REMOVE(&s->queue, c, link);
		s->queued--;
		s->table->stats.queued_cells--;
		s->table->stats.cells[status]++;
		override_error(s, "SessionEnded", code, remedy, text);
		report(s, c, status, 137, STATE_LOST);
		outcome_finish(&s->outcome);
		cell_free(c);
	}
}

void session_guest_failed(struct session *s, const char *text)
{
	if (s->recovering) {
		travel_failed(s);
		return;
	}
	if (s->fork_of) {
		travel_born(s, text);
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
	travel_cancel(s, text);
	session_fail_all_cells(s, CELL_KILLED, "no_guest", text, "The server's log says more; `glovebox doctor` checks the machine.");
	session_end(s, "its interpreter could not be started"); /* kept, it would let cells wait for what does not come */
}

/* ---- starting -------------------------------------------------------------------------- */

/* The oldest first: each goes before those that are there. */
static bool put_paths(struct buffer *b, const struct session_package *p)
{
	return !p || (put_paths(b, p->next) && wire_put(b, WIRE_PACKAGES, p->path, strlen(p->path)) == 0);
}

void session_send_path(struct session *s, const struct session_package *p)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	size_t start;
	if (wire_begin(&b, WIRE_SETUP, 0, &start) == 0 && wire_put(&b, WIRE_PACKAGES, p->path, strlen(p->path)) == 0) {
		wire_end(&b, start);
		guest_send(berth_guest(s->berth), &b);
	}
}

void session_send_setup(struct session *s)
{
	struct buffer b = BUFFER_INIT(0);
	size_t start;
	bool ok = wire_begin(&b, WIRE_SETUP, 0, &start) == 0;
	ok = ok && session_network_setup(s, &b); /* first: what was asked for overrides it */
	/* First, so that the caller's own words about it hold. */
	for (const char *const *v = capture_environment; ok && s->display && *v; v++)
		ok = wire_put(&b, WIRE_ENV, *v, strlen(*v)) == 0;
	for (char **v = s->params.env; ok && v && *v; v++)
		ok = wire_put(&b, WIRE_ENV, *v, strlen(*v)) == 0;
	if (ok && s->display)
		ok = wire_put_u64(&b, WIRE_SCREEN, 1) == 0;
	for (char **v = s->params.preload; ok && v && *v; v++)
		ok = wire_put(&b, WIRE_PRELOAD, *v, strlen(*v)) == 0;
	if (ok && s->table->common_path)
		ok = wire_put(&b, WIRE_PACKAGES, s->table->common_path, strlen(s->table->common_path)) == 0;
	ok = ok && put_paths(&b, s->params.packages);
	for (char **v = s->profile.rules; ok && v && *v; v++)
		ok = wire_put(&b, WIRE_POLICY, *v, strlen(*v)) == 0;
	if (ok && s->params.has_seed)
		ok = wire_put_u64(&b, WIRE_SEED, s->params.seed) == 0;
	if (ok && s->params.limits.memory_bytes)
		ok = wire_put_u64(&b, WIRE_MEMORY, s->params.limits.memory_bytes) == 0;
	if (ok && s->params.limits.processes)
		ok = wire_put_u64(&b, WIRE_PROCESSES, s->params.limits.processes + (travel_possible(s) ? LIMIT_COPIES : 0)) == 0;
	if (ok && travel_possible(s))
		ok = wire_put_u64(&b, WIRE_KEEP_FILES, s->params.keep_files_bytes) == 0;
	if (ok && s->wipe)
		ok = wire_put_u64(&b, WIRE_WIPE, 1) == 0;
	s->wipe = false;
	if (ok && s->params.limits.file_bytes)
		ok = wire_put_u64(&b, WIRE_FILE_BYTES, s->params.limits.file_bytes) == 0;
	if (ok && s->params.limits.open_files)
		ok = wire_put_u64(&b, WIRE_OPEN_FILES, s->params.limits.open_files) == 0;
	if (ok && s->params.limits.session_cpu_s > 0) /* the daemon counts them together; this bounds each, come what may */
		ok = wire_put_u64(&b, WIRE_CPU_SECONDS, (uint64_t)s->params.limits.session_cpu_s + 5) == 0;
	if (ok) {
		wire_end(&b, start);
		guest_send(berth_guest(s->berth), &b);
	}
	buffer_finish(&b);
	s->setup_sent = true;
	tools_send(s, true);
}

/* The frame was built when the cell was queued; now it gets its number. */
static void stamp(struct session *s, struct cell *c)
{
	if (s->files_touched)
		wire_put_u64(&c->frame, WIRE_RESCAN, 1);
	wire_end(&c->frame, 0);
	uint32_t serial = s->cells;
	for (int i = 0; i < 4; i++)
		c->frame.data[8 + i] = (char)(serial >> (8 * i) & 0xff);
}

/* What background threads printed since the last cell belongs to this one. */
static void tell_earlier_output(struct session *s)
{
	for (int i = 0; i < 2; i++)
		if (s->output[i].head.len && !s->running->observer.uncapped)
			tell_output(s, (enum stream)i, s->output[i].head.data, s->output[i].head.len);
}

void session_start_next(struct session *s)
{
	struct cell *c = TAILQ_FIRST(&s->queue);
	if (!c || s->running || s->travel || !s->guest_ready || s->check_answer || (s->display && !display_is_ready(s->display)))
		return;
	TAILQ_REMOVE(&s->queue, c, link);
	s->queued--;
	s->table->stats.queued_cells--;
	s->table->stats.running_cells++;
	s->running = c;
	s->cells++;
	c->started = true;
	s->started_ns = s->used_ns = clock_now_ns();
	s->used_wall_ns = clock_wall_ns();
	if (!s->setup_sent)
		session_send_setup(s);
	session_begin_limits(s);
	tools_send(s, false);
	stamp(s, c);
	s->clock = CLOCK_LIMIT;
	s->limit_at_ns = s->started_ns + (uint64_t)(c->timeout_s * 1e9);
	s->paused_at_ns = s->paused_ns = 0;
	arm_clock(s);
	guest_hurry(berth_guest(s->berth));
	if (c->capture)
		capture_begin(c->capture);
	if (c->record)
		recording_start(s, &c->recording, NULL, &c->recording_id);
	travel_send_cell(s);
	start_nudging(s);
	if (!c->abandoned && c->observer.on_started)
		c->observer.on_started(c->userdata, s->cells);
	tell_earlier_output(s);
}

static int build_frame(struct cell *c, const struct cell_request *q)
{
	size_t start;
	int r = wire_begin(&c->frame, WIRE_EXECUTE, 0, &start);
	if (r == 0)
		r = wire_put(&c->frame, WIRE_CODE, q->code, q->code_len);
	if (r == 0 && q->stdin_text)
		r = wire_put(&c->frame, WIRE_STDIN, q->stdin_text, q->stdin_len);
	if (r == 0 && q->variables)
		r = wire_put(&c->frame, WIRE_VARIABLES, q->variables, strlen(q->variables));
	if (r == 0 && q->typed_result)
		r = wire_put_u64(&c->frame, WIRE_TYPED, 1);
	if (r == 0 && q->final)
		r = wire_put_u64(&c->frame, WIRE_FINAL, 1);
	return r == 0 ? buffer_reserve(&c->frame, 32) : r;
}

static int check_request(struct session *s, const struct cell_request *q, struct error *e)
{
	if (s->table->draining || s->ending) {
		error_set(e, -ESHUTDOWN, "the server is about to end and takes no new cells");
		return error_slug(e, "draining");
	}
	if (s->queued >= s->table->config.max_queued_cells) {
		error_set(e, -EBUSY, "%u cells of this session are waiting already", s->queued);
		error_remedy(e, "Wait for an answer before sending more; cells of one session run one after another.");
		return error_slug(e, "queue_full");
	}
	double max = s->table->config.maxima.timeout_s;
	if (max > 0 && q->timeout_s > max) {
		error_set(e, -ERANGE, "timeout_s is %g, this server allows up to %g", q->timeout_s, max);
		error_remedy(e, "Ask for less, or start the server with a larger --max-timeout.");
		return error_slug(e, "limit_too_large");
	}
	return 0;
}

int session_execute(struct session *s, const char *id, const struct cell_request *q, const struct cell_observer *observer,
	void *userdata, struct error *e, struct cell **ret)
{
	int r = check_request(s, q, e);
	if (r < 0)
		return r;
	struct cell *c = calloc(1, sizeof(*c));
	if (!c || build_frame(c, q) < 0) {
		if (c)
			cell_free(c);
		return error_set(e, -ENOMEM, "out of memory");
	}
	c->session = s;
	c->observer = *observer;
	c->userdata = userdata;
	c->timeout_s = q->timeout_s > 0 ? q->timeout_s : s->params.limits.timeout_s;
	r = capture_create(s, c, q, e);
	if (r == 0 && q->record && q->film)
		r = film_cell_create(s, c, q->recording.format, e);
	else if (r == 0 && q->record)
		r = film_check(q->recording.format, e);
	if (r == 0 && q->record && !s->display)
		r = recording_start(s, &q->recording, e, &c->recording_id); /* says why not */
	if (r < 0) {
		cell_free(c);
		return r;
	}
	c->record = q->record;
	c->recording = q->recording;
	c->detach = q->detach;
	c->strict = q->strict;
	c->transaction = !q->no_transaction && !q->final && !s->params.no_transactions;
	if (id) {
		snprintf(c->id, sizeof(c->id), "%.*s", CELL_ID_MAX, id);
	} else {
		memcpy(c->id, "c_", 2);
		text_random_id(c->id + 2, 20);
	}
	TAILQ_INSERT_TAIL(&s->queue, c, link);
	s->queued++;
	s->table->stats.queued_cells++;
	s->used_ns = clock_now_ns();
	*ret = c;
	session_start_next(s);
	return 0;
}

int session_check(struct session *s, const char *code, size_t len, void (*answer)(void *, const char *), void *userdata,
	struct error *e)
{
	struct buffer b = BUFFER_INIT(0);
	size_t start;
	if (!s->guest_ready || s->running || s->check_answer)
		return error_set(e, -EBUSY, "the session is busy");
	if (!s->setup_sent)
		session_send_setup(s);
	int r = wire_begin(&b, WIRE_CHECK, ++s->check_serial, &start);
	if (r == 0)
		r = wire_put(&b, WIRE_CODE, code, len);
	if (r == 0) {
		wire_end(&b, start);
		s->check_answer = answer;
		s->check_userdata = userdata;
		guest_send(berth_guest(s->berth), &b);
	}
	buffer_finish(&b);
	return r < 0 ? error_set_errno(e, r, "asking the guest") : 0;
}
