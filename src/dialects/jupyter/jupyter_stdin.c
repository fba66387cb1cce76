/*
 * input() and getpass() in a kernel: the session's tool that answers them is this kernel, which
 * sends an input_request to the client whose cell runs, and takes its input_reply.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "dialects/jupyter/jupyter.h"
#include "session/tools/session_tools.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* A call of the tool; its client is asked when it is the first of the kernel. */
struct kernel_line {
	uint64_t call;
	struct channels *asker; /* the client; NULL: it left */
	char *parent;           /* JSON text of the header of its execute_request */
	char *question;         /* content of the input_request */
	STAILQ_ENTRY(kernel_line) link;
};

static void free_line(struct kernel_line *line)
{
	free(line->parent);
	free(line->question);
	free(line);
}

static void ask_first(struct kernel *k)
{
	struct kernel_line *line = STAILQ_FIRST(&k->lines);
	if (!line || !line->asker)
		return;
	struct buffer b = { .data = line->question, .len = strlen(line->question) };
	channels_reply(line->asker, k, "stdin", line->parent, "input_request", &b);
}

/* Takes it out of the list, and asks for the next one. */
static void drop_line(struct kernel *k, struct kernel_line *line)
{
	bool first = line == STAILQ_FIRST(&k->lines);
	STAILQ_REMOVE(&k->lines, line, kernel_line, link);
	free_line(line);
	if (first)
		ask_first(k);
}

/* ---- the tool -------------------------------------------------------------------------- */

/* The request whose cell runs. */
static const struct kernel_request *running(const struct kernel *k)
{
	const struct kernel_request *r;
	TAILQ_FOREACH (r, &k->requests, link)
		if (r->cell && r->started)
			return r;
	return NULL;
}

static struct kernel_line *make_line(const struct kernel_request *r, const struct tool_call *call)
{
	struct kernel_line *line = calloc(1, sizeof(*line));
	if (!line)
		return NULL;
	/* The arguments of the tool have the names of the message. */
	line->question = strndup(call->arguments, call->arguments_len);
	line->parent = strdup(r->parent);
	if (!line->question || !line->parent) {
		free_line(line);
		return NULL;
	}
	line->call = call->id;
	line->asker = r->asker;
	return line;
}

static void on_call(void *client, const struct tool_call *call)
{
	struct kernel *k = client;
	struct session *s;
	const struct kernel_request *r = running(k);
	struct kernel_line *line = r && r->asker && r->allows_stdin ? make_line(r, call) : NULL;

	if (line) {
		bool first = STAILQ_EMPTY(&k->lines);
		STAILQ_INSERT_TAIL(&k->lines, line, link);
		if (first)
			ask_first(k);
	} else if (kernel_session(k, NULL, &s) >= 0) {
		session_fail_call(s, k, call->id, "EOFError",
			"the client of this cell does not answer input()", NULL);
	}
}

static void on_cancel(void *client, uint64_t id, const char *why)
{
	struct kernel *k = client;
	struct kernel_line *line;
	(void)why;
	STAILQ_FOREACH(line, &k->lines, link)
	if (line->call == id) {
		drop_line(k, line);
		return;
	}
}

int kernel_serve_input(struct kernel *k, struct session *s, struct error *e)
{
	static const struct tool_client_ops ops = { on_call, on_cancel };
	if (k->serves_input)
		return 0;

	_cleanup_json_ json_t *tools = json_pack("[{s:s,s:b,s:i}]", "name", "input_request",
		"input", 1, "timeout_s", LIMIT_TOOL_SECONDS);
	if (!tools)
		return error_set(e, -ENOMEM, "out of memory");
	int r = session_set_tools(s, tools, &ops, k, e);
	k->serves_input = r == 0;
	return r;
}

/* ---- replies -------------------------------------------------------------------------------- */

void kernel_take_line(struct kernel *k, const json_t *content)
{
	struct kernel_line *line = STAILQ_FIRST(&k->lines);
	const json_t *value = json_object_get(content, "value");
	struct session *s;

	if (!line || kernel_session(k, NULL, &s) < 0)
		return;
	if (json_is_string(value))
		session_answer_call(s, k, line->call, value, NULL);
	else
		session_fail_call(s, k, line->call, "EOFError", "the reply has no line", NULL);
	drop_line(k, line);
}

void kernel_drop_lines_of(struct kernel *k, const struct channels *asker)
{
	struct kernel_line *line, *next;
	struct session *s;
	STAILQ_FOREACH(line, &k->lines, link)
	if (line->asker == asker)
		line->asker = NULL;

	for (line = STAILQ_FIRST(&k->lines); line; line = next) {
		next = STAILQ_NEXT(line, link);
		if (line->asker)
			continue;
		if (kernel_session(k, NULL, &s) >= 0)
			session_fail_call(s, k, line->call, "EOFError",
				"the client that was asked for input has disconnected", NULL);
		drop_line(k, line);
	}
}

void kernel_stop_input(struct kernel *k)
{
	struct session *s;
	if (kernel_session(k, NULL, &s) >= 0)
		session_drop_tools(s, k);
}

void kernel_drop_lines(struct kernel *k)
{
	struct kernel_line *line;
	while ((line = STAILQ_FIRST(&k->lines))) {
		STAILQ_REMOVE_HEAD(&k->lines, link);
		free_line(line);
	}
}
