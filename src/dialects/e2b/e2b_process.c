/* process.Process: commands and terminals of a sandbox. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/e2b/e2b.h"
#include "json/json_write.h"

#define STREAM_TYPE "application/connect+json"

enum { CHUNK_BYTES = 32 * 1024, ARGUMENTS_MAX = 256 };

/* A client that follows a process. */
struct follower {
	struct call *call;
	struct process_reader reader;
	bool started, full, terminal;
};

static void destroy(struct follower *f)
{
	f->call->work = NULL;
	f->call->ops = NULL;
	process_reader_detach(&f->reader);
	free(f);
}

/* ---- frames ------------------------------------------------------------------------- */

static void send_frame(struct follower *f, unsigned char flags, const struct json_writer *w,
	const struct buffer *json)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	if (json_writer_end(w) == 0 && e2b_frame(&b, flags, json->data, json->len) == 0)
		f->full = http_stream_write(f->call->x, b.data, b.len) != 0;
}

static void send_start(struct follower *f, unsigned pid)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "event");
	json_open_object(&w);
	json_key(&w, "start");
	json_open_object(&w);
	json_field_uint(&w, "pid", pid);
	json_close(&w);
	json_close(&w);
	json_close(&w);
	send_frame(f, 0, &w, &b);
}

static void send_data(struct follower *f, enum stream stream, const char *data, size_t len)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "event");
	json_open_object(&w);
	json_key(&w, "data");
	json_open_object(&w);
	json_field_base64(&w,
		f->terminal               ? "pty"
		: stream == STREAM_STDOUT ? "stdout"
					  : "stderr",
		data, len);
	json_close(&w);
	json_close(&w);
	json_close(&w);
	send_frame(f, 0, &w, &b);
}

static void put_end(struct json_writer *w, const struct process_info *i)
{
	char status[64];
	if (i->signal)
		snprintf(status, sizeof(status), "signal: %s",
			i->signal == SIGKILL   ? "killed"
			: i->signal == SIGTERM ? "terminated"
					       : strsignal(i->signal));
	else
		snprintf(status, sizeof(status), "exit status %d", i->exit_code);
	json_field_int(w, "exitCode", i->signal ? -1 : i->exit_code);
	json_field_bool(w, "exited", !i->signal);
	json_field_cstr(w, "status", status);
	if (i->signal || i->exit_code)
		json_field_cstr(w, "error", status);
}

static void send_end(struct follower *f, const struct process_info *i)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "event");
	json_open_object(&w);
	json_key(&w, "end");
	json_open_object(&w);
	put_end(&w, i);
	json_close(&w);
	json_close(&w);
	json_close(&w);
	send_frame(f, 0, &w, &b);
}

/* The last message of a stream. */
static void send_last(struct follower *f, const char *code, const char *message)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	if (code) {
		json_key(&w, "error");
		json_open_object(&w);
		json_field_cstr(&w, "code", code);
		json_field_cstr(&w, "message", message);
		json_close(&w);
	}
	json_close(&w);
	send_frame(f, 2, &w, &b);
}

static void finish(struct follower *f, const char *code, const char *message)
{
	struct call *c = f->call;
	send_last(f, code, message);
	destroy(f);
	call_finish_stream(c);
}

/* ---- following ---------------------------------------------------------------------- */

static void pump(struct follower *f)
{
	struct process_info i;
	struct kept_view v;

	session_process_info(f->reader.process, &i);
	if (i.state == PROCESS_STARTING)
		return;
	if (i.state == PROCESS_FAILED) {
		bool theirs = i.err == -ENOENT || i.err == -ENOTDIR || i.err == -EACCES;
		finish(f, theirs ? "invalid_argument" : "internal", i.why);
		return;
	}

	if (!f->started) {
		f->started = true;
		send_start(f, i.id);
	}

	while (!f->full && process_reader_next(&f->reader, &v)) {
		for (size_t at = 0; at < v.len; at += CHUNK_BYTES)
			send_data(f, v.stream, v.data + at,
				v.len - at < CHUNK_BYTES ? v.len - at : CHUNK_BYTES);
	}

	if (f->full || i.state != PROCESS_EXITED)
		return;
	send_end(f, &i);
	if (i.timed_out)
		finish(f, "deadline_exceeded", "the time limit of the command was reached");
	else
		finish(f, NULL, NULL);
}

static void on_news(struct process_reader *r)
{
	pump(r->userdata);
}

static void on_process_gone(struct process_reader *r)
{
	finish(r->userdata, "unavailable", "the process was deleted, or the sandbox has ended");
}

static void on_gone(struct call *c)
{
	destroy(c->work); /* the process goes on: the client may connect again */
}

static void on_drained(struct call *c)
{
	struct follower *f = c->work;
	f->full = false;
	pump(f);
}

static const struct call_ops ops = { .on_gone = on_gone, .on_drained = on_drained };

static struct follower *follow(struct call *c)
{
	struct follower *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->call = c;
	f->reader = (struct process_reader){
		.on_news = on_news, .on_gone = on_process_gone, .userdata = f
	};
	c->work = f;
	c->ops = &ops;
	http_stream_begin(c->x, 200, STREAM_TYPE, -1);
	return f;
}

/* ---- Start and Connect -------------------------------------------------------------- */

struct start {
	char *argv[ARGUMENTS_MAX + 2], *env[LIMIT_ENV_COUNT + 1];
	size_t n_env;
	struct e2b_desktop desktop;
	struct process_request q;
};

static void start_finish(struct start *t)
{
	for (size_t i = 0; i < t->n_env; i++)
		free(t->env[i]);
	e2b_desktop_finish(&t->desktop);
}

static unsigned side(const json_t *size, const char *name, unsigned otherwise)
{
	json_int_t n = json_integer_value(json_object_get(size, name));
	return n > 0 && n < 4096 ? (unsigned)n : otherwise;
}

static void read_start(const struct call *c, json_t *request, struct start *t)
{
	json_t *config = json_object_get(request, "process"), *value;
	json_t *args = json_object_get(config, "args"), *envs = json_object_get(config, "envs");
	json_t *size = json_object_get(json_object_get(request, "pty"), "size");
	const char *name, *timeout = http_header(c->x, "Connect-Timeout-Ms");
	const json_t *input = json_object_get(request, "stdin");
	uint64_t ms = 0;
	size_t i, n = 0;

	t->argv[n++] = (char *)(uintptr_t)json_string_value(json_object_get(config, "cmd"));
	json_array_foreach(args, i, value)
	{
		if (json_is_string(value) && n < ARGUMENTS_MAX)
			t->argv[n++] = (char *)(uintptr_t)json_string_value(value);
	}

	json_object_foreach(envs, name, value)
	{
		if (json_is_string(value) && t->n_env < LIMIT_ENV_COUNT &&
			asprintf(&t->env[t->n_env], "%s=%s", name, json_string_value(value)) >= 0)
			t->n_env++;
	}

	if (timeout)
		text_parse_u64(timeout, 0, UINT32_MAX, &ms);
	t->q = (struct process_request){ .argv = t->argv,
		.env = t->env,
		.home = E2B_HOME,
		.cwd = json_string_value(json_object_get(config, "cwd")),
		.tag = json_string_value(json_object_get(request, "tag")),
		.keep_input = !json_is_false(input),
		.timeout_s = (double)ms / 1e3 };
	if (json_is_object(json_object_get(request, "pty"))) {
		t->q.rows = side(size, "rows", 24);
		t->q.columns = side(size, "cols", 80);
	}
}

static void start_process(struct call *c, struct session *s, json_t *request)
{
	struct error e = { 0 };
	struct session_process *p;
	struct start t = { .n_env = 0 };
	struct follower *f = follow(c);

	if (!f) {
		call_cut_stream(c);
		return;
	}

	read_start(c, request, &t);
	f->terminal = t.q.rows > 0;
	int r = t.argv[0] ? e2b_desktop(c, s, &t.desktop, t.argv, &e)
			  : error_set(&e, -EINVAL, "process.cmd is missing");
	if (r == 0)
		r = session_process_start(s, &t.q, &f->reader, &e, &p);
	start_finish(&t);
	if (r < 0)
		finish(f, e2b_connect_code(&e), e.text);
}

/* {pid} or {tag}. */
static struct session_process *selected(struct session *s, json_t *request)
{
	json_t *selector = json_object_get(request, "process");
	const char *tag = json_string_value(json_object_get(selector, "tag"));
	struct session_process *p = NULL;
	if (tag)
		return session_process_find_tag(s, tag);
	json_int_t pid = json_integer_value(json_object_get(selector, "pid"));
	session_process_find(s, pid > 0 && pid < INT32_MAX ? (unsigned)pid : 0, NULL, &p);
	return p;
}

static void connect_process(struct call *c, struct session *s, json_t *request)
{
	struct session_process *p = selected(s, request);
	struct follower *f = follow(c);
	struct process_info i;

	if (!f) {
		call_cut_stream(c);
		return;
	}

	if (!p) {
		finish(f, "not_found", "there is no such process");
		return;
	}

	session_process_info(p, &i);
	f->terminal = i.has_terminal;
	f->reader.position = i.state == PROCESS_EXITED ? i.kept_from
						       : i.output_bytes; /* from now on */
	process_reader_attach(&f->reader, p);
	pump(f);
}

void e2b_process_stream(struct call *c, struct session *s, const char *method, json_t *request)
{
	if (text_eq(method, "Start")) {
		start_process(c, s, request);
		return;
	}
	if (text_eq(method, "Connect")) {
		connect_process(c, s, request);
		return;
	}
	struct follower *f = follow(c);
	if (f)
		finish(f, "unimplemented", "Glovebox does not serve this stream");
	else
		call_cut_stream(c);
}

/* ---- unary calls -------------------------------------------------------------------- */

static void put_config(struct json_writer *w, const struct process_info *i)
{
	json_open_object(w);
	json_field_cstr(w, "cmd", i->argv[0]);
	json_key(w, "args");
	json_open_array(w);
	for (char *const *a = i->argv + 1; *a; a++)
		json_put_cstr(w, *a);
	json_close(w);
	json_key(w, "envs");
	json_open_object(w);
	for (char *const *v = i->env; v && *v; v++) {
		size_t n = strcspn(*v, "=");
		json_key_text(w, *v, n);
		json_put_cstr(w, *v + n + 1);
	}

	json_close(w);
	json_field_cstr(w, "cwd", i->cwd);
	json_close(w);
}

static void list(struct call *c, struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct process_info i;

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "processes");
	json_open_array(&w);
	for (struct session_process *p = session_process_next(s, NULL); p;
		p = session_process_next(s, p)) {
		session_process_info(p, &i);
		if (i.state != PROCESS_RUNNING)
			continue;
		json_open_object(&w);
		json_field_uint(&w, "pid", i.id);
		json_key(&w, "config");
		put_config(&w, &i);
		if (i.tag)
			json_field_cstr(&w, "tag", i.tag);
		json_close(&w);
	}

	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static int send_input(struct session_process *p, json_t *request, struct error *e)
{
	_cleanup_buffer_ struct buffer bytes = BUFFER_INIT(0);
	json_t *input = json_object_get(request, "input");
	const char *text = json_string_value(json_object_get(input, "stdin"));
	if (!text)
		text = json_string_value(json_object_get(input, "pty"));
	if (!text || text_base64_decode(&bytes, text, strlen(text)) < 0)
		return error_set(e, -EINVAL, "input is not base64");
	return session_process_write(p, bytes.data, bytes.len, e);
}

static int send_signal(struct session_process *p, json_t *request, struct error *e)
{
	const json_t *value = json_object_get(request, "signal");
	const char *name = json_string_value(value);
	bool kill = name ? text_eq(name, "SIGNAL_SIGKILL") : json_integer_value(value) == SIGKILL;
	return session_process_signal(p, kill ? SIGKILL : SIGTERM, e);
}

static int update(struct session_process *p, json_t *request, struct error *e)
{
	json_t *size = json_object_get(json_object_get(request, "pty"), "size");
	return session_process_resize(p, side(size, "rows", 24), side(size, "cols", 80), e);
}

static int close_input(struct session_process *p, json_t *request, struct error *e)
{
	(void)request, (void)e;
	session_process_close_input(p);
	return 0;
}

void e2b_process(struct call *c, struct session *s, const char *method, json_t *request)
{
	static const struct {
		const char *method;
		int (*apply)(struct session_process *p, json_t *request, struct error *e);

	} calls[] = { { "SendInput", send_input }, { "SendSignal", send_signal },
		{ "Update", update }, { "CloseStdin", close_input } };
	struct error e = { 0 };
	if (text_eq(method, "List")) {
		list(c, s);
		return;
	}

	struct session_process *p = selected(s, request);
	struct process_info i = { 0 };
	if (p)
		session_process_info(p, &i);
	for (size_t k = 0; k < ARRAY_LEN(calls); k++) {
		if (!text_eq(calls[k].method, method))
			continue;
		if (!p || i.state != PROCESS_RUNNING)
			e2b_connect_error(c, "not_found", "there is no such process");
		else if (calls[k].apply(p, request, &e) < 0)
			e2b_connect_error(c, e2b_connect_code(&e), e.text);
		else
			call_respond_static(c, 200, "application/json", "{}", 2);
		return;
	}

	e2b_connect_error(c, "unimplemented", "Glovebox does not serve this call");
}
