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
#include "session/tools/tool_table.h"
#include "json/json_read.h"
#include "json/json_schema.h"

struct pending {
	TAILQ_ENTRY(pending) link;
	uint64_t id, number; /* ours, and the guest's */
	struct tool *tool;
	unsigned cell;
	char *arguments;
	struct hold held; /* the arguments */
	uint64_t deadline_ns;
	double timeout_s;
	bool fetched; /* by a client that asks */
};

TAILQ_HEAD(pending_list, pending);
TAILQ_HEAD(waiter_list, tool_waiter);

struct tools {
	struct tool_table table;
	struct pending_list pending;
	struct waiter_list waiters;
	unsigned n_pending, n_waiters, calls_of_cell;
	uint64_t next_id;
	bool unsent;              /* the guest does not know the definitions */
	struct hold held;         /* of the table */
	uint64_t packages_number; /* of the guest's call that waits for packages; 0: none */
};

static struct tools *tools_of(struct session *s)
{
	if (!s->tools && (s->tools = calloc(1, sizeof(*s->tools)))) {
		TAILQ_INIT(&s->tools->pending);
		TAILQ_INIT(&s->tools->waiters);
		s->tools->next_id = 1;
	}
	return s->tools;
}

/* ---- answers to the guest --------------------------------------------------- */

static void send_result(
	struct session *s, uint64_t number, enum wire_tag tag, const char *text, size_t len, const char *type)
{
	struct buffer b = BUFFER_INIT(0);
	size_t start;
	int r = wire_begin(&b, WIRE_TOOL_RESULT, s->cells, &start);
	if (r == 0)
		r = wire_put_u64(&b, WIRE_CALL, number);
	if (r == 0 && type)
		r = wire_put(&b, WIRE_ERROR_TYPE, type, strlen(type));
	if (r == 0)
		r = wire_put(&b, tag, text, len);
	struct guest *guest = s->sandbox && !operation_restores(s) ? sandbox_guest(s->sandbox) : NULL;
	if (r == 0 && guest) { /* else the interpreter that called is dead */
		wire_end(&b, start);
		guest_send(guest, &b);
	}
	buffer_finish(&b);
}

static void send_failure(struct session *s, uint64_t number, const char *type, const char *text)
{
	s->table->stats.tool_errors++;
	send_result(s, number, WIRE_TEXT, text, strlen(text), type);
}

static void forget(struct session *s, struct pending *p)
{
	TAILQ_REMOVE(&s->tools->pending, p, link);
	s->tools->n_pending--;
	hold_set(&p->held, 0);
	free(p->arguments);
	free(p);
	session_tools_waiting(s, s->tools->n_pending > 0);
}

static void cancel(const struct pending *p, const char *why)
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
	error_set(e, -ENOENT, "nobody waits for call %llu", (unsigned long long)id);
	error_remedy(e, "It was answered, its time limit was over, its cell ended, or another client serves "
			"the tool. Nothing is to be done.");
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
	_cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	size_t len = text ? strlen(text) : 0;
	const json_t *returns = json_object_get(p->tool->definition, "returns");
	if (!text || len > LIMIT_TOOL_VALUE_BYTES) {
		send_failure(s, p->number, "ToolResultError", "the tool's answer is too large");
	} else if (returns && schema_validate(returns, value, &why) < 0) {
		error_wrap(&why, "%s answered what its schema does not allow", p->tool->name);
		send_failure(s, p->number, "ToolResultError", why.text);
	} else {
		send_result(s, p->number, WIRE_JSON, text, len, NULL);
	}
	forget(s, p);
	return 0;
}

int session_fail_call(struct session *s, const void *client, uint64_t id, const char *type,
	const char *message, struct error *e)
{
	struct pending *p = find_pending(s, client, id);
	if (!p)
		return no_call(id, e);
	send_failure(s, p->number, type, message);
	forget(s, p);
	return 0;
}

/* ---- calls of the guest ----------------------------------------------------- */

struct asked {
	uint64_t number;
	char name[LIMIT_NAME_BYTES + 1];
	const char *arguments;
	size_t len;
};

static int read_call(const struct wire_frame *f, struct asked *ret)
{
	struct wire_field field;
	size_t at = 0;
	int r;
	*ret = (struct asked){ 0 };
	while ((r = wire_field_next(f, &at, &field)) == 1) {
		if (field.tag == WIRE_CALL && wire_field_u64(&field, &ret->number) < 0)
			return -EPROTO;
		if (field.tag == WIRE_TEXT)
			snprintf(ret->name, sizeof(ret->name), "%.*s",
				(int)(field.len < LIMIT_NAME_BYTES ? field.len : LIMIT_NAME_BYTES),
				field.data);
		if (field.tag == WIRE_JSON) {
			ret->arguments = field.data;
			ret->len = field.len;
		}
	}
	return r < 0 || !ret->number || !ret->arguments ? -EPROTO : 0;
}

static bool number_in_use(const struct tools *t, uint64_t number)
{
	struct pending *p;
	TAILQ_FOREACH (p, &t->pending, link)
		if (p->number == number)
			return true;
	return false;
}

/* Reasons to say no that have nothing to do with the arguments. NULL: go on. */
static const char *refusal(struct session *s, struct tool *tool, const struct asked *asked,
	const char **ret_type, char text[256])
{
	struct tools *t = s->tools;
	*ret_type = "ToolBudgetError";
	if (!tool || tool->is_source) {
		*ret_type = "ToolUnavailable";
		snprintf(text, 256, "there is no tool '%.64s' in this session any more", asked->name);
	} else if (tool->lost) {
		*ret_type = "ToolUnavailable";
		snprintf(text, 256, "the client that answers '%s' has left", tool->name);
	} else if (tool->max_calls && tool->calls >= tool->max_calls) {
		snprintf(text, 256, "'%s' was called %llu times, which is all that is allowed", tool->name,
			(unsigned long long)tool->calls);
	} else if (t->calls_of_cell >= LIMIT_TOOL_CALLS_PER_CELL) {
		snprintf(text, 256, "this cell made %u calls of tools, which is all that is allowed",
			t->calls_of_cell);
	} else if (t->n_pending >= LIMIT_TOOL_CALLS) {
		snprintf(text, 256, "%u calls of tools wait for their answers already; wait for some first",
			t->n_pending);
	} else if (asked->len > LIMIT_TOOL_VALUE_BYTES) {
		*ret_type = "ToolArgumentError";
		snprintf(text, 256, "the arguments of '%s' are too large: %zu bytes, the limit is %d",
			tool->name, asked->len, LIMIT_TOOL_VALUE_BYTES);
	} else {
		return NULL;
	}
	return text;
}

/* The arguments as the client gets them, or NULL and why not. */
static char *settle_arguments(const struct tool *tool, const struct asked *asked, struct error *e)
{
	_cleanup_json_ json_t *tree = NULL;
	const json_t *parameters = json_object_get(tool->definition, "parameters");
	if (json_read(asked->arguments, asked->len, e, &tree) < 0)
		return NULL;
	if (!json_is_object(tree)) {
		error_set(e, -EINVAL, "the arguments are no object");
		return NULL;
	}
	if (schema_fill_defaults(parameters, tree) < 0 || schema_validate(parameters, tree, e) < 0)
		return NULL;
	return json_dumps(tree, JSON_COMPACT);
}

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

static void hand_over(struct session *s, struct pending *p)
{
	struct tool_call call;
	if (!p->tool->ops) {
		wake_waiters(s, false);
		return;
	}
	describe(p, &call);
	p->tool->ops->on_call(p->tool->client, &call);
}

/* ---- packages ----------------------------------------------------------------- */

void sessions_on_packages(
	struct sessions *t, void (*ask)(void *, const char *, uint64_t, const char *, size_t), void *userdata)
{
	t->ask_packages = ask;
	t->ask_userdata = userdata;
}

/* Its clock stands still meanwhile, as for a tool; an installation has a time limit of its own. */
static void wait_for_packages(struct session *s, uint64_t number)
{
	struct tools *t = s->tools;
	if (number && !t->packages_number)
		t->n_pending++;
	else if (!number && t->packages_number)
		t->n_pending--;
	t->packages_number = number;
	session_tools_waiting(s, t->n_pending > 0);
}

static void ask_packages(struct session *s, const struct asked *asked)
{
	struct sessions *table = s->table;
	if (!table->ask_packages) {
		send_failure(s, asked->number, "ToolUnavailable",
			"there are no packages here; `glovebox run --package NAME` gives them");
	} else if (s->tools->packages_number || s->tools->calls_of_cell >= LIMIT_TOOL_CALLS_PER_CELL) {
		send_failure(s, asked->number, "ToolBudgetError",
			"packages are being installed already; wait for those first");
	} else {
		s->tools->calls_of_cell++;
		wait_for_packages(s, asked->number);
		table->ask_packages(table->ask_userdata, s->id, asked->number, asked->arguments, asked->len);
	}
}

void session_answer_packages(
	struct session *s, uint64_t number, struct session_package *p, char *report, const char *why)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	if (!s->tools || s->tools->packages_number != number) { /* its cell is over */
		session_package_free(p);
		free(report);
		return;
	}
	if (why) {
		send_failure(s, number, "ToolError", why);
	} else {
		buffer_printf(&b, "{\"path\":%s%s%s,\"report\":%s}", p ? "\"" : "", p ? p->path : "null",
			p ? "\"" : "", report ? report : "{}");
		send_result(s, number, WIRE_JSON, b.data ? b.data : "null", b.data ? b.len : 4, NULL);
		if (p) {
			p->next = s->params.packages;
			s->params.packages = p;
			p = NULL;
		}
		free(s->params.packages_report);
		s->params.packages_report = report;
		s->packages_news = true;
		report = NULL;
	}
	session_package_free(p);
	free(report);
	wait_for_packages(s, 0);
}

static int take_call(struct session *s, const struct wire_frame *f)
{
	struct asked asked;
	struct error e = { 0 };
	char text[256];
	const char *type;
	struct tools *t = tools_of(s);
	if (!t)
		return -ENOMEM;
	if (read_call(f, &asked) < 0 || number_in_use(t, asked.number))
		return -EPROTO;
	if (text_eq(asked.name, "%pip")) { /* no client can give a tool this name */
		ask_packages(s, &asked);
		return 0;
	}
	struct tool *tool = tool_table_find(&t->table, asked.name);
	s->table->stats.tool_calls++;
	if (refusal(s, tool, &asked, &type, text)) {
		send_failure(s, asked.number, type, text);
		return 0;
	}
	tool->calls++;
	t->calls_of_cell++;
	char *arguments = settle_arguments(tool, &asked, &e);
	struct pending *p = arguments ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		free(arguments);
		error_wrap(&e, "%s()", tool->name);
		send_failure(s, asked.number, "ToolArgumentError", e.text);
		return 0;
	}
	*p = (struct pending){ .id = t->next_id++,
		.number = asked.number,
		.tool = tool,
		.cell = s->cells,
		.arguments = arguments,
		.timeout_s = tool->timeout_s,
		.deadline_ns = clock_now_ns() + (uint64_t)(tool->timeout_s * 1e9) };
	if (hold_set(&p->held, strlen(arguments)) < 0) {
		free(arguments);
		free(p);
		send_failure(s, asked.number, "ToolBudgetError", "too much waits for answers on this server already: call with less, or later");
		return 0;
	}
	TAILQ_INSERT_TAIL(&t->pending, p, link);
	t->n_pending++;
	session_tools_waiting(s, true);
	hand_over(s, p);
	return 0;
}

static int take_cancel(struct session *s, const struct wire_frame *f)
{
	struct wire_field field;
	size_t at = 0;
	uint64_t number = 0;
	struct pending *p;
	while (wire_field_next(f, &at, &field) == 1)
		if (field.tag == WIRE_CALL && wire_field_u64(&field, &number) < 0)
			return -EPROTO;
	if (!s->tools)
		return -EPROTO;
	if (number && s->tools->packages_number == number)
		wait_for_packages(s, 0);
	TAILQ_FOREACH (p, &s->tools->pending, link) {
		if (p->number == number) {
			cancel(p, "the code no longer waits for it");
			forget(s, p);
			break;
		}
	}
	return 0; /* none: its answer crossed this on its way */
}

int tools_take(struct session *s, const struct wire_frame *f)
{
	return f->type == WIRE_TOOL_CALL ? take_call(s, f) : take_cancel(s, f);
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
		snprintf(text, sizeof(text), "'%s' did not answer within %g s%s", p->tool->name, p->timeout_s,
			p->tool->ops || p->fetched ? "" : " (no client fetched the call)");
		send_failure(s, p->number, "ToolTimeout", text);
		cancel(p, "its time limit was over");
		forget(s, p);
	}
}

void tools_end_cell(struct session *s)
{
	struct pending *p;
	if (!s->tools)
		return;
	while ((p = TAILQ_FIRST(&s->tools->pending))) {
		cancel(p, "its cell ended");
		forget(s, p);
	}
	wait_for_packages(s, 0);
	s->tools->calls_of_cell = 0;
}

/* ---- definitions ------------------------------------------------------------ */

static void fail_pending_of(struct session *s, const struct tool *tool, const char *type, const char *why)
{
	struct pending *p, *next;
	char text[256];
	for (p = TAILQ_FIRST(&s->tools->pending); p; p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->tool != tool)
			continue;
		snprintf(text, sizeof(text), "'%s' gave no answer: %s", tool->name, why);
		send_failure(s, p->number, type, text);
		forget(s, p);
	}
}

/* Calls that wait go on under the new definition, when the same client still answers. */
static void move_pending(struct session *s, const struct tool *old, const struct tool_table *fresh)
{
	struct tool *tool = tool_table_find(fresh, old->name);
	struct pending *p;
	if (!tool || tool->client != old->client || tool->is_source || tool->lost) {
		fail_pending_of(s, old, "ToolUnavailable", "the tools of the session were given anew");
		return;
	}
	TAILQ_FOREACH (p, &s->tools->pending, link)
		if (p->tool == old)
			p->tool = tool;
}

/* Definitions stay as long as the session: they count. */
static int hold_table(struct tools *t, const struct tool_table *fresh, struct error *e)
{
	_cleanup_free_ char *text = tool_table_dump(fresh);
	if (text && hold_set(&t->held, strlen(text)) == 0)
		return 0;
	error_set(e, -ENOMEM, "the server holds too much for others to keep these tools");
	error_remedy(e, "Try again later, or give shorter definitions.");
	return error_slug(e, "server_memory");
}

int session_set_tools(struct session *s, const json_t *definitions, const struct tool_client_ops *ops,
	void *client, struct error *e)
{
	struct tool_table fresh = { 0 };
	struct tools *t = tools_of(s);
	if (!t)
		return error_set(e, -ENOMEM, "the server is short of memory");
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
		fail_pending_of(s, tool, "ToolUnavailable", "the client that answers it has left");
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
		return error_set(e, -ENOMEM, "the server is short of memory");
	if (t->n_waiters >= LIMIT_TOOL_POLLERS) {
		error_set(e, -EBUSY, "%u requests wait for calls of this session already", t->n_waiters);
		error_remedy(e, "One is enough: it gets every call.");
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
