#include "session/tools/session_tools.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory_account.h"
#include "base/text.h"
#include "session/internal.h"
#include "session/tools/pending_calls.h"
#include "json/json_dump.h"
#include "json/json_schema.h"

struct tools *tools_of(struct session *s)
{
	if (!s->tools && (s->tools = calloc(1, sizeof(*s->tools)))) {
		TAILQ_INIT(&s->tools->pending);
		TAILQ_INIT(&s->tools->waiters);
		s->tools->next_id = 1;
	}
	return s->tools;
}

/* ---- answers to the guest --------------------------------------------------- */

void tools_send_result(struct session *s, uint64_t number, enum wire_tag tag, const char *text,
	size_t len, const char *type)
{
	struct buffer b = BUFFER_INIT(0);
	size_t start;
	int r = wire_begin(&b, WIRE_TOOL_RESULT, s->queue.cells, &start);

	if (r == 0)
		r = wire_put_u64(&b, WIRE_CALL, number);
	if (r == 0 && type)
		r = wire_put(&b, WIRE_ERROR_TYPE, type, strlen(type));
	if (r == 0)
		r = wire_put(&b, tag, text, len);
	struct guest *guest = s->sandbox && !session_is_restoring(s) ? sandbox_guest(s->sandbox)
								     : NULL;
	if (r == 0 && guest) { /* else the interpreter that called is dead */
		wire_end(&b, start);
		guest_send(guest, &b);
	}

	buffer_finish(&b);
}

void tools_send_failure(struct session *s, uint64_t number, const char *type, const char *text)
{
	s->table->stats.tool_errors++;
	tools_send_result(s, number, WIRE_TEXT, text, strlen(text), type);
}

void tools_forget(struct session *s, struct pending *p)
{
	TAILQ_REMOVE(&s->tools->pending, p, link);
	s->tools->n_pending--;
	hold_set(&p->held, 0);
	free(p->arguments);
	free(p);
	session_tools_waiting(s, s->tools->n_pending > 0);
}

void tools_cancel(const struct pending *p, const char *why)
{
	if (p->tool->ops)
		p->tool->ops->on_cancel(p->tool->client, p->id, why);
}

static struct pending *find_pending(struct session *s, const void *client, uint64_t id)
{
	struct pending *p;
	if (!s->tools)
		return NULL;
	TAILQ_FOREACH (p, &s->tools->pending, link)
		if (p->id == id && p->tool->client == client)
			return p;
	return NULL;
}

static int no_call(uint64_t id, struct error *e)
{
	error_set(e, -ENOENT, "no cell waits for call %llu", (unsigned long long)id);
	error_remedy(e,
		"The call was answered, its time limit had passed, its cell ended, or another client serves "
		"the tool. Nothing needs to be done.");
	error_slug(e, "call_not_found");
	return -ENOENT;
}

int session_answer_call(
	struct session *s, const void *client, uint64_t id, const json_t *value, struct error *e)
{
	struct pending *p = find_pending(s, client, id);
	struct error why = { 0 };

	if (!p)
		return no_call(id, e);

	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	const json_t *returns = json_object_get(p->tool->definition, "returns");
	if (json_dump(value, LIMIT_TOOL_VALUE_BYTES, &text, &len) < 0) {
		tools_send_failure(
			s, p->number, "ToolResultError", "the tool's answer is too large");
	} else if (returns && schema_validate(returns, value, &why) < 0) {
		error_wrap(&why, "the answer of %s does not match its schema", p->tool->name);
		tools_send_failure(s, p->number, "ToolResultError", why.text);
	} else {
		tools_send_result(s, p->number, WIRE_JSON, text, len, NULL);
	}

	tools_forget(s, p);
	return 0;
}

int session_fail_call(struct session *s, const void *client, uint64_t id, const char *type,
	const char *message, struct error *e)
{
	struct pending *p = find_pending(s, client, id);
	if (!p)
		return no_call(id, e);
	tools_send_failure(s, p->number, type, message);
	tools_forget(s, p);
	return 0;
}

/* ---- handing calls to clients ------------------------------------------------ */

static void describe(const struct pending *p, struct tool_call *ret)
{
	*ret = (struct tool_call){ .id = p->id,
		.tool = p->tool->name,
		.cell = p->cell,
		.arguments = p->arguments,
		.arguments_len = strlen(p->arguments) };
}

static void wake_waiters(struct session *s, bool gone)
{
	struct tool_waiter *w;
	while ((w = TAILQ_FIRST(&s->tools->waiters))) {
		session_stop_waiting(w);
		w->on_calls(w, gone ? NULL : s);
		if (!gone)
			break; /* it takes all there is */
	}
}

void tools_hand_over(struct session *s, struct pending *p)
{
	struct tool_call call;
	if (!p->tool->ops) {
		wake_waiters(s, false);
		return;
	}
	describe(p, &call);
	p->tool->ops->on_call(p->tool->client, &call);
}

/* ---- time ------------------------------------------------------------------- */

uint64_t tools_next_deadline(const struct session *s)
{
	uint64_t next = UINT64_MAX;
	struct pending *p;
	if (!s->tools)
		return next;

	TAILQ_FOREACH (p, &s->tools->pending, link)
		if (p->deadline_ns < next)
			next = p->deadline_ns;
	return next;
}

void tools_expire(struct session *s, uint64_t now_ns)
{
	struct pending *p, *next;
	char text[256];

	if (!s->tools)
		return;

	for (p = TAILQ_FIRST(&s->tools->pending); p; p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->deadline_ns > now_ns)
			continue;
		snprintf(text, sizeof(text), "'%s' did not answer within %g s%s", p->tool->name,
			p->timeout_s,
			p->tool->ops || p->fetched ? "" : " (no client fetched the call)");
		tools_send_failure(s, p->number, "ToolTimeout", text);
		tools_cancel(p, "its time limit had passed");
		tools_forget(s, p);
	}
}

void tools_end_cell(struct session *s)
{
	struct pending *p;
	if (!s->tools)
		return;

	while ((p = TAILQ_FIRST(&s->tools->pending))) {
		tools_cancel(p, "its cell ended");
		tools_forget(s, p);
	}

	tools_wait_for_packages(s, 0);
	s->tools->calls_of_cell = 0;
}

/* ---- definitions ------------------------------------------------------------ */

static void fail_pending_of(
	struct session *s, const struct tool *tool, const char *type, const char *why)
{
	struct pending *p, *next;
	char text[256];
	for (p = TAILQ_FIRST(&s->tools->pending); p; p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->tool != tool)
			continue;
		snprintf(text, sizeof(text), "'%s' gave no answer: %s", tool->name, why);
		tools_send_failure(s, p->number, type, text);
		tools_forget(s, p);
	}
}

/* Calls that wait go on under the new definition, when the same client still answers. */
static void move_pending(struct session *s, const struct tool *old, const struct tool_table *fresh)
{
	struct tool *tool = tool_table_find(fresh, old->name);
	struct pending *p;
	if (!tool || tool->client != old->client || tool->is_source || tool->lost) {
		fail_pending_of(
			s, old, "ToolUnavailable", "the tools of the session were replaced");
		return;
	}

	TAILQ_FOREACH (p, &s->tools->pending, link)
		if (p->tool == old)
			p->tool = tool;
}

/* Definitions are kept until the session ends, so they count towards its held memory. */
static int hold_table(struct tools *t, const struct tool_table *fresh, struct error *e)
{
	_cleanup_free_ char *text = tool_table_dump(fresh);
	if (text && hold_set(&t->held, strlen(text)) == 0)
		return 0;
	error_set(e, -ENOMEM, "the server has no memory left to keep these tools");
	error_remedy(e, "Try again later, or give shorter definitions.");
	return error_slug(e, "server_memory");
}

int session_set_tools(struct session *s, const json_t *definitions,
	const struct tool_client_ops *ops, void *client, struct error *e)
{
	struct tool_table fresh = { 0 };
	struct tools *t = tools_of(s);

	if (!t)
		return error_set(e, -ENOMEM, "out of memory");

	int r = tool_table_merge(&t->table, definitions, ops, client, &fresh, e);
	if (r == 0)
		r = hold_table(t, &fresh, e);
	if (r < 0) {
		tool_table_finish(&fresh);
		return r;
	}

	for (size_t i = 0; i < t->table.n; i++)
		move_pending(s, &t->table.tool[i], &fresh);
	tool_table_finish(&t->table);
	t->table = fresh;
	t->unsent = true;
	return 0;
}

void session_drop_tools(struct session *s, const void *client)
{
	if (!s->tools)
		return;

	for (size_t i = 0; i < s->tools->table.n; i++) {
		struct tool *tool = &s->tools->table.tool[i];
		if (tool->client != client || tool->is_source)
			continue;
		tool->lost = true;
		fail_pending_of(s, tool, "ToolUnavailable",
			"the client that answers the tool has disconnected");
		tool->ops = NULL;
		tool->client = NULL;
	}
}

const json_t *session_tool(const struct session *s, size_t i, uint64_t *ret_calls)
{
	if (!s->tools || i >= s->tools->table.n)
		return NULL;
	*ret_calls = s->tools->table.tool[i].calls;
	return s->tools->table.tool[i].definition;
}

void tools_send(struct session *s, bool fresh_guest)
{
	struct buffer b = BUFFER_INIT(0);
	size_t start;

	if (!s->tools || (!s->tools->unsent && (!fresh_guest || !s->tools->table.n)))
		return;

	char *text = tool_table_dump(&s->tools->table);
	int r = text ? wire_begin(&b, WIRE_TOOLS, 0, &start) : -ENOMEM;
	if (r == 0)
		r = wire_put(&b, WIRE_JSON, text, strlen(text));
	if (r == 0) {
		wire_end(&b, start);
		guest_send(sandbox_guest(s->sandbox), &b);
		s->tools->unsent = false;
	}

	free(text);
	buffer_finish(&b);
}

void tools_finish(struct session *s)
{
	if (!s->tools)
		return;

	tools_end_cell(s);
	wake_waiters(s, true);
	tool_table_finish(&s->tools->table);
	hold_set(&s->tools->held, 0);
	free(s->tools);
	s->tools = NULL;
}

/* ---- the client that asks --------------------------------------------------- */

static struct pending *first_unfetched(const struct session *s)
{
	struct pending *p;
	if (!s->tools)
		return NULL;
	TAILQ_FOREACH (p, &s->tools->pending, link)
		if (!p->tool->ops && !p->fetched)
			return p;
	return NULL;
}

bool session_has_calls(const struct session *s)
{
	return first_unfetched(s) != NULL;
}

int session_next_call(struct session *s, struct tool_call *ret)
{
	struct pending *p = first_unfetched(s);
	if (!p)
		return 0;
	p->fetched = true;
	describe(p, ret);
	return 1;
}

int session_wait_calls(struct session *s, struct tool_waiter *w, struct error *e)
{
	struct tools *t = tools_of(s);
	if (!t)
		return error_set(e, -ENOMEM, "out of memory");

	if (t->n_waiters >= LIMIT_TOOL_POLLERS) {
		error_set(e, -EBUSY, "%u requests are already waiting for calls of this session",
			t->n_waiters);
		error_remedy(e, "One waiting request is enough: it receives every call.");
		return error_slug(e, "too_many_pollers");
	}

	w->session = s;
	TAILQ_INSERT_TAIL(&t->waiters, w, link);
	t->n_waiters++;
	return 0;
}

void session_stop_waiting(struct tool_waiter *w)
{
	struct session *s = w->session;
	if (!s)
		return;
	TAILQ_REMOVE(&s->tools->waiters, w, link);
	s->tools->n_waiters--;
	w->session = NULL;
}
