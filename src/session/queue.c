/* The queue of cells: taking them in, and starting the next one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory_account.h"
#include "base/text.h"
#include "session/display/film.h"
#include "session/idle_latency.h"
#include "session/internal.h"

/* The frame was built when the cell was queued; now it gets its number. */
static void stamp(struct session *s, struct cell *c)
{
	if (s->usage.uploads.touched)
		wire_put_u64(&c->frame, WIRE_RESCAN, 1);
	wire_end(&c->frame, 0);
	uint32_t serial = s->queue.cells;
	for (int i = 0; i < 4; i++)
		c->frame.data[8 + i] = (char)(serial >> (8 * i) & 0xff);
}

/* What background threads printed since the last cell belongs to this one. */
static void tell_earlier_output(struct session *s)
{
	for (int i = 0; i < 2; i++)
		if (s->output.stream[i].head.len && !s->queue.running->observer.uncapped)
			session_tell_output(s, (enum stream)i, s->output.stream[i].head.data,
				s->output.stream[i].head.len);
}

/* Too long to be kept for the case that the cell must be run again. */
static bool is_large(const struct cell *c)
{
	return c->frame.len > REPLAY_BYTES;
}

/* Sends the running cell, after the requests that history needs before it. */
static void send_cell(struct session *s)
{
	struct cell *c = s->queue.running;
	_cleanup_buffer_ struct buffer frames = BUFFER_INIT(0);
	history_before_cell(s, &frames);
	s->usage.uploads.touched = false;

	/* a copy of the frame: the cell may have to be run again */
	if (!is_large(c) && buffer_append(&frames, c->frame.data, c->frame.len) < 0)
		return;
	if (frames.len)
		guest_send(sandbox_guest(s->sandbox), &frames);
}

/*
 * The frame itself, which takes less time than a copy. It is the last use of the frame, of which
 * nothing is left.
 */
static void send_large_cell(struct session *s)
{
	struct cell *c = s->queue.running;
	if (is_large(c))
		guest_send(sandbox_guest(s->sandbox), &c->frame);
}

/*
 * Cells wait for a request that is about to begin, for the answer to a source check, and for the
 * display's socket.
 */
static bool may_start_cell(const struct session *s)
{
	return s->phase == PHASE_IDLE && !s->history.request && !s->check.answer &&
	       (!s->display || display_is_ready(s->display));
}

void queue_remove(struct session *s, struct cell *c)
{
	TAILQ_REMOVE(&s->queue.waiting, c, link);
	s->queue.n_waiting--;
	s->table->stats.queued_cells--;
}

/* Makes the cell the running one. */
static void begin_cell(struct session *s, struct cell *c)
{
	queue_remove(s, c);
	session_set_phase(s, PHASE_RUNNING);
	s->table->stats.running_cells++;
	s->queue.running = c;
	s->queue.cells++;
	c->started = true;
	s->queue.started_ns = s->times.used_ns = clock_now_ns();
	s->times.used_wall_ns = clock_wall_ns();
}

static void tell_started(struct session *s, struct cell *c)
{
	if (s->death.has_report && !c->abandoned && c->observer.on_died)
		c->observer.on_died(c->userdata, &s->death.report);
	if (!c->abandoned && c->observer.on_started)
		c->observer.on_started(c->userdata, s->queue.cells);
	tell_earlier_output(s);
}

void session_start_next(struct session *s)
{
	struct cell *c = TAILQ_FIRST(&s->queue.waiting);
	if (!c || !may_start_cell(s))
		return;

	begin_cell(s, c);
	if (!s->setup.sent)
		session_send_setup(s);
	session_reset_usage(s);
	tools_send(s, false);
	stamp(s, c);

	session_start_limit(s);
	guest_prioritise(sandbox_guest(s->sandbox));
	if (c->capture)
		cell_picture_begin(c->capture);
	if (c->recording.wanted)
		recording_start(s, &c->recording.params, NULL, &c->recording.id);
	send_cell(s);
	watch_cell_started(s);
	send_large_cell(s);
	session_keep_waking_guest(s);

	s->death.holds.state = s->death.holds.files = true;
	tell_started(s, c);
}

static int build_frame(const struct session *s, struct cell *c, const struct cell_request *q)
{
	size_t start;
	bool unwatched = s->display && !q->has_screenshot && !q->record &&
			 q->on_block == ON_BLOCK_AUTO;
	int r = wire_begin(&c->frame, WIRE_EXECUTE, 0, &start);

	if (r == 0)
		r = wire_put(&c->frame, WIRE_CODE, q->code, q->code_len);
	if (r == 0 && q->stdin_text)
		r = wire_put(&c->frame, WIRE_STDIN, q->stdin_text, q->stdin_len);
	for (char *const *a = q->arguments; r == 0 && a && *a; a++)
		r = wire_put(&c->frame, WIRE_ARGUMENT, *a, strlen(*a));
	if (r == 0 && q->variables)
		r = wire_put(&c->frame, WIRE_VARIABLES, q->variables, strlen(q->variables));
	if (r == 0 && q->typed_result)
		r = wire_put_u64(&c->frame, WIRE_TYPED, 1);
	if (r == 0 && q->data_forms)
		r = wire_put_u64(&c->frame, WIRE_DATA_FORMS, 1);
	if (r == 0 && q->final)
		r = wire_put_u64(&c->frame, WIRE_FINAL, 1);
	if (r == 0 && q->has_screenshot)
		r = wire_put_u64(&c->frame, WIRE_PAINT, 1);
	if (r == 0 && unwatched)
		r = wire_put_u64(&c->frame, WIRE_UNWATCHED, 1);
	return r == 0 ? buffer_reserve(&c->frame, 32) : r;
}

static int no_memory(struct error *e)
{
	error_set(e, -ENOBUFS,
		"the server has reached its limit of %zu MB of memory held for clients (requests, output, unread answers)",
		hold_total() >> 20);
	error_remedy(e,
		"Try again in a second; read answers as they arrive, and request less output at once ({output_bytes}).");
	return error_slug(e, "server_memory");
}

static int check_request(struct session *s, const struct cell_request *q, struct error *e)
{
	if (s->table->end.draining || s->phase == PHASE_ENDING) {
		error_set(e, -ESHUTDOWN, "the server is shutting down and accepts no new cells");
		return error_slug(e, "draining");
	}

	if (session_is_paused(s))
		return pause_refuse(s, e);

	if (hold_is_full())
		return no_memory(e);

	if (s->queue.n_waiting >= s->table->config.max_queued_cells) {
		error_set(e, -EBUSY, "%u cells of this session are already waiting",
			s->queue.n_waiting);
		error_remedy(e,
			"Wait for an answer before sending more; cells of one session run one after another.");
		return error_slug(e, "queue_full");
	}

	double max = s->table->config.maxima.timeout_s;
	if (max > 0 && q->timeout_s > max) {
		error_set(e, -ERANGE, "timeout_s is %g, this server allows up to %g", q->timeout_s,
			max);
		error_remedy(e, "Request less, or {start:max-timeout %.15g}.", q->timeout_s);
		return error_slug(e, "limit_too_large");
	}
	return 0;
}

/* What the request says about the cell, apart from its frame and its pictures. */
static void fill_in(struct cell *c, const struct session *s, const struct cell_request *q)
{
	c->dialect = q->dialect ? q->dialect : s->params.dialect ? s->params.dialect : "native";
	c->timeout_s = q->timeout_s > 0 ? q->timeout_s : s->params.limits.timeout_s;
	c->recording.wanted = q->record;
	c->recording.params = q->recording;
	c->options.detach = q->detach;
	c->options.printed_answer = q->printed_answer;
	c->options.program = q->final;
	if (!q->no_transaction && !q->final && !s->params.no_transactions)
		c->transaction = q->strict ? TRANSACTION_EXACT : TRANSACTION_REPLAY;
}

static void name_cell(struct cell *c, const char *id)
{
	if (id) {
		snprintf(c->id, sizeof(c->id), "%.*s", CELL_ID_MAX, id);
		return;
	}
	memcpy(c->id, "c_", 2);
	text_random_id(c->id + 2, 20);
}

/* The picture and the film that the request asks for; fails where the session cannot have them. */
static int prepare_pictures(
	struct session *s, struct cell *c, const struct cell_request *q, struct error *e)
{
	int r = cell_picture_create(s, c, q, e);
	if (r == 0 && q->record && q->film)
		r = film_cell_create(s, c, q->recording.format, e);
	else if (r == 0 && q->record)
		r = film_check(q->recording.format, e);
	if (r == 0 && q->record && !s->display)
		r = recording_start(s, &q->recording, e, &c->recording.id); /* says why not */
	return r;
}

int session_execute(struct session *s, const char *id, const struct cell_request *q,
	const struct cell_observer *observer, void *userdata, struct error *e, struct cell **ret)
{
	int r = check_request(s, q, e);
	if (r < 0)
		return r;

	struct cell *c = calloc(1, sizeof(*c));
	if (!c)
		return error_set(e, -ENOMEM, "out of memory");

	buffer_count(&c->frame);
	if (build_frame(s, c, q) < 0) {
		cell_free(c);
		return no_memory(e);
	}

	c->session = s;
	c->observer = *observer;
	c->userdata = userdata;
	fill_in(c, s, q);
	name_cell(c, id);
	r = prepare_pictures(s, c, q, e);
	if (r < 0) {
		cell_free(c);
		return r;
	}

	TAILQ_INSERT_TAIL(&s->queue.waiting, c, link);
	s->queue.n_waiting++;
	s->table->stats.queued_cells++;
	s->times.used_ns = clock_now_ns();
	*ret = c;
	session_start_next(s);

	/* the cell is on its way: nobody waits for this */
	idle_latency_touch(s->table->idle_latency);
	return 0;
}
