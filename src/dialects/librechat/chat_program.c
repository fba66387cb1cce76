#include "dialects/librechat/chat_program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/provision.h"
#include "api/run_jobs.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/node_id.h"
#include "base/text.h"
#include "dialects/dialects.h"
#include "dialects/librechat/librechat.h"
#include "dialects/trainers/trainers.h"
#include "session/tools/session_tools.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define DEFAULT_TIMEOUT_S 15.0
#define LEAST_TIMEOUT_S 1.0
#define MOST_TIMEOUT_S 300.0
#define PATIENCE_S 60.0

/*
 * Calls that code makes at nearly the same time go into one answer: the answer waits this long for
 * another call.
 */
enum { GATHER_MS = 25, TOKEN_LEN = 32 };

struct chat_program {
	LIST_ENTRY(chat_program) link;
	struct api *api;
	uint64_t owner;
	struct call *call; /* the request that waits; NULL: the client runs tools */
	struct job *job;
	struct cell *cell;
	struct run_request run; /* the cell's part */
	struct chat_tools tools;
	json_t *calls;      /* not told yet: {id, name, input} */
	json_t *told;       /* {id: true} of the calls whose results the next request brings */
	struct buffer last; /* the last answer, when the program ended while its client ran tools */
	char token[TOKEN_LEN + 1], session[CHAT_ID_LEN + 1];
	uv_timer_t timer; /* tells the calls, or ends a program whose client does not come back */
	bool executing, dead;
};

/* ---- life ---------------------------------------------------------------------------------- */

static void free_program(uv_handle_t *timer)
{
	free(timer->data);
}

/* The session ends later, and must not call this program until then. */
static void end_job(struct chat_program *p)
{
	struct session *s = p->job ? job_session(p->job) : NULL;
	if (s)
		session_drop_tools(s, p);
	if (p->job)
		job_end(p->job);
	p->job = NULL;
}

static void destroy(struct chat_program *p)
{
	end_job(p);
	if (p->executing) {
		p->dead = true;
		return;
	}
	if (p->cell)
		cell_abandon(p->cell);
	LIST_REMOVE(p, link);
	provision_finish(&p->run);
	chat_tools_finish(&p->tools);
	json_decref(p->calls);
	json_decref(p->told);
	buffer_finish(&p->last);
	uv_close((uv_handle_t *)&p->timer, free_program);
}

static void on_gone(struct call *c)
{
	struct chat_program *p = c->work;
	c->work = NULL;
	c->ops = NULL;
	p->call = NULL;
	destroy(p);
}

static void attach(struct chat_program *p, struct call *c)
{
	static const struct call_ops ops = { .on_gone = on_gone };
	uv_timer_stop(&p->timer);
	http_drop_body(c->x);
	c->ops = &ops;
	c->work = p;
	p->call = c;
}

/* The call, which the caller answers. */
static struct call *detach(struct chat_program *p)
{
	struct call *c = p->call;
	c->ops = NULL;
	c->work = NULL;
	p->call = NULL;
	return c;
}

static void fail(struct chat_program *p, int status, const char *text)
{
	struct call *c = p->call ? detach(p) : NULL;
	if (c)
		chat_answer_error(c, status, text);
	destroy(p);
}

void chat_programs_drain(struct chat_programs *list)
{
	for (struct chat_program *p = LIST_FIRST(list), *next; p; p = next) {
		next = LIST_NEXT(p, link);
		if (!p->call)
			destroy(p);
	}
}

void chat_programs_finish(struct chat_programs *list)
{
	struct chat_program *p;
	while ((p = LIST_FIRST(list))) {
		p->job = NULL; /* freed with the other jobs */
		destroy(p);
	}
}

/* ---- calls of tools --------------------------------------------------------------------------- */

static void on_absent(uv_timer_t *timer)
{
	destroy(timer->data);
}

static void answer_calls(struct chat_program *p)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct json_writer w;
	size_t i;
	json_t *call;
	_cleanup_free_ char *text = json_dumps(p->calls, JSON_COMPACT);

	if (!text) {
		fail(p, 503, "out of memory");
		return;
	}
	json_array_foreach(p->calls, i, call)
	{
		json_object_set_new(
			p->told, json_string_value(json_object_get(call, "id")), json_true());
	}
	json_array_clear(p->calls);
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "status", "tool_call_required");
	json_field_cstr(&w, "session_id", p->session);
	json_field_cstr(&w, "continuation_token", p->token);
	json_field_raw(&w, "tool_calls", text, strlen(text));
	json_close(&w);
	uv_timer_start(&p->timer, on_absent, LIMIT_CHAT_TOOL_SECONDS * 1000, 0);
	call_respond(detach(p), 200, &w, &b);
}

static void on_gathered(uv_timer_t *timer)
{
	answer_calls(timer->data);
}

static void on_call(void *client, const struct tool_call *call)
{
	struct chat_program *p = client;
	char id[32];
	json_t *input = json_loadb(call->arguments, call->arguments_len, 0, NULL);

	snprintf(id, sizeof(id), "call_%llu", (unsigned long long)call->id);
	json_t *entry = json_pack("{s:s,s:O,s:o}", "id", id, "name",
		json_object_get(p->tools.names, call->tool), "input", input);
	if (json_array_append_new(p->calls, entry) == 0 && p->call)
		uv_timer_start(&p->timer, on_gathered, GATHER_MS, 0);
}

static void on_cancel(void *client, uint64_t id, const char *why)
{
	struct chat_program *p = client;
	char text[32];
	size_t i;
	json_t *call;

	(void)why;
	snprintf(text, sizeof(text), "call_%llu", (unsigned long long)id);
	json_object_del(p->told, text);
	json_array_foreach(p->calls, i, call)
	{
		if (text_eq(json_string_value(json_object_get(call, "id")), text)) {
			json_array_remove(p->calls, i);
			break;
		}
	}
	if (!json_array_size(p->calls) && p->call)
		uv_timer_stop(&p->timer);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void put_outcome(struct chat_program *p, const struct observation *o, struct json_writer *w)
{
	_cleanup_buffer_ struct buffer out = BUFFER_COUNTED(0), err = BUFFER_COUNTED(0);
	bool good = o->status == CELL_OK;
	char code[64];

	script_stdout(o, &out);
	script_stderr(o, &err);
	json_open_object(w);
	json_field_cstr(w, "status", good ? "completed" : "error");
	json_field_cstr(w, "session_id", p->session);
	if (!good && o->error) {
		json_key(w, "error");
		json_string_begin(w);
		json_string_append(w, o->error->type, strlen(o->error->type));
		json_string_append(w, ": ", 2);
		json_string_append(w, o->error->message, o->error->message_len);
		json_string_end(w);
	} else if (!good) {
		snprintf(code, sizeof(code), "the program ended with exit code %d", o->exit_code);
		json_field_cstr(w, "error", code);
	}
	json_field_text(w, "stdout", out.data ? out.data : "", out.len);
	json_field_text(w, "stderr", err.data ? err.data : "", err.len);
	chat_put_files(
		w, p->api, p->owner, p->session, good && p->job ? job_session(p->job) : NULL, o);
	json_close(w);
}

/* Clients that never come back for an outcome must not take the memory of others. */
static void drop_oldest_ended(const struct api *a, uint64_t owner)
{
	struct librechat *home = dialect_state(a, &dialect_librechat);
	struct chat_program *p, *oldest = NULL;
	unsigned n = 0;
	LIST_FOREACH(p, &home->programs, link)
	if (p->owner == owner && p->last.len) {
		oldest = p; /* the newest is the first of the list */
		n++;
	}
	if (n > LIMIT_CHAT_ENDED)
		destroy(oldest);
}

static void on_done(void *userdata, const struct observation *o)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct chat_program *p = userdata;
	struct json_writer w;

	p->cell = NULL;
	json_writer_init(&w, &b);
	put_outcome(p, o, &w);
	if (p->call) {
		call_respond(detach(p), 200, &w, &b);
		destroy(p);
		return;
	}

	/* The next request gets it. */
	end_job(p);
	if (json_writer_end(&w) < 0) {
		destroy(p);
		return;
	}
	p->last = b;
	b = (struct buffer)BUFFER_INIT(0);
	drop_oldest_ended(p->api, p->owner);
}

/* ---- the start --------------------------------------------------------------------------------- */

static void on_open(void *userdata, struct session *s)
{
	static const struct cell_observer observer = { .on_done = on_done };
	static const struct tool_client_ops tool_ops = { on_call, on_cancel };
	struct chat_program *p = userdata;
	struct error e = { 0 };
	struct cell *cell = NULL;
	struct cell_request q;

	int r = session_set_tools(s, p->tools.definitions, &tool_ops, p, &e);
	if (r < 0) {
		fail(p, 400, e.text);
		return;
	}

	execute_cell_request(&p->run.execute, &q);
	q.final = true;
	p->executing = true;
	r = session_execute(s, NULL, &q, &observer, p, &e, &cell);
	p->executing = false;
	provision_finish(&p->run); /* it may be large, and waits for tools need nothing of it */
	if (p->dead)
		destroy(p);
	else if (r < 0)
		fail(p, 503, e.text);
	else
		p->cell = cell;
}

static void on_fail(void *userdata, const struct error *e)
{
	struct chat_program *p = userdata;
	p->job = NULL;
	fail(p, 503, e->text);
}

static int prepare(struct chat_program *p, const json_t *body, bool bash, struct error *e)
{
	const json_t *timeout = json_object_get(body, "timeout"); /* milliseconds */
	double s = json_is_number(timeout) ? json_number_value(timeout) / 1e3 : DEFAULT_TIMEOUT_S;
	size_t bytes = 0;
	int r = chat_tools_make(json_object_get(body, "tools"), bash, &p->tools, e);

	if (r == 0)
		r = chat_fill_run(p->call, body, &p->run, &bytes);
	if (r < 0)
		return r;
	p->run.language = bash ? SCRIPT_BASH : SCRIPT_PYTHON;
	p->run.session.dialect = "librechat";
	p->run.execute.timeout_s = s < LEAST_TIMEOUT_S  ? LEAST_TIMEOUT_S
				   : s > MOST_TIMEOUT_S ? MOST_TIMEOUT_S
							: s;
	r = hold_set(&p->call->held, bytes);
	return r < 0 ? r : chat_tools_prepare(&p->tools, &p->run);
}

static void start(struct call *c, const json_t *body, bool bash)
{
	static const struct job_ops ops = { on_open, on_fail };
	struct error e = { 0 };
	struct chat_program *p = calloc(1, sizeof(*p));

	if (!p) {
		call_no_memory(c);
		return;
	}
	p->api = c->api;
	p->owner = c->owner;
	p->calls = json_array();
	p->told = json_object();
	node_make_id(p->token, TOKEN_LEN);
	node_make_id(p->session, CHAT_ID_LEN);
	uv_timer_init(c->api->timer.loop, &p->timer);
	p->timer.data = p;
	LIST_INSERT_HEAD(&librechat_of(c)->programs, p, link);
	p->call = c;
	int r = prepare(p, body, bash, &e);
	attach(p, c);
	if (r == 0) {
		struct run_request parts = p->run;
		r = job_submit(c->api->jobs, &parts, c->owner, PATIENCE_S, &ops, p, &e, &p->job);
		p->run = parts;
	}

	if (r == -EFBIG)
		fail(p, 413, "the files are larger than 24 MiB together");
	else if (r < 0)
		fail(p, r == -EINVAL ? 400 : 503, e.text[0] ? e.text : "out of memory");
}

/* ---- results ----------------------------------------------------------------------------------- */

static struct chat_program *find(const struct call *c, const char *token)
{
	struct chat_program *p;
	LIST_FOREACH(p, &librechat_of(c)->programs, link)
	if (p->owner == c->owner && text_eq(p->token, token))
		return p;
	return NULL;
}

static void take_result(struct chat_program *p, struct session *s, const json_t *result)
{
	const char *id = json_string_value(json_object_get(result, "call_id")),
		   *why = json_string_value(json_object_get(result, "error_message"));
	json_t *value = json_object_get(result, "result");
	uint64_t number;

	if (!id || !json_object_get(p->told, id) || !text_starts(id, "call_") ||
		text_parse_u64(id + strlen("call_"), 1, UINT64_MAX, &number) < 0)
		return;
	json_object_del(p->told, id);
	if (json_is_true(json_object_get(result, "is_error"))) {
		session_fail_call(
			s, p, number, "RuntimeError", why ? why : "the tool failed", NULL);
		return;
	}
	value = value ? json_incref(value) : json_null();
	session_answer_call(s, p, number, value, NULL);
	json_decref(value);
}

/* Calls without a result do not wait until their time limit. */
static void fail_the_others(struct chat_program *p, struct session *s)
{
	const char *id;
	json_t *unused;
	void *next;
	uint64_t number;

	json_object_foreach_safe(p->told, next, id, unused)
	{
		if (text_parse_u64(id + strlen("call_"), 1, UINT64_MAX, &number) == 0)
			session_fail_call(s, p, number, "RuntimeError",
				"the client gave no result for this call", NULL);
	}
	json_object_clear(p->told);
}

static void resume(struct call *c, const char *token, const json_t *results)
{
	struct chat_program *p = find(c, token);
	struct session *s;

	if (!p) {
		chat_answer_error(c, 404, "there is no program with this continuation_token");
		return;
	}
	if (p->call) {
		chat_answer_error(c, 409, "another request waits for this program");
		return;
	}

	if (p->last.len) {
		call_respond_as(c, 200, "application/json", &p->last);
		destroy(p);
		return;
	}

	attach(p, c);
	if (!p->job || !(s = job_session(p->job))) {
		fail(p, 410, "the session of the program has ended");
		return;
	}
	for (size_t i = 0; i < json_array_size(results); i++)
		take_result(p, s, json_array_get(results, i));
	fail_the_others(p, s);
	if (json_array_size(p->calls))
		uv_timer_start(&p->timer, on_gathered, GATHER_MS, 0);
}

void handle_chat_programmatic(struct call *c)
{
	struct error e = { 0 };
	size_t len;
	_cleanup_json_ json_t *body = script_call_body(c, &len, &e);
	const char *token = json_string_value(json_object_get(body, "continuation_token")),
		   *lang = json_string_value(json_object_get(body, "lang"));
	bool bash = lang && text_eq(lang, "bash");

	if (!body)
		chat_answer_error(c, 400, e.text);
	else if (token)
		resume(c, token, json_object_get(body, "tool_results"));
	else if (!json_is_string(json_object_get(body, "code")))
		chat_answer_error(c, 400, "code or continuation_token is required");
	else if (lang && !bash && !text_eq(lang, "py") && !text_eq(lang, "python"))
		chat_answer_error(c, 400, "lang must be py or bash");
	else
		start(c, body, bash);
}
