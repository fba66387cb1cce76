/*
 * Cells over HTTP: one answer or a stream of events; in a session, or in one made for a single run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/events.h"
#include "api/program_imports.h"
#include "api/provision.h"
#include "api/run_files.h"
#include "api/schema/requests.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "session/contexts/contexts.h"
#include "json/json_stream.h"

/* A cell somebody waits for. Lives until its answer is out or its client left. */
struct wait {
	struct call *call;
	struct cell *cell; /* NULL before it is queued and after it is done */
	bool stream, begun, done;
	bool executing, dead; /* inside session_execute(); to be freed when that returns */
	bool one_shot;
	char session[SESSION_ID_LEN + 1];
	struct outbox out;
	struct events events;
	struct run_request run;      /* of a run whose session is still starting */
	struct run_files_step files; /* of them */
	/* An answer that is encoded while it is sent, and what it is made of. */
	struct json_stream json;
	struct observation_kept *kept; /* NULL: the answer is not one of those, or not made yet */
};

/* One client is served for so long before others have their turn. */
enum { PUMP_NS = 1000 * 1000 };

static void wait_destroy(struct wait *w)
{
	if (w->executing) {
		w->dead = true;
		return;
	}
	json_stream_finish(&w->json);
	observation_release(w->kept);
	events_finish(&w->events);
	outbox_finish(&w->out);
	run_files_step_finish(&w->files);
	fields_finish(&run_fields, &w->run);
	free(w);
}

/* ---- the client's side --------------------------------------------------- */

static int send_piece(void *target, const char *data, size_t len)
{
	return http_stream_write(target, data, len);
}

static void begin_stream(struct wait *w)
{
	if (w->stream && !w->begun)
		http_sse_begin(w->call->x);
	w->begun = true;
}

static void pump_later(struct call *c);

/* Encodes and sends until the client is full, the turn is over, or the answer is. */
static void pump(struct wait *w)
{
	_cleanup_buffer_ struct buffer piece = BUFFER_INIT(0);
	uint64_t began = clock_now_ns();
	do {
		piece.len = 0;
		int more = json_stream_next(&w->json, &piece);
		int r = more < 0 ? more : http_stream_write(w->call->x, piece.data, piece.len);
		if (more < 0)
			call_cut_stream(w->call);
		else if (r < 0)
			return; /* on_gone follows */
		else if (more == 0)
			call_finish_stream(w->call);
		if (more <= 0) {
			wait_destroy(w);
			return;
		}
		if (r > 0)
			return; /* on_drained follows */
	} while (clock_now_ns() - began < PUMP_NS);

	call_later(w->call, pump_later);
}

static void pump_later(struct call *c)
{
	pump(c->work);
}

/* The stream ends when the last event has been handed over. */
static void finish_stream(struct wait *w)
{
	if (!w->done || !outbox_empty(&w->out) || w->call->later)
		return;
	if (w->kept) {
		pump(w);
		return;
	}
	call_finish_stream(w->call);
	wait_destroy(w);
}

static void on_drained(struct call *c)
{
	struct wait *w = c->work;
	outbox_drained(&w->out);
	finish_stream(w);
}

static void on_gone(struct call *c)
{
	struct wait *w = c->work;
	struct session *s;
	if (w->cell)
		cell_abandon(w->cell);
	/* A run's session is nobody's any more; `done` has it on the way out already. */
	if (w->one_shot && !w->done && !session_find(c->api->sessions, w->session, NULL, &s))
		session_end(s, "its client left");
	c->work = NULL;
	c->ops = NULL;
	wait_destroy(w);
}

static const struct call_ops wait_ops = { .on_drained = on_drained, .on_gone = on_gone };

/* ---- the cell's side ----------------------------------------------------- */

static void on_started(void *userdata, unsigned cell)
{
	struct wait *w = userdata;
	begin_stream(w);
	events_started(&w->events, w->session, cell);
}

static void on_died(void *userdata, const struct session_death *d)
{
	struct wait *w = userdata;
	begin_stream(w);
	events_died(&w->events, w->session, d);
}

static void on_output(void *userdata, enum stream stream, const char *data, size_t len)
{
	struct wait *w = userdata;
	events_output(&w->events, stream, data, len);
}

static void on_display(void *userdata, const struct bundle *b)
{
	struct wait *w = userdata;
	events_display(&w->events, b);
}

/*
 * The observation as JSON between two texts. What is large is kept, and encoded while it is sent.
 */
static int write_answer(
	struct wait *w, const struct observation *o, const char *before, const char *after)
{
	struct json_writer json;
	json_stream_init(&w->json);
	int r = buffer_append_str(&w->json.text, before);
	if (r < 0)
		return r;
	json_stream_writer(&w->json, &json);
	answer_put_observation(&json, o);
	r = json_writer_end(&json);
	if (w->stream)
		/* a line of a guest's JSON must not become one of the stream of events */
		json_stream_join_lines(&w->json, strlen(before));
	if (r == 0)
		r = buffer_append_str(&w->json.text, after);
	if (r == 0 && !json_stream_is_plain(&w->json) && !(w->kept = observation_keep(o)))
		r = -ENOMEM;
	return r;
}

static void answer_json(struct wait *w, const struct observation *o)
{
	/* a terminal's next prompt stands on a line of its own */
	int r = write_answer(w, o, "", "\n");
	if (r == 0 && w->kept) {
		http_stream_begin(w->call->x, 200, "application/json", -1);
		pump(w);
		return;
	}
	if (r == 0)
		call_respond_as(w->call, 200, "application/json", &w->json.text);
	else
		call_no_memory(w->call);
	wait_destroy(w);
}

static void answer_events(struct wait *w, const struct observation *o)
{
	begin_stream(w);
	events_flush(&w->events);
	int r = write_answer(w, o, "event: done\ndata: ", "\n\n");
	if (r == 0 && !w->kept)
		r = outbox_send(&w->out, &w->json.text);
	if (r < 0) {
		/* Without its end the stream must not look complete. */
		call_cut_stream(w->call);
		wait_destroy(w);
		return;
	}
	finish_stream(w);
}

/*
 * There was no interpreter for it, and it was not begun: the machine has run out of something, or
 * does not work.
 */
static bool never_ran(const struct observation *o)
{
	return !o->cell && o->error && text_eq(o->error->code, "no_guest");
}

static void on_done(void *userdata, const struct observation *o)
{
	struct wait *w = userdata;
	w->cell = NULL;
	w->done = true;
	if (w->one_shot)
		api_end_later(w->call->api, w->session);
	if (!(w->stream && w->begun) && never_ran(o)) {
		call_no_interpreter(w->call, o->error->message);
		wait_destroy(w);
	} else if (w->stream)
		answer_events(w, o);
	else
		answer_json(w, o);
}

/* Without a stream nobody listens to the pieces. */
static const struct cell_observer stream_observer = { .on_started = on_started,
	.on_output = on_output,
	.on_display = on_display,
	.on_done = on_done,
	.on_died = on_died };
static const struct cell_observer plain_observer = { .on_done = on_done };

/* ---- starting ------------------------------------------------------------ */

static struct wait *wait_create(struct call *c, const char *session)
{
	struct wait *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->call = c;
	w->stream = call_accepts(c, "text/event-stream");
	snprintf(w->session, sizeof(w->session), "%s", session);
	outbox_init(&w->out, send_piece, c->x);
	events_init(&w->events, &w->out, NULL);
	c->ops = &wait_ops;
	c->work = w;
	return w;
}

/* Answers the error and drops the work. */
static void fail(struct wait *w, const struct error *e)
{
	struct call *c = w->call;
	on_gone(c);
	call_error(c, e);
}

static void execute(struct wait *w, struct session *s, const struct execute_request *request,
	char *const *arguments)
{
	struct error e = { 0 };
	struct cell *cell = NULL;
	struct cell_request cell_request;

	execute_cell_request(request, &cell_request);
	cell_request.dialect = "native";
	cell_request.final = cell_request.film = w->one_shot;
	cell_request.arguments = arguments;
	if (w->one_shot && cell_request.on_block == ON_BLOCK_LEAVE)
		cell_request.on_block = ON_BLOCK_CLOSE; /* there is no later cell */
	w->executing = true;
	int r = session_execute(s, http_request_id(w->call->x), &cell_request,
		w->stream ? &stream_observer : &plain_observer, w, &e, &cell);
	w->executing = false;
	if (w->dead) {
		wait_destroy(w);
		return;
	}

	if (r < 0) {
		fail(w, &e);
		return;
	}

	if (w->done)
		return;
	w->cell = cell;
	begin_stream(w);
}

void handle_execute(struct call *c)
{
	struct error e = { 0 };
	struct execute_request request = { 0 };
	struct session *s;
	int r = call_begin(c, &execute_fields, &request, &e, &s);

	if (!r && request.context)
		r = session_context_find(s, request.context, &e, &s);
	http_drop_body(c->x);
	struct wait *w = r < 0 ? NULL : wait_create(c, c->id);
	if (r < 0)
		call_error(c, &e);
	else if (!w)
		call_no_memory(c);
	else
		execute(w, s, &request, NULL);
	fields_finish(&execute_fields, &request);
}

/* ---- one shot ------------------------------------------------------------ */

static void run_now(struct call *c)
{
	struct wait *w = c->work;
	struct error e = { 0 };
	struct session *s;
	int r = call_session(c, &e, &s);

	if (!r)
		r = run_files_put(s, &w->run.files, &w->files, &e);
	if (r != 0) {
		if (r < 0)
			fail(w, &e);
		else
			call_later(c, run_now);
		return;
	}

	/* The request goes out of the wait: on_done may free that before we return. */
	struct run_request run = w->run;
	w->run = (struct run_request){ 0 };
	hold_set(&c->held, 0);
	execute(w, s, &run.execute, run.arguments);
	fields_finish(&run_fields, &run);
}

static int create_for_run(struct call *c, struct run_request *run, struct error *e)
{
	struct session_info info;
	struct session *s;
	int r = api_check_open(c->api, e);

	if (!r)
		r = api_check_quota(c->api, c->owner, e);
	if (r < 0)
		return r;
	run->session.owner = c->owner;
	run->session.standard_imports = run_imports_are_standard(run);
	/*
	 * Nobody else will use it: a picture that is asked for says that there is something to see.
	 */
	run->session.has_display |= run->execute.capture_screenshot ||
				    run->execute.has_screenshot || run->execute.record;
	r = session_create(c->api->sessions, &run->session, e, &s);
	if (r < 0)
		return r;
	run->session = (struct session_params){ 0 };
	session_info(s, &info);
	/* From here on the call is one about this session. */
	snprintf(c->id, sizeof(c->id), "%s", info.id);
	return 0;
}

/* With its packages there. */
static void start_run(struct call *c, struct run_request *run, bool begun)
{
	struct error e = { 0 };
	if (create_for_run(c, run, &e) < 0) {
		provision_finish(run);
		provision_answer_error(c, &e, begun);
		return;
	}

	struct wait *w = wait_create(c, c->id);
	if (!w) {
		api_end_later(c->api, c->id);
		provision_finish(run);
		call_no_memory(c);
		return;
	}

	w->one_shot = true;
	w->begun = begun;
	w->run = *run;
	/* Without files the cell can wait in the session's own queue. */
	if (run->files.n)
		call_when_files(c, run_now);
	else
		run_now(c);
}

/* A run whose files are looked at before anything is made for it. */
struct check {
	struct run_request run;
	struct run_files_step files;
};

static void check_gone(struct call *c)
{
	struct check *k = c->work;
	provision_finish(&k->run);
	free(k);
	c->work = NULL;
	c->ops = NULL;
}

static void check_files(struct call *c)
{
	struct check *k = c->work;
	struct error e = { 0 };
	int r = run_files_check(&k->run.files, &k->files, &e);
	if (r > 0) {
		call_later(c, check_files);
		return;
	}

	struct run_request run = k->run;
	k->run = (struct run_request){ 0 };
	check_gone(c);
	if (r < 0) {
		provision_finish(&run);
		call_error(c, &e);
	} else if (provision_needed(c, &run.session)) {
		provision(c, &run, start_run);
	} else {
		start_run(c, &run, false);
	}
}

/* Takes the request. */
static void begin_check(struct call *c, struct run_request *run)
{
	static const struct call_ops ops = { .on_gone = check_gone };
	struct check *k = calloc(1, sizeof(*k));
	if (!k) {
		provision_finish(run);
		call_no_memory(c);
		return;
	}
	k->run = *run;
	c->work = k;
	c->ops = &ops;
	check_files(c);
}

void handle_run(struct call *c)
{
	struct error e = { 0 };
	struct run_request run = { 0 };
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = api_check_open(c->api, &e);

	if (!r)
		r = fields_decode_text(&run_fields, body, len, &run, &e);
	http_drop_body(c->x);
	if (!r)
		r = script_prepare(&run, &e);
	if (!r)
		r = api_check_quota(c->api, c->owner, &e);
	if (r < 0) {
		provision_finish(&run);
		call_error(c, &e);
	} else if (hold_set(&c->held, len) < 0) {
		provision_finish(&run);
		call_no_memory(c);
	} else {
		begin_check(c, &run);
	}
}
