#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "session/tools/tool_table.h"
#include "tap.h"
#include "json/json_read.h"

static json_t *tree(const char *text)
{
	json_t *t = NULL;
	struct error e = { 0 };
	if (json_read(text, strlen(text), &e, &t) < 0)
		printf("# %s: %s\n", text, e.text);
	return t;
}

static void refuses(void)
{
	static const struct {
		const char *tools, *says, *slug;
	} bad[] = {
		{ "[1]", "$.tools[0]: must be an object", "invalid_tool" },
		{ "[{}]", "$.tools[0].name: must be a Python identifier", "invalid_tool" },
		{ "[{\"name\":\"1a\"}]", ".name: must be", "invalid_tool" },
		{ "[{\"name\":\"a-b\"}]", ".name: must be", "invalid_tool" },
		{ "[{\"name\":\"class\"}]", ".name: must be", "invalid_tool" },
		{ "[{\"name\":\"__import__\"}]", ".name: must be", "invalid_tool" },
		{ "[{\"name\":\"a\"},{\"name\":\"a\"}]", "$.tools[1].name: there is another 'a'",
			"invalid_tool" },
		{ "[{\"name\":\"a\",\"parametres\":{}}]", "unknown field \"parametres\"",
			"invalid_tool" },
		{ "[{\"name\":\"a\",\"description\":1}]", ".description: must be a string",
			"invalid_tool" },
		{ "[{\"name\":\"a\",\"async\":1}]", ".async: must be true or false",
			"invalid_tool" },
		{ "[{\"name\":\"a\",\"source\":1}]", ".source: must be a string", "invalid_tool" },
		{ "[{\"name\":\"a\",\"timeout_s\":0}]", ".timeout_s: must be a number between",
			"invalid_tool" },
		{ "[{\"name\":\"a\",\"timeout_s\":\"1\"}]", ".timeout_s: must be a number between",
			"invalid_tool" },
		{ "[{\"name\":\"a\",\"max_calls\":0}]", ".max_calls: must be a whole number",
			"invalid_tool" },
		{ "[{\"name\":\"a\",\"input\":1}]", ".input: must be true or false",
			"invalid_tool" },
		{ "[{\"name\":\"a\",\"input\":true,\"returns\":{}}]", ".returns: must be left out",
			"invalid_tool" },
		{ "[{\"name\":\"a\",\"input\":true,\"source\":\"a = 1\"}]",
			".input: goes with neither", "invalid_tool" },
		{ "[{\"name\":\"a\",\"input\":true},{\"name\":\"b\",\"input\":true}]",
			"$.tools[1].input: another tool", "invalid_tool" },
		{ "[{\"name\":\"a\",\"parameters\":{\"type\":\"string\"}}]", "\"type\": \"object\"",
			"invalid_tool" },
		{ "[{\"name\":\"a\",\"parameters\":{\"type\":\"object\",\"properties\":{\"x\":{\"$ref\":\"#\"}}}}]",
			"$.tools[0].parameters: $.properties.x.$ref: \"$ref\" is not understood",
			"invalid_schema" },
		{ "[{\"name\":\"a\",\"returns\":{\"type\":\"x\"}}]", "$.tools[0].returns: $.type",
			"invalid_schema" },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_json_ json_t *t = tree(bad[i].tools);
		struct tool_table none = { 0 }, fresh = { 0 };
		struct error e = { 0 };
		OK(tool_table_merge(&none, t, NULL, NULL, &fresh, &e) == -EINVAL &&
			strstr(e.text, bad[i].says) && !fresh.n);
		OK_STR(e.slug, bad[i].slug);
		if (!strstr(e.text, bad[i].says))
			printf("# %s: %s\n", bad[i].tools, e.text);
	}
}

static void too_many(void)
{
	json_t *list = json_array();
	struct tool_table none = { 0 }, fresh = { 0 }, more = { 0 };
	struct error e = { 0 };
	int one;
	for (int i = 0; i <= LIMIT_TOOLS; i++)
		json_array_append_new(list, json_pack("{s:o}", "name", json_sprintf("t%d", i)));
	OK(tool_table_merge(&none, list, NULL, NULL, &fresh, &e) == -E2BIG);
	OK_STR(e.slug, "too_many_tools");
	json_array_remove(list, LIMIT_TOOLS);
	OK(tool_table_merge(&none, list, NULL, NULL, &fresh, &e) == 0 && fresh.n == LIMIT_TOOLS);
	_cleanup_json_ json_t *another = tree("[{\"name\":\"other\"}]");
	OK(tool_table_merge(&fresh, another, NULL, &one, &more, &e) == -E2BIG && !more.n);
	char *large = malloc(LIMIT_TOOL_BYTES + 1);
	memset(large, 'x', LIMIT_TOOL_BYTES);
	large[LIMIT_TOOL_BYTES] = '\0';
	_cleanup_json_ json_t *big = json_pack("[{s:s,s:s}]", "name", "a", "description", large);
	OK(tool_table_merge(&none, big, NULL, NULL, &more, &e) == -EINVAL &&
		strstr(e.text, "bytes long"));
	free(large);
	tool_table_finish(&fresh);
	json_decref(list);
}

/* Each client's tools are its own; a name belongs to whoever gave it last. */
static void merges(void)
{
	_cleanup_json_ json_t *ab = tree(
		"[{\"name\":\"a\",\"max_calls\":3},{\"name\":\"b\",\"timeout_s\":1.5}]");
	_cleanup_json_ json_t
		*bc = tree("[{\"name\":\"b\",\"source\":\"def b(): pass\"},{\"name\":\"c\"}]"),
		*none = tree("[]");
	struct tool_table empty = { 0 }, first = { 0 }, second = { 0 }, third = { 0 };
	struct error e = { 0 };
	int one, two;
	OK(tool_table_merge(&empty, ab, NULL, &one, &first, &e) == 0 && first.n == 2);
	OK(first.tool[0].max_calls == 3 && first.tool[0].timeout_s == 60 &&
		first.tool[1].timeout_s == 1.5);
	first.tool[0].calls = 2;
	OK(tool_table_merge(&first, bc, NULL, &two, &second, &e) == 0 && second.n == 3 &&
		first.n == 2);
	OK(tool_table_find(&second, "a")->calls == 2 &&
		tool_table_find(&second, "a")->client == &one);
	OK(tool_table_find(&second, "b")->is_source &&
		tool_table_find(&second, "b")->client == &two);
	OK(!tool_table_find(&second, "d"));
	OK(tool_table_merge(&second, none, NULL, &one, &third, &e) == 0 && third.n == 2 &&
		!tool_table_find(&third, "a"));
	char *text = tool_table_dump(&third);
	_cleanup_json_ json_t *dumped = tree(text);
	OK(json_array_size(dumped) == 2 &&
		json_is_false(
			json_object_get(json_object_get(json_array_get(dumped, 1), "parameters"),
				"additionalProperties")));
	free(text);
	tool_table_finish(&first);
	tool_table_finish(&second);
	tool_table_finish(&third);
}

/* The last client that answers input() is asked; definitions can be given as they are listed. */
static void one_answers_input(void)
{
	struct tool_table none = { 0 }, first = { 0 }, second = { 0 };
	_cleanup_json_ json_t *a = tree("[{\"name\":\"a\",\"input\":true},{\"name\":\"x\"}]");
	_cleanup_json_ json_t *list = json_array();
	struct error e = { 0 };
	int one, other;

	OK(tool_table_merge(&none, a, NULL, &one, &first, &e) == 0 && first.n == 2);
	json_array_append(list, first.tool[0].definition);
	json_object_set_new(first.tool[0].definition, "name", json_string("b"));
	OK(tool_table_merge(&first, list, NULL, &other, &second, &e) == 0 && second.n == 2);
	OK(second.tool[0].is_input && tool_table_find(&second, "x") &&
		!tool_table_find(&second, "a"));
	tool_table_finish(&first);
	tool_table_finish(&second);
}

int main(void)
{
	refuses();
	too_many();
	merges();
	one_answers_input();
	return tap_done();
}
