/* The end of a cell: its observation, and the errors that the daemon puts into it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "session/display/film.h"
#include "session/internal.h"

const double stats_bounds_s[STATS_BUCKETS - 1] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
	0.1, 0.5, 1, 5, 10, 60 };

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
	static const char *const names[] = { "ok", "error", "timeout", "interrupted",
		"out_of_memory", "killed", "refused", "running" };
	return names[s];
}

bool cell_set_stop(struct cell *c, enum cell_stop why)
{
	bool limit_reached = cell_stop_is_limit(c->stop);
	if (c->stop >= why || (limit_reached && why != STOP_TIMEOUT))
		return false;

	c->stop = why;
	return true;
}

void cell_free(struct cell *c)
{
	cell_picture_destroy(c->capture);
	film_cell_destroy(c->recording.film);
	buffer_finish(&c->frame);
	free(c);
}

/* An error of the daemon's own making, in place of or over what the guest said. */
void session_override_error(
	struct session *s, const char *type, const char *code, const char *remedy, const char *text)
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

/*
 * A death before the cell counts as one of the cell's own: whoever looks at the flags alone must
 * know that variables are not what they were.
 */
static void add_death(struct session *s, struct observation *o)
{
	o->died = &s->death.report;
	o->state_lost |= s->death.report.state_lost;
	o->files_lost |= s->death.report.files_lost;
	if (!s->death.report.state_lost && !o->rolled_back) {
		o->rolled_back = !o->state_lost;
		o->files_rolled_back = s->death.report.files_rolled_back;
		o->rolled_back_to = s->death.report.cell;
	}

	s->death.has_report = false;
}

/* What the outcome has of the cell. */
static struct observation observe(const struct session *s, struct cell *c)
{
	const struct outcome *o = &s->outcome;
	return (struct observation){ .id = c->id,
		.session = s->id,
		.cell = c->started ? s->queue.cells : 0,
		.result = o->has_result ? &o->result : NULL,
		.displays = o->displays,
		.n_displays = o->n_displays,
		.displays_left_out = o->displays_left_out,
		.error = o->has_error ? &o->error : NULL,
		.answer = o->has_answer ? &o->answer : NULL,
		.files = o->files,
		.n_files = o->n_files,
		.files_cut = o->files_cut,
		.wall_ms = c->started ? (double)(clock_now_ns() - s->queue.started_ns) / 1e6 : 0,
		.cpu_ms = o->cpu_ms,
		.peak_memory_bytes = o->peak_memory_bytes,
		.source = c };
}

/* What became of the session's variables and files. */
static void add_state(
	struct session *s, const struct cell *c, enum state_after after, struct observation *o)
{
	o->state_lost = after == STATE_LOST;
	o->rolled_back = after == STATE_BEFORE;
	if (after == STATE_BEFORE) {
		o->files_rolled_back = s->params.keep_files_bytes &&
				       !*sandbox_files_not_restored(s->sandbox);
		o->rolled_back_to = s->history.latest ? s->history.latest->cell : 0;
	}

	if (after == STATE_LOST)
		o->files_lost = s->death.last.jail;

	if (s->death.has_report && c->started && !c->abandoned)
		add_death(s, o);
}

/* An incomplete character at the end of the output is reported as it is. */
static void tell_partial_output(struct session *s, struct cell *c)
{
	for (int i = 0; i < 2; i++) {
		size_t n = s->output.partial_len[i];
		s->output.partial_len[i] = 0;
		if (n && !c->abandoned && c->observer.on_output)
			c->observer.on_output(c->userdata, (enum stream)i, s->output.partial[i], n);
	}
}

void session_report_cell(struct session *s, struct cell *c, enum cell_status status, int exit_code,
	enum state_after after)
{
	struct sessions *t = s->table;
	_cleanup_free_ char *evicted = c->abandoned ? NULL : TAKE_PTR(s->history.evicted);
	struct observation obs = observe(s, c);

	obs.status = status;
	obs.exit_code = exit_code;
	obs.evicted = evicted;
	obs.replayed = c->abandoned ? (struct replayed){ 0 } : replay_tell(s);
	obs.packages = s->setup.packages_changed ? s->params.packages_report : NULL;
	s->setup.packages_changed = false;
	add_state(s, c, after, &obs);

	if (c->capture)
		cell_picture_report(c->capture, &obs);
	obs.recording = c->recording.id;
	if (c->recording.film)
		film_cell_report(c->recording.film, &obs);
	output_view(&s->output.stream[STREAM_STDOUT], &obs.out);
	output_view(&s->output.stream[STREAM_STDERR], &obs.err);
	tell_partial_output(s, c);

	session_count_picture(s, obs.screenshot);
	watch_cell_done(s, c, &obs);
	uint64_t before = clock_now_ns();
	if (!c->abandoned && c->observer.on_done)
		c->observer.on_done(c->userdata, &obs);
	step_add(&t->stats.steps, STEP_ENCODE, clock_now_ns() - before);
}

static void count_time(struct session *s)
{
	struct sessions *t = s->table;
	uint64_t took = clock_now_ns() - s->queue.started_ns;
	stats_observe(&t->stats.profiles[s->stats_slot].cell_seconds, (double)took / 1e9);
	if (!s->outcome.done)
		return;

	step_add_all(&t->stats.steps, &s->outcome.steps);
	step_add(&t->stats.steps, STEP_CELL,
		step_rest(&s->outcome.steps, STEP_COMPILE, STEP_REPORT, took));
}

void session_close_cell(
	struct session *s, enum cell_status status, int exit_code, enum state_after after)
{
	struct cell *c = s->queue.running;
	session_stop_clock(s);
	tools_end_cell(s);
	if (c->capture)
		cell_picture_abort(c->capture);
	if (c->recording.id)
		recording_stop(s, c->recording.id, "cell", NULL);

	session_count_cell(s, c, status);
	if (c->options.printed_answer && status == CELL_OK && !s->outcome.has_answer)
		session_take_printed_answer(s);
	s->table->stats.running_cells--;
	count_time(s);
	s->times.used_ns = clock_now_ns();
	s->times.used_wall_ns = clock_wall_ns();
	session_report_cell(s, c, status, exit_code, after);

	s->queue.running = NULL;
	if (s->phase == PHASE_RUNNING)
		session_set_phase(s, PHASE_IDLE);
	outcome_finish(&s->outcome);
	output_finish(&s->output.stream[0]);
	output_finish(&s->output.stream[1]);
	cell_free(c);
	session_start_next(s);
}

void session_end_cell(struct session *s, enum cell_status status, int exit_code)
{
	struct cell *c = s->queue.running;
	if (c->recording.film &&
		film_cell_finish(c->recording.film, c->recording.id, status, exit_code))
		session_stop_clock(s); /* the encoding of a recording has its own time limit */
	else
		session_close_cell(s, status, exit_code, STATE_KEPT);
}

void session_tell_timeout(struct session *s, bool killed)
{
	char text[160];
	snprintf(text, sizeof(text), "the cell ran longer than its limit of %g s and was %s",
		s->queue.running->timeout_s,
		killed ? "killed, because it did not stop when interrupted" : "interrupted");
	session_override_error(s, "TimeoutError", "cell_timeout",
		"Make the code faster or split it into cells, or allow more time with {timeout_s}.",
		text);
}

/* A limit other than the time stopped it. */
enum cell_status session_tell_stop(struct session *s, bool killed)
{
	struct cell_error said;
	char text[160];
	session_say_stop(s, killed, text, sizeof(text), &said);
	session_override_error(s, said.type, said.code, said.remedy, text);
	return s->queue.running->stop == STOP_CPU ? CELL_TIMEOUT
	       : killed                           ? CELL_KILLED
						  : CELL_ERROR;
}

void session_fail_all_cells(struct session *s, enum cell_status status, const char *code,
	const char *text, const char *remedy)
{
	if (s->queue.running) {
		session_override_error(s, "SessionEnded", code, remedy, text);
		session_close_cell(s, status, 137, STATE_LOST);
	}

	while (!TAILQ_EMPTY(&s->queue.waiting)) {
		struct cell *c = TAILQ_FIRST(&s->queue.waiting);
		queue_remove(s, c);
		session_count_cell(s, c, status);
		session_override_error(s, "SessionEnded", code, remedy, text);
		session_report_cell(s, c, status, 137, STATE_LOST);
		outcome_finish(&s->outcome);
		cell_free(c);
	}
}
