#include "session/tools/tool_table.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "json/json_schema.h"

enum { DEFAULT_TIMEOUT_S = 60, NAME_MAX_BYTES = 64 };

static const char *const known[] = { "name", "description", "parameters", "returns", "timeout_s",
	"max_calls", "async", "source", "input" };

/* What a tool with `input` is called with, and what it returns: the line without its end. */
static const char input_parameters[] =
	"{\"type\":\"object\",\"properties\":{\"prompt\":{\"type\":\"string\"},"
	"\"password\":{\"type\":\"boolean\"}},\"required\":[\"prompt\",\"password\"],"
	"\"additionalProperties\":false}";
static const char input_returns[] = "{\"type\":\"string\"}";

static int bad_tool(struct error *e, size_t index, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int bad_tool(struct error *e, size_t index, const char *fmt, ...)
{
	char text[300];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	error_set(e, -EINVAL, "$.tools[%zu]%s", index, text);
	error_remedy(e,
		"A tool is {\"name\", \"description\", \"parameters\": a JSON schema of type object, "
		"\"returns\", \"timeout_s\", "
		"\"max_calls\", \"async\", \"source\", \"input\"}; docs/tools.md says what each is.");
	error_slug(e, "invalid_tool");
	return -EINVAL;
}

static bool is_identifier(const char *s)
{
	size_t n = s ? strlen(s) : 0;
	if (!n || n > NAME_MAX_BYTES || isdigit((unsigned char)*s))
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

/*
 * Names that would make the function unreachable; a dunder name could replace what the interpreter
 * itself uses.
 */
static bool is_taken(const char *s)
{
	static const char *const words[] = { "False", "None", "True", "and", "as", "assert",
		"async", "await", "break", "class", "continue", "def", "del", "elif", "else",
		"except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
		"nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with",
		"yield" };
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (text_eq(words[i], s))
			return true;
	return text_starts(s, "__");
}

static int check_words(const json_t *d, size_t index, struct error *e)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)d, key, value)
	{
		bool found = false;
		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			found = found || text_eq(known[i], key);
		if (!found)
			return bad_tool(e, index, ": unknown field \"%.40s\"", key);
	}
	return 0;
}

static int check_texts(const json_t *d, size_t index, struct error *e)
{
	const char *name = json_string_value(json_object_get(d, "name"));
	const json_t *v;

	if (!is_identifier(name) || is_taken(name))
		return bad_tool(e, index,
			".name: must be a Python identifier of ASCII letters, at most %d, not a keyword, and not beginning "
			"with "
			"\"__\"",
			NAME_MAX_BYTES);
	if ((v = json_object_get(d, "description")) && !json_is_string(v) && !json_is_null(v))
		return bad_tool(e, index, ".description: must be a string");
	if ((v = json_object_get(d, "source")) && !json_is_string(v) && !json_is_null(v))
		return bad_tool(e, index, ".source: must be a string");
	if ((v = json_object_get(d, "async")) && !json_is_boolean(v))
		return bad_tool(e, index, ".async: must be true or false");
	if ((v = json_object_get(d, "input")) && !json_is_boolean(v))
		return bad_tool(e, index, ".input: must be true or false");

	return 0;
}

/* Sets what is the same for all tools that answer input(), or refuses something else. */
static int fix_member(json_t *d, const char *key, const char *text, size_t index, struct error *e)
{
	const json_t *given = json_object_get(d, key);
	json_t *fixed = json_loads(text, 0, NULL);
	if (given && fixed && !json_equal(given, fixed)) {
		json_decref(fixed);
		return bad_tool(
			e, index, ".%s: must be left out of a tool that answers input()", key);
	}
	if (!fixed || json_object_set_new(d, key, fixed) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	return 0;
}

static int fill_input(json_t *d, size_t index, struct error *e)
{
	if (!json_is_true(json_object_get(d, "input")))
		return 0;
	if (json_is_string(json_object_get(d, "source")) ||
		json_is_true(json_object_get(d, "async")))
		return bad_tool(e, index, ".input: goes with neither source nor async");
	int r = fix_member(d, "parameters", input_parameters, index, e);
	return r < 0 ? r : fix_member(d, "returns", input_returns, index, e);
}

static int check_numbers(const json_t *d, size_t index, struct tool *t, struct error *e)
{
	const json_t *v = json_object_get(d, "timeout_s");
	t->timeout_s = DEFAULT_TIMEOUT_S;
	if (v && !json_is_null(v)) {
		t->timeout_s = json_number_value(v);
		if (!json_is_number(v) || !(t->timeout_s >= 0.01) ||
			!(t->timeout_s <= LIMIT_TOOL_SECONDS))
			return bad_tool(e, index,
				".timeout_s: must be a number between 0.01 and %d",
				LIMIT_TOOL_SECONDS);
	}

	v = json_object_get(d, "max_calls");
	if (v && !json_is_null(v)) {
		if (!json_is_integer(v) || json_integer_value(v) < 1)
			return bad_tool(e, index, ".max_calls: must be a whole number, 1 or more");
		t->max_calls = (uint64_t)json_integer_value(v);
	}
	return 0;
}

/* The parameters must be an object's schema; without one the function takes nothing. */
static int check_schemas(json_t *d, size_t index, struct error *e)
{
	char where[64];
	json_t *parameters = json_object_get(d, "parameters"),

	       *returns = json_object_get(d, "returns");
	if (!parameters || json_is_null(parameters)) {
		parameters = json_pack("{s:s,s:{},s:b}", "type", "object", "properties",
			"additionalProperties", 0);
		if (!parameters || json_object_set_new(d, "parameters", parameters) < 0)
			return error_set(e, -ENOMEM, "out of memory");
	}

	snprintf(where, sizeof(where), "$.tools[%zu].parameters", index);
	int r = schema_check(parameters, where, e);
	if (r == 0 && !text_eq(json_string_value(json_object_get(parameters, "type")), "object"))
		return bad_tool(
			e, index, ".parameters: must be a schema with \"type\": \"object\"");

	/*
	 * A name that is no parameter is a mistake of the caller's, unless the schema wants it
	 * otherwise.
	 */
	if (r == 0 && !json_object_get(parameters, "additionalProperties"))
		r = json_object_set_new(parameters, "additionalProperties", json_false()) < 0
			    ? -ENOMEM
			    : 0;
	if (r == 0 && returns && json_is_null(returns))
		json_object_del(d, "returns");
	else if (r == 0 && returns) {
		snprintf(where, sizeof(where), "$.tools[%zu].returns", index);
		r = schema_check(returns, where, e);
	}
	return r;
}

static int check_size(const json_t *d, size_t index, struct error *e)
{
	size_t n = json_dumpb(d, NULL, 0, JSON_COMPACT);
	if (n && n <= LIMIT_TOOL_BYTES)
		return 0;
	return bad_tool(e, index, ": is %zu bytes long, the limit is %d", n, LIMIT_TOOL_BYTES);
}

static void tool_finish(struct tool *t)
{
	free(t->name);
	json_decref(t->definition);
	*t = (struct tool){ 0 };
}

static int make_tool(const json_t *given, size_t index, struct tool *t, struct error *e)
{
	if (!json_is_object(given))
		return bad_tool(e, index, ": must be an object");

	*t = (struct tool){ .definition = json_deep_copy(given) };
	if (!t->definition)
		return error_set(e, -ENOMEM, "out of memory");

	int r = check_words(given, index, e);
	if (r == 0)
		r = check_texts(given, index, e);
	if (r == 0)
		r = check_numbers(given, index, t, e);
	if (r == 0)
		r = fill_input(t->definition, index, e);
	if (r == 0)
		r = check_schemas(t->definition, index, e);
	if (r == 0)
		r = check_size(t->definition, index, e);
	if (r == 0 && !(t->name = strdup(json_string_value(json_object_get(given, "name")))))
		r = error_set(e, -ENOMEM, "out of memory");
	if (r < 0) {
		tool_finish(t);
		return r;
	}

	t->is_source = json_is_string(json_object_get(given, "source"));
	t->is_input = json_is_true(json_object_get(given, "input"));
	return 0;
}

static struct tool *find_input(const struct tool_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->tool[i].is_input)
			return &t->tool[i];
	return NULL;
}

struct tool *tool_table_find(const struct tool_table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (text_eq(t->tool[i].name, name))
			return &t->tool[i];
	return NULL;
}

static int add_given(struct tool_table *t, const json_t *definitions,
	const struct tool_client_ops *ops, void *client, struct error *e)
{
	for (size_t i = 0; i < json_array_size(definitions); i++) {
		struct tool made;
		int r = make_tool(json_array_get(definitions, i), i, &made, e);
		if (r < 0)
			return r;
		if (tool_table_find(t, made.name)) {
			r = bad_tool(e, i, ".name: there is another '%s' in the list", made.name);
			tool_finish(&made);
			return r;
		}
		if (made.is_input && find_input(t)) {
			r = bad_tool(e, i, ".input: another tool in the list answers input()");
			tool_finish(&made);
			return r;
		}
		made.ops = ops;
		made.client = client;
		t->tool[t->n++] = made;
	}

	return 0;
}

/* Keeps the tools of other clients, unless a new tool has the same name, or both answer input(). */
static int add_others(struct tool_table *t, const struct tool_table *old, const void *client)
{
	for (size_t i = 0; i < old->n; i++) {
		const struct tool *o = &old->tool[i];
		if ((o->client == client && !o->lost) || tool_table_find(t, o->name) ||
			(o->is_input && find_input(t)))
			continue;
		struct tool copy = *o;
		copy.name = strdup(o->name);
		if (!copy.name)
			return -ENOMEM;
		json_incref(copy.definition);
		t->tool[t->n++] = copy;
	}
	return 0;
}

int tool_table_merge(const struct tool_table *old, const json_t *definitions,
	const struct tool_client_ops *ops, void *client, struct tool_table *ret, struct error *e)
{
	size_t given = json_array_size(definitions);
	if (given + old->n > LIMIT_TOOLS && given > LIMIT_TOOLS) {
		error_set(e, -E2BIG, "%zu tools are too many; the limit is %d", given, LIMIT_TOOLS);
		return error_slug(e, "too_many_tools");
	}

	struct tool_table fresh = { .tool = calloc(given + old->n + 1, sizeof(*fresh.tool)) };
	int r = fresh.tool ? add_given(&fresh, definitions, ops, client, e)
			   : error_set(e, -ENOMEM, "out of memory");
	if (r == 0 && (r = add_others(&fresh, old, client)) < 0)
		error_set(e, r, "out of memory");
	if (r == 0 && fresh.n > LIMIT_TOOLS) {
		error_set(e, -E2BIG, "%zu tools are too many for one session, the limit is %d",
			fresh.n, LIMIT_TOOLS);
		r = error_slug(e, "too_many_tools");
	}

	if (r < 0) {
		tool_table_finish(&fresh);
		return r;
	}

	*ret = fresh;
	return 0;
}

void tool_table_finish(struct tool_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		tool_finish(&t->tool[i]);
	free(t->tool);
	*t = (struct tool_table){ 0 };
}

char *tool_table_dump(const struct tool_table *t)
{
	json_t *list = json_array();
	for (size_t i = 0; list && i < t->n; i++)
		if (json_array_append(list, t->tool[i].definition) < 0)
			break;
	char *text = list ? json_dumps(list, JSON_COMPACT) : NULL;
	json_decref(list);
	return text;
}
