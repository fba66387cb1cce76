/* Scripts that the dialect runs in a sandbox, and what they print. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/e2b/e2b.h"

/* A script that waits for something, such as a pipe that nobody writes to, is ended. */
enum { ARGUMENTS_MAX = 8, OUTPUT_MAX = 16 << 20, SCRIPT_SECONDS = 60 };

struct shell {
	struct call *call;
	struct process_reader reader;
	struct buffer out, err;
	e2b_shell_done done;
	void (*drop)(void *userdata);
	void *userdata;
	bool too_much;
};

static void shell_free(struct shell *h)
{
	process_reader_detach(&h->reader);
	buffer_finish(&h->out);
	buffer_finish(&h->err);
	free(h);
}

static void drop(struct shell *h)
{
	if (h->drop)
		h->drop(h->userdata);
	shell_free(h);
}

static void on_gone(struct call *c)
{
	struct shell *h = c->work;
	struct session_process *p = h->reader.process;
	c->work = NULL;
	c->ops = NULL;
	drop(h);
	if (p)
		session_process_delete(p);
}

static const struct call_ops ops = { .on_gone = on_gone };

/* Output that is not whole is never passed on: the script is ended, and `done` is told why. */
static void keep(struct shell *h, const struct kept_view *v)
{
	struct error e = { 0 };
	struct buffer *b = v->stream == STREAM_STDOUT ? &h->out : &h->err;
	if (h->too_much || buffer_append(b, v->data, v->len) == 0)
		return;

	h->too_much = true;
	session_process_signal(h->reader.process, SIGKILL, &e);
}

static void on_news(struct process_reader *r)
{
	struct shell *h = r->userdata;
	struct process_info i;
	struct kept_view v;

	while (process_reader_next(r, &v))
		keep(h, &v);
	session_process_info(r->process, &i);
	if (i.state != PROCESS_EXITED && i.state != PROCESS_FAILED)
		return;
	struct call *c = h->call;
	c->work = NULL;
	c->ops = NULL;
	if (i.state == PROCESS_FAILED)
		buffer_append_str(&h->err, i.why);
	process_reader_detach(r);
	int code = h->too_much                 ? E2B_SHELL_TOO_MUCH
		   : i.state == PROCESS_FAILED ? E2B_SHELL_FAILED
					       : i.exit_code;
	h->done(c, h->userdata, code, &h->out, &h->err);
	shell_free(h);
}

static void on_process_gone(struct process_reader *r)
{
	struct shell *h = r->userdata;
	struct call *c = h->call;
	c->work = NULL;
	c->ops = NULL;
	drop(h);
	e2b_error(c, 502, "the sandbox has ended");
}

const char *e2b_shell_failure(int exit_code, const struct buffer *err, char *text)
{
	size_t len = err->len < E2B_FAILURE_TEXT - 1 ? err->len : E2B_FAILURE_TEXT - 1;
	if (len)
		snprintf(text, E2B_FAILURE_TEXT, "%.*s", (int)len, err->data);
	else if (exit_code == 128 + SIGKILL)
		snprintf(text, E2B_FAILURE_TEXT,
			"the operation was killed: it took longer than %d s, or used too much memory",
			SCRIPT_SECONDS);
	else
		snprintf(text, E2B_FAILURE_TEXT, "the operation failed with exit code %d",
			exit_code);
	return text;
}

void e2b_shell(struct call *c, struct session *s, const char *script, const char *const *arguments,
	const char *input, size_t input_len, e2b_shell_done done, void (*drop_userdata)(void *),
	void *userdata)
{
	struct error e = { 0 };
	struct session_process *p;
	char *argv[ARGUMENTS_MAX + 5] = { (char *)"/bin/sh", (char *)"-c",
		(char *)(uintptr_t)script, (char *)"sh" };

	for (size_t i = 0; arguments[i] && i < ARGUMENTS_MAX; i++)
		argv[4 + i] = (char *)(uintptr_t)arguments[i];
	struct process_request q = { .argv = argv,
		.input = input,
		.input_len = input_len,
		.home = E2B_HOME,
		.timeout_s = SCRIPT_SECONDS };
	struct shell *h = calloc(1, sizeof(*h));
	if (!h) {
		if (drop_userdata)
			drop_userdata(userdata);
		call_no_memory(c);
		return;
	}

	*h = (struct shell){ .call = c,
		.done = done,
		.drop = drop_userdata,
		.userdata = userdata,
		.out = BUFFER_COUNTED(OUTPUT_MAX),
		.err = BUFFER_COUNTED(OUTPUT_MAX),
		.reader = { .on_news = on_news, .on_gone = on_process_gone, .userdata = h } };
	c->work = h;
	c->ops = &ops;
	if (session_process_start(s, &q, &h->reader, &e, &p) == 0)
		return;
	c->work = NULL;
	c->ops = NULL;
	drop(h);
	e2b_fail(c, &e);
}
