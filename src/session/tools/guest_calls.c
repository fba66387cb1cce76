/*
 * Calls of tools that the code of a cell makes: they are checked, and handed to the client that
 * answers them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "session/internal.h"
#include "session/tools/pending_calls.h"
#include "json/json_dump.h"
#include "json/json_read.h"
#include "json/json_schema.h"

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
		snprintf(text, 256, "there is no longer a tool '%.64s' in this session",
			asked->name);
	} else if (tool->lost) {
		*ret_type = "ToolUnavailable";
		snprintf(text, 256, "the client that answers '%s' has disconnected", tool->name);
	} else if (tool->max_calls && tool->calls >= tool->max_calls) {
		snprintf(text, 256, "'%s' was called %llu times, the most that is allowed",
			tool->name, (unsigned long long)tool->calls);
	} else if (t->calls_of_cell >= LIMIT_TOOL_CALLS_PER_CELL) {
		snprintf(text, 256, "this cell made %u tool calls, the most that is allowed",
			t->calls_of_cell);
	} else if (t->n_pending >= LIMIT_TOOL_CALLS) {
		snprintf(text, 256,
			"%u tool calls are already waiting for their answers; wait for some of them first",
			t->n_pending);
	} else if (asked->len > LIMIT_TOOL_VALUE_BYTES) {
		*ret_type = "ToolArgumentError";
		snprintf(text, 256,
			"the arguments of '%s' are too large: %zu bytes, the limit is %d",
			tool->name, asked->len, LIMIT_TOOL_VALUE_BYTES);
	} else {
		return NULL;
	}

	return text;
}

/* The arguments as the client gets them, or NULL and why not. */
static char *bind_arguments(const struct tool *tool, const struct asked *asked, struct error *e)
{
	_cleanup_json_ json_t *tree = NULL;
	const json_t *parameters = json_object_get(tool->definition, "parameters");

	if (json_read(asked->arguments, asked->len, e, &tree) < 0)
		return NULL;

	if (!json_is_object(tree)) {
		error_set(e, -EINVAL, "the arguments are not an object");
		return NULL;
	}

	if (schema_fill_defaults(parameters, tree) < 0 || schema_validate(parameters, tree, e) < 0)
		return NULL;
	char *text = NULL;
	if (json_dump(tree, LIMIT_TOOL_VALUE_BYTES, &text, NULL) < 0)
		error_set(e, -E2BIG, "the arguments are too large");
	return text;
}

/* Makes a pending call of it, or tells the guest why not. */
static void enqueue(struct session *s, struct tool *tool, const struct asked *asked)
{
	struct tools *t = s->tools;
	struct error e = { 0 };
	char *arguments = bind_arguments(tool, asked, &e);
	struct pending *p = arguments ? calloc(1, sizeof(*p)) : NULL;

	if (!p) {
		free(arguments);
		error_wrap(&e, "%s()", tool->name);
		tools_send_failure(s, asked->number, "ToolArgumentError", e.text);
		return;
	}

	*p = (struct pending){ .id = t->next_id++,
		.number = asked->number,
		.tool = tool,
		.cell = s->queue.cells,
		.arguments = arguments,
		.timeout_s = tool->timeout_s,
		.deadline_ns = clock_now_ns() + (uint64_t)(tool->timeout_s * 1e9) };
	if (hold_set(&p->held, strlen(arguments)) < 0) {
		free(arguments);
		free(p);
		tools_send_failure(s, asked->number, "ToolBudgetError",
			"the waiting tool calls use all memory that this server reserves for them: call with smaller arguments, or later");
		return;
	}

	TAILQ_INSERT_TAIL(&t->pending, p, link);
	t->n_pending++;
	session_tools_waiting(s, true);
	tools_hand_over(s, p);
}

static int take_call(struct session *s, const struct wire_frame *f)
{
	struct asked asked;
	char text[256];
	const char *type;
	struct tools *t = tools_of(s);

	if (!t)
		return -ENOMEM;
	if (read_call(f, &asked) < 0 || number_in_use(t, asked.number))
		return -EPROTO;

	if (text_eq(asked.name, "%pip")) { /* no client can give a tool this name */
		tools_ask_packages(s, &asked);
		return 0;
	}

	struct tool *tool = tool_table_find(&t->table, asked.name);
	s->table->stats.tool_calls++;
	if (refusal(s, tool, &asked, &type, text)) {
		tools_send_failure(s, asked.number, type, text);
		return 0;
	}

	tool->calls++;
	t->calls_of_cell++;
	enqueue(s, tool, &asked);
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
		tools_wait_for_packages(s, 0);
	TAILQ_FOREACH (p, &s->tools->pending, link) {
		if (p->number == number) {
			tools_cancel(p, "the code no longer waits for the answer");
			tools_forget(s, p);
			break;
		}
	}
	return 0; /* none: its answer crossed this on its way */
}

int tools_take(struct session *s, const struct wire_frame *f)
{
	return f->type == WIRE_TOOL_CALL ? take_call(s, f) : take_cancel(s, f);
}
