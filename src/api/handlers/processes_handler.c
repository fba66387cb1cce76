/* Processes over HTTP: start, list, look at, write to, signal, resize, delete. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers/process_routes.h"
#include "api/handlers/process_stream.h"
#include "api/process_answers.h"
#include "api/schema/requests_processes.h"
#include "base/text.h"
#include "json/json_write.h"

static int find_process(const struct call *c, struct error *e, struct session_process **ret)
{
	struct session *s;
	uint64_t id = 0;
	int r = call_session(c, e, &s);
	if (r < 0)
		return r;
	if (text_parse_u64(c->path, 1, UINT32_MAX, &id) < 0)
		id = 0;
	return session_process_find(s, (unsigned)id, e, ret);
}

/* ---- starting -------------------------------------------------------------------------------- */

static int check_body(const struct process_body *q, struct error *e)
{
	bool argv = q->argv && q->argv[0] && q->argv[0][0];
	if ((q->command.data != NULL) != argv)
		return 0;
	error_set(e, -EINVAL, "$.cmd: give either cmd, a command for the shell, or argv");
	error_remedy(e, "{\"cmd\": \"ls -l\"} or {\"argv\": [\"ls\", \"-l\"]}.");
	return error_slug(e, argv ? "invalid_field" : "missing_field");
}

void process_request_of(const struct process_body *q, struct process_request *ret)
{
	enum { ROWS = 24, COLUMNS = 80 };
	*ret = (struct process_request){ .command = q->command.data,
		.argv = q->argv,
		.env = q->env,
		.cwd = q->cwd,
		.tag = q->tag,
		.input = q->input.data,
		.input_len = q->input.len,
		.keep_input = q->keep_input,
		.timeout_s = q->timeout_s };
	if (q->has_terminal) {
		ret->rows = q->terminal.rows ? (unsigned)q->terminal.rows : ROWS;
		ret->columns = q->terminal.columns ? (unsigned)q->terminal.columns : COLUMNS;
	}
}

static void start_now(struct call *c)
{
	struct process_body *q = c->work;
	process_stream_start(c, q);
	fields_finish(&process_fields, q);
	free(q);
}

static void on_gone_early(struct call *c)
{
	struct process_body *q = c->work;
	fields_finish(&process_fields, q);
	free(q);
	c->work = NULL;
	c->ops = NULL;
}

static const struct call_ops waiting_ops = { .on_gone = on_gone_early };

void handle_process_start(struct call *c)
{
	struct error e = { 0 };
	struct process_body *q = calloc(1, sizeof(*q));
	size_t len;
	const char *body = http_body(c->x, &len);

	if (!q) {
		call_no_memory(c);
		return;
	}

	int r = api_check_open(c->api, &e);
	if (!r)
		r = fields_decode_text(&process_fields, body, len, q, &e);
	if (!r)
		r = check_body(q, &e);
	http_drop_body(c->x);
	if (r < 0) {
		fields_finish(&process_fields, q);
		free(q);
		call_error(c, &e);
		return;
	}

	c->work = q;
	c->ops = &waiting_ops;
	call_when_files(c, start_now); /* its jail is there then */
}

/* ---- looking ------------------------------------------------------------------------ */

void handle_process_list(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	struct json_writer w;
	struct session *s;

	if (call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "processes");
	json_open_array(&w);
	for (struct session_process *p = session_process_next(s, NULL); p;
		p = session_process_next(s, p))
		answer_put_process(&w, p, false);
	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static void answer_process(struct call *c, struct session_process *p, bool output)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	answer_put_process(&w, p, output);
	call_respond(c, 200, &w, &b);
}

void handle_process_get(struct call *c)
{
	struct error e = { 0 };
	struct session_process *p;
	if (find_process(c, &e, &p) < 0)
		call_error(c, &e);
	else
		answer_process(c, p, true);
}

/* ---- using -------------------------------------------------------------------------- */

static int write_input(struct session_process *p, const struct process_input *q, struct error *e)
{
	_cleanup_buffer_ struct buffer bytes = BUFFER_INIT(0);
	int r = 0;
	if (q->base64 && text_base64_decode(&bytes, q->base64, strlen(q->base64)) < 0) {
		error_set(e, -EINVAL, "$.base64: must be standard base64 with padding");
		return error_slug(e, "invalid_field");
	}
	if (q->text.len)
		r = session_process_write(p, q->text.data, q->text.len, e);
	if (r == 0 && bytes.len)
		r = session_process_write(p, bytes.data, bytes.len, e);
	if (r == 0 && q->close)
		session_process_close_input(p);
	return r;
}

/* What the three of them share: a body, a process, an answer without a body. */
static void use(struct call *c, const struct fields *f, void *body,
	int (*apply)(struct session_process *p, const void *body, struct error *e))
{
	struct error e = { 0 };
	struct session_process *p;
	size_t len;
	const char *text = http_body(c->x, &len);
	int r = find_process(c, &e, &p);

	if (r == 0)
		r = fields_decode_text(f, text, len, body, &e);
	if (r == 0)
		r = apply(p, body, &e);
	fields_finish(f, body);
	if (r < 0)
		call_error(c, &e);
	else
		call_respond_as(c, 204, NULL, NULL);
}

static int apply_input(struct session_process *p, const void *body, struct error *e)
{
	return write_input(p, body, e);
}

void handle_process_stdin(struct call *c)
{
	struct process_input q = { 0 };
	use(c, &process_input_fields, &q, apply_input);
}

static int apply_signal(struct session_process *p, const void *body, struct error *e)
{
	const struct process_signal_body *q = body;
	int sig = process_signal_number(q->name ? q->name : "TERM");
	if (sig > 0)
		return session_process_signal(p, sig, e);
	error_set(e, -EINVAL, "$.signal: unknown signal %.16s", q->name);
	error_remedy(
		e, "Use one of HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP, TSTP, WINCH.");
	return error_slug(e, "invalid_field");
}

void handle_process_signal(struct call *c)
{
	struct process_signal_body q = { 0 };
	use(c, &process_signal_fields, &q, apply_signal);
}

static int apply_resize(struct session_process *p, const void *body, struct error *e)
{
	const struct terminal_size *q = body;
	return session_process_resize(
		p, q->rows ? (unsigned)q->rows : 24, q->columns ? (unsigned)q->columns : 80, e);
}

void handle_process_resize(struct call *c)
{
	struct terminal_size q = { 0 };
	use(c, &process_resize_fields, &q, apply_resize);
}

void handle_process_delete(struct call *c)
{
	struct error e = { 0 };
	struct session_process *p;
	if (find_process(c, &e, &p) < 0) {
		call_error(c, &e);
		return;
	}
	session_process_delete(p);
	call_respond_as(c, 204, NULL, NULL);
}
