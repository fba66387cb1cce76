/* Cells that come in: queue, setup of the guest, start. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory_account.h"
#include "base/text.h"
#include "session/idle_latency.h"
#include "session/display/film.h"
#include "session/internal.h"

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
		guest_send(sandbox_guest(s->sandbox), &b);
	}
}

void session_send_paths(struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	size_t start;
	if (s->params.packages && wire_begin(&b, WIRE_SETUP, 0, &start) == 0 && put_paths(&b, s->params.packages)) {
		wire_end(&b, start);
		guest_send(sandbox_guest(s->sandbox), &b);
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
		ok = wire_put_u64(&b, WIRE_PROCESSES, s->params.limits.processes + (history_possible(s) ? LIMIT_COPIES : 0)) == 0;
	if (ok && history_possible(s))
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
		guest_send(sandbox_guest(s->sandbox), &b);
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
			session_tell_output(s, (enum stream)i, s->output[i].head.data, s->output[i].head.len);
}

void session_start_next(struct session *s)
{
	struct cell *c = TAILQ_FIRST(&s->queue);
	if (!c || s->running || operation_active(s) || !s->guest_ready || s->check.answer || (s->display && !display_is_ready(s->display)))
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
	session_arm_clock(s);
	guest_prioritise(sandbox_guest(s->sandbox));
	if (c->capture)
		capture_begin(c->capture);
	if (c->record)
		recording_start(s, &c->recording, NULL, &c->recording_id);
	history_send_cell(s);
	session_keep_waking_guest(s);
	s->holds.state = s->holds.files = true;
	if (s->has_died && !c->abandoned && c->observer.on_died)
		c->observer.on_died(c->userdata, &s->died);
	if (!c->abandoned && c->observer.on_started)
		c->observer.on_started(c->userdata, s->cells);
	tell_earlier_output(s);
}

static int build_frame(const struct session *s, struct cell *c, const struct cell_request *q)
{
	size_t start;
	bool unwatched = s->display && !q->has_screenshot && !q->record && q->on_block == ON_BLOCK_AUTO;
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
	if (r == 0 && q->has_screenshot)
		r = wire_put_u64(&c->frame, WIRE_PAINT, 1);
	if (r == 0 && unwatched)
		r = wire_put_u64(&c->frame, WIRE_UNWATCHED, 1);
	return r == 0 ? buffer_reserve(&c->frame, 32) : r;
}

static int no_memory(struct error *e)
{
	error_set(e, -ENOBUFS, "the server holds %zu MB for its clients (requests, output, answers that were not read), as much as it may",
		hold_total() >> 20);
	error_remedy(e, "Try again in a second; read answers as they come, and ask for less at once (limits.output_bytes).");
	return error_slug(e, "server_memory");
}

static int check_request(struct session *s, const struct cell_request *q, struct error *e)
{
	if (s->table->draining || s->ending) {
		error_set(e, -ESHUTDOWN, "the server is about to end and takes no new cells");
		return error_slug(e, "draining");
	}
	if (hold_is_full())
		return no_memory(e);
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
	c->printed_answer = q->printed_answer;
	c->strict = q->strict;
	c->program = q->final;
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
	idle_latency_touch(s->table->idle_latency); /* the cell is on its way: nobody waits for this */
	return 0;
}
