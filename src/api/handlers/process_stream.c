#include "api/handlers/process_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers/process_routes.h"
#include "api/process_answers.h"
#include "api/schema/requests_processes.h"
#include "base/text.h"
#include "json/json_write.h"

/* A client of one process. Lives until its answer is out or it left. */
struct follower {
	struct call *call;
	struct process_events events;
	bool stream, begun, background;
	bool owns; /* the process ends when the client leaves */
	bool answering;
};

static void destroy(struct follower *f)
{
	f->call->work = NULL;
	f->call->ops = NULL;
	process_events_finish(&f->events);
	free(f);
}

static void on_gone(struct call *c)
{
	struct follower *f = c->work;
	struct session_process *p = f->events.reader.process;
	bool owns = f->owns;
	destroy(f);
	if (owns && p)
		session_process_delete(p);
}

/* ---- one answer --------------------------------------------------------------------- */

static void answer_failure(struct call *c, const struct process_info *i)
{
	struct error e = { 0 };
	bool missing = i->err == -ENOENT || i->err == -ENOTDIR;
	error_set(&e, -EINVAL, "the process could not be started: %s", i->why);
	error_remedy(&e,
		missing ? "Check the name of the program and the working directory."
			: "GET …/processes lists the running processes; also check the session's limits.");
	error_slug(&e, "cannot_start");
	call_error(c, &e);
}

static void answer(struct follower *f, const struct process_info *i)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct call *c = f->call;
	struct json_writer w;
	int status = f->background ? 201 : 200;
	if (i->state == PROCESS_FAILED) {
		destroy(f);
		answer_failure(c, i);
		return;
	}
	json_writer_init(&w, &b);
	answer_put_process(&w, f->events.reader.process, !f->background);
	destroy(f);
	call_respond(c, status, &w, &b);
}

/* ---- events ------------------------------------------------------------------------- */

static void pump(struct follower *f)
{
	struct call *c = f->call;
	if (!process_events_pump(&f->events))
		return;
	destroy(f);
	call_finish_stream(c);
}

static void pump_later(struct call *c)
{
	struct follower *f = c->work;
	if (f)
		pump(f);
}

static void on_news(struct process_reader *r)
{
	struct follower *f = r->userdata;
	struct process_info i;

	session_process_info(r->process, &i);
	bool ended = i.state == PROCESS_EXITED || i.state == PROCESS_FAILED;
	if (f->stream) {
		/* a process that could not be started is an answer of its own kind */
		if (!f->begun && i.state == PROCESS_FAILED) {
			answer(f, &i);
			return;
		}
		if (!f->begun && i.state != PROCESS_STARTING) {
			f->begun = true;
			http_sse_begin(f->call->x);
		}
		if (f->begun)
			pump(f);
		return;
	}

	/* Nobody reads the pieces. */
	r->position = i.output_bytes;
	if (ended || (f->background && i.state == PROCESS_RUNNING))
		answer(f, &i);
}

static void on_process_gone(struct process_reader *r)
{
	struct follower *f = r->userdata;
	struct call *c = f->call;
	bool begun = f->begun;
	destroy(f);
	if (begun)
		call_cut_stream(c);
	else
		call_problem(c, 410, "process_gone",
			"the process was deleted, or its session has ended", NULL);
}

static void on_drained(struct call *c)
{
	struct follower *f = c->work;
	f->events.full = false;
	pump(f);
}

static const struct call_ops follower_ops = { .on_gone = on_gone, .on_drained = on_drained };

/* ---- starting ----------------------------------------------------------------------- */

static struct follower *follow(struct call *c)
{
	struct follower *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->call = c;
	f->events.x = c->x;
	f->events.reader.on_news = on_news;
	f->events.reader.on_gone = on_process_gone;
	f->events.reader.userdata = f;
	c->work = f;
	c->ops = &follower_ops;
	return f;
}

void process_stream_start(struct call *c, const struct process_body *q)
{
	struct error e = { 0 };
	struct process_request request;
	struct session_process *p;
	struct session *s;

	c->ops = NULL;
	int r = call_session(c, &e, &s);
	struct follower *f = r < 0 ? NULL : follow(c);
	if (r == 0 && !f) {
		call_no_memory(c);
		return;
	}

	if (r == 0) {
		f->background = q->background;
		f->owns = !q->background;
		f->stream = !q->background && call_accepts(c, "text/event-stream");
		f->events.base64 = q->encoding && text_eq(q->encoding, "base64");
		process_request_of(q, &request);
		r = session_process_start(s, &request, &f->events.reader, &e, &p);
	}

	if (r == 0)
		return;
	if (f)
		destroy(f);
	call_error(c, &e);
}

static int begin_following(struct call *c, struct follower *f, struct error *e)
{
	struct process_stream_query q = { 0 };
	struct session_process *p;
	struct session *s;
	uint64_t id = 0;
	const char *last = http_header(c->x, "Last-Event-ID");
	int r = fields_decode_query(&process_stream_query_fields, http_query(c->x), &q, e);

	if (r == 0)
		r = call_session(c, e, &s);
	if (r == 0 && text_parse_u64(c->path, 1, UINT32_MAX, &id) < 0)
		id = 0;
	if (r == 0)
		r = session_process_find(s, (unsigned)id, e, &p);
	if (r == 0) {
		f->stream = true;
		f->events.base64 = q.encoding && text_eq(q.encoding, "base64");
		f->events.reader.position = q.after;
		if (last && text_parse_u64(last, 0, UINT64_MAX, &f->events.reader.position) < 0)
			f->events.reader.position = q.after;
		process_reader_attach(&f->events.reader, p);
	}

	fields_finish(&process_stream_query_fields, &q);
	return r;
}

void handle_process_stream(struct call *c)
{
	struct error e = { 0 };
	struct follower *f = follow(c);

	if (!f) {
		call_no_memory(c);
		return;
	}

	if (begin_following(c, f, &e) < 0) {
		destroy(f);
		call_error(c, &e);
		return;
	}

	f->begun = true;
	http_sse_begin(c->x);
	call_later(c, pump_later);
}
