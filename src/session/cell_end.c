/* What comes of a cell: output, results, its end, cells left in a main loop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "session/display/film.h"
#include "session/internal.h"

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

void cell_free(struct cell *c)
{
	capture_destroy(c->capture);
	film_cell_destroy(c->film);
	buffer_finish(&c->frame);
	free(c);
}

/* ---- output ------------------------------------------------------------------- */

/* Tells the listener whole characters only; up to three bytes wait for what follows. */
void session_tell_output(struct session *s, enum stream stream, const char *data, size_t len)
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
	uint64_t *total = stream == STREAM_STDOUT ? &s->table->stats.stdout_bytes : &s->table->stats.stderr_bytes;
	*total += len;
	output_log_add(&s->spool, s->cells, stream, clock_wall_ns(), data, len);
	session_count_output(s, len);
	bool uncapped = s->running && s->running->observer.uncapped;
	size_t in_head = uncapped ? len : output_add(&s->output[stream], data, len);
	if (in_head < len)
		guest_rest(sandbox_guest(s->sandbox)); /* beyond the cap: no hurry, and others need the CPUs */
	session_tell_output(s, stream, data, in_head);
}

/* ---- the end of a cell ------------------------------------------------------------ */

/* An error of the daemon's own making, in place of or over what the guest said. */
void session_override_error(struct session *s, const char *type, const char *code, const char *remedy, const char *text)
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

/* A death before the cell counts as one of the cell's own: whoever looks at the flags alone must know that variables are not what they were. */
static void add_death(struct session *s, struct observation *o)
{
	o->died = &s->died;
	o->state_lost |= s->died.state_lost;
	o->files_lost |= s->died.files_lost;
	if (!s->died.state_lost && !o->rolled_back) {
		o->rolled_back = !o->state_lost;
		o->files_rolled_back = s->died.files_rolled_back;
		o->rolled_back_to = s->died.cell;
	}
	s->has_died = false;
}

void session_report_cell(struct session *s, struct cell *c, enum cell_status status, int exit_code, enum state_after after)
{
	struct outcome *o = &s->outcome;
	_cleanup_free_ char *evicted = c->abandoned ? NULL : TAKE_PTR(s->evicted);
	struct observation obs = { .id = c->id,
		.session = s->id,
		.cell = c->started ? s->cells : 0,
		.status = status,
		.exit_code = exit_code,
		.state_lost = after == STATE_LOST,
		.rolled_back = after == STATE_BEFORE,
		.packages = s->packages_news ? s->params.packages_report : NULL,
		.evicted = evicted,
		.replayed = c->abandoned ? (struct replayed){ 0 } : replay_tell(s),
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
		.peak_memory_bytes = o->peak_memory_bytes,
		.source = c };
	if (after == STATE_BEFORE) {
		obs.files_rolled_back = s->params.keep_files_bytes && !*sandbox_files_not_restored(s->sandbox);
		obs.rolled_back_to = s->latest ? s->latest->cell : 0;
	}
	if (after == STATE_LOST)
		obs.files_lost = s->death.jail;
	if (s->has_died && c->started && !c->abandoned)
		add_death(s, &obs);
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
	session_count_picture(s, obs.screenshot);
	uint64_t before = clock_now_ns();
	if (!c->abandoned && c->observer.on_done)
		c->observer.on_done(c->userdata, &obs);
	step_add(&t->stats.steps, STEP_ENCODE, clock_now_ns() - before);
}

/* The running cell is over. The next one starts in this call when the guest can take it. */
void session_close_cell(struct session *s, enum cell_status status, int exit_code, enum state_after after)
{
	struct cell *c = s->running;
	struct sessions *t = s->table;
	session_stop_clock(s);
	tools_end_cell(s);
	if (c->capture)
		capture_abort(c->capture);
	if (c->recording_id)
		recording_stop(s, c->recording_id, "cell", NULL);
	session_count_cell(s, status);
	if (c->printed_answer && status == CELL_OK && !s->outcome.has_answer)
		session_take_printed_answer(s);
	t->stats.running_cells--;
	uint64_t took = clock_now_ns() - s->started_ns;
	stats_observe(&t->stats.cell_seconds, (double)took / 1e9);
	if (s->outcome.done) {
		step_add_all(&t->stats.steps, &s->outcome.steps);
		step_add(&t->stats.steps, STEP_CELL, step_rest(&s->outcome.steps, STEP_COMPILE, STEP_REPORT, took));
	}
	s->used_ns = clock_now_ns();
	s->used_wall_ns = clock_wall_ns();
	session_report_cell(s, c, status, exit_code, after);
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
		if (f->type == WIRE_WAITS)
			session_tell_continue(s, f->serial); /* nobody wants its picture any more; other words of this kind do no harm */
		if (f->type == WIRE_DONE) {
			s->left[i] = s->left[--s->n_left];
			session_start_next(s);
		}
		return true;
	}
	return false;
}

/* A signal makes Python look for the cell; an event that means nothing makes a main loop let Python run. */
void session_wake_guest(struct session *s)
{
	guest_signal(sandbox_guest(s->sandbox), WIRE_CELL_SIGNAL);
	if (s->display && display_is_up(s->display))
		display_ask(s->display, DISPLAY_ASK_POKE, NULL, 0, true, 1, NULL, NULL, NULL);
}

static void on_wake_guest(uv_timer_t *t)
{
	struct session *s = t->data;
	if (!s->n_left || !s->running || !s->guest_ready) {
		uv_timer_stop(t);
		return;
	}
	session_wake_guest(s);
}

void session_keep_waking_guest(struct session *s)
{
	if (!s->n_left)
		return;
	session_wake_guest(s);
	uv_timer_start(&s->wake_timer, on_wake_guest, NUDGE_FIRST_MS, NUDGE_MS);
}

void session_leave_cell(struct session *s)
{
	guest_drain(sandbox_guest(s->sandbox));
	if (!s->running || s->outcome.done || s->n_left == LIMIT_LEFT_CELLS)
		return;
	s->left[s->n_left++] = s->cells;
	session_close_cell(s, CELL_RUNNING, 0, STATE_KEPT);
}

void session_end_cell(struct session *s, enum cell_status status, int exit_code)
{
	struct cell *c = s->running;
	if (c->film && film_cell_finish(c->film, c->recording_id, status, exit_code))
		session_stop_clock(s); /* making a film has a limit of its own */
	else
		session_close_cell(s, status, exit_code, STATE_KEPT);
}

void session_tell_timeout(struct session *s, bool killed)
{
	char text[160];
	snprintf(text, sizeof(text), "the cell ran longer than its limit of %g s and was %s", s->running->timeout_s,
		killed ? "killed, because it did not stop when interrupted" : "interrupted");
	session_override_error(s, "TimeoutError", "cell_timeout",
		"Make the code faster or split it into cells, or ask for more time with timeout_s.", text);
}

/* A limit other than the time stopped it. */
enum cell_status session_tell_stop(struct session *s, bool killed)
{
	struct cell_error said;
	char text[160];
	session_say_stop(s, killed, text, sizeof(text), &said);
	session_override_error(s, said.type, said.code, said.remedy, text);
	return s->running->stop == STOP_CPU ? CELL_TIMEOUT : killed ? CELL_KILLED : CELL_ERROR;
}

/* The guest said DONE: all it printed is in the pipes. */
static void finish_cell(struct session *s)
{
	struct outcome *o = &s->outcome;
	struct cell *c = s->running;
	enum cell_status status = CELL_OK;
	int exit_code = o->exit_code;
	guest_drain(sandbox_guest(s->sandbox));
	if (s->running != c)
		return;
	history_cell_done(s, !c->timed_out && !c->interrupted && o->kind != WIRE_OUTCOME_INTERRUPT);
	if (c->timed_out) {
		status = CELL_TIMEOUT;
		exit_code = 124;
		session_tell_timeout(s, false);
	} else if (c->stop) {
		status = session_tell_stop(s, false);
		exit_code = status == CELL_TIMEOUT ? 124 : 1;
	} else if (o->kind == WIRE_OUTCOME_INTERRUPT) {
		status = CELL_INTERRUPTED;
		if (c->interrupted)
			o->error.code = "interrupted";
	} else if (o->kind == WIRE_OUTCOME_MEMORY) {
		status = CELL_OUT_OF_MEMORY;
		session_explain_memory(s);
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
	if (source_check_frame(s, f))
		return;
	if (history_frame(s, f))
		return;
	if (session_frame_of_left(s, f))
		return;
	if (f->type == WIRE_STARTED && s->running && s->n_left && f->serial == s->cells) {
		uv_timer_stop(&s->wake_timer);
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
		guest_signal(sandbox_guest(s->sandbox), SIGKILL);
		return;
	}
	if (display && !s->running->abandoned && s->running->observer.on_display)
		s->running->observer.on_display(s->running->userdata, display);
	if (s->outcome.done)
		finish_cell(s);
}
