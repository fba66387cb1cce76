#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "tap.h"
#include "json/json_read.h"
#include "json/json_schema.h"

static json_t *tree(const char *text)
{
	json_t *t = NULL;
	struct error e = { 0 };
	if (json_read(text, strlen(text), &e, &t) < 0)
		printf("# %s: %s\n", text, e.text);
	return t;
}

static void refuses_schemas(void)
{
	static const struct {
		const char *schema, *says;
	} bad[] = {
		{ "[]", "tool: $: must be a schema" },
		{ "{\"type\":\"text\"}", "$.type: must be null, boolean" },
		{ "{\"type\":[]}", "$.type: must be" },
		{ "{\"type\":[\"string\",[\"null\"]]}", "$.type[1]: must be" },
		{ "{\"$ref\":\"#/x\"}", "\"$ref\" is not understood" },
		{ "{\"properties\":{\"a\":{\"oneOf\":[{}]}}}",
			"$.properties.a.oneOf: \"oneOf\" is not understood" },
		{ "{\"properties\":[1]}", "$.properties: must be an object" },
		{ "{\"required\":\"a\"}", "$.required: must be a list of names" },
		{ "{\"required\":[1]}", "$.required: must be a list of names" },
		{ "{\"items\":[{}]}", "$.items: must be a schema" },
		{ "{\"enum\":[]}", "$.enum: must be a list" },
		{ "{\"anyOf\":[]}", "$.anyOf: must be a list" },
		{ "{\"anyOf\":[{},{\"minimum\":\"1\"}]}", "$.anyOf[1].minimum: must be a number" },
		{ "{\"minLength\":-1}", "$.minLength: must be a whole number" },
		{ "{\"nullable\":1}", "$.nullable: must be true or false" },
		{ "{\"additionalProperties\":3}", "$.additionalProperties: must be a schema" },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_json_ json_t *s = tree(bad[i].schema);
		struct error e = { 0 };
		int r = schema_check(s, "tool", &e);
		OK(r == -EINVAL && strstr(e.text, bad[i].says) &&
			text_eq(e.slug, "invalid_schema"));
		if (!strstr(e.text, bad[i].says))
			printf("# %s: %s\n", bad[i].schema, e.text);
	}
}

static void refuses_depth(void)
{
	char text[4096] = "";
	size_t n = 0;
	for (int i = 0; i < LIMIT_SCHEMA_DEPTH; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "{\"items\":");
	n += (size_t)snprintf(text + n, sizeof(text) - n, "{}");
	for (int i = 0; i < LIMIT_SCHEMA_DEPTH; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "}");
	_cleanup_json_ json_t *s = tree(text);
	struct error e = { 0 };
	OK(schema_check(s, "tool", &e) == -EINVAL && strstr(e.text, "levels deep"));
	OK(schema_check(json_object_get(s, "items"), "tool", &e) == 0);
}

static void judges(void)
{
	static const struct {
		const char *schema, *value, *says; /* says NULL: it fits */
	} cases[] = {
		{ "{}", "[1,{\"a\":null}]", NULL },
		{ "{\"type\":\"any\"}", "null", NULL },
		{ "{\"type\":\"string\"}", "\"x\"", NULL },
		{ "{\"type\":\"string\"}", "1",
			"$: must be of type \"string\", not a whole number" },
		{ "{\"type\":\"integer\"}", "1.0", NULL },
		{ "{\"type\":\"integer\"}", "1.5", "not a number" },
		{ "{\"type\":\"integer\"}", "true", "not a boolean" },
		{ "{\"type\":\"number\"}", "3", NULL },
		{ "{\"type\":[\"string\",\"null\"]}", "null", NULL },
		{ "{\"type\":[\"string\",\"null\"]}", "[]", "[\"string\",\"null\"], not an array" },
		{ "{\"type\":\"string\",\"nullable\":true}", "null", NULL },
		{ "{\"type\":\"string\",\"nullable\":true,\"enum\":[\"a\"]}", "null", NULL },
		{ "{\"enum\":[\"a\",2]}", "2", NULL },
		{ "{\"enum\":[\"a\",2]}", "\"b\"", "must be one of [\"a\",2]" },
		{ "{\"const\":5}", "5", NULL },
		{ "{\"const\":5}", "6", "must be 5" },
		{ "{\"minimum\":1,\"maximum\":9}", "9", NULL },
		{ "{\"minimum\":1}", "0.5", "at least 1, not 0.5" },
		{ "{\"maximum\":9}", "10", "at most 9" },
		{ "{\"exclusiveMinimum\":1}", "1", "more than 1" },
		{ "{\"exclusiveMaximum\":1}", "1", "less than 1" },
		{ "{\"maxLength\":2}", "\"é€\"", NULL },
		{ "{\"maxLength\":2}", "\"abc\"", "at most 2 characters, not 3" },
		{ "{\"minLength\":2}", "\"a\"", "at least 2 characters" },
		{ "{\"items\":{\"type\":\"integer\"}}", "[1,2,\"x\"]",
			"$[2]: must be of type \"integer\"" },
		{ "{\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]}}}", "{\"a\":1}",
			"$.a: must be of type" },
		{ "{\"items\":{\"items\":{\"type\":[\"integer\",\"null\"]}}}", "[[1,null]]", NULL },
		{ "{\"items\":{\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}}",
			"[[\"a\",1,true],[\"b\"]]", NULL },
		{ "{\"prefixItems\":[{\"type\":\"string\"}],\"items\":{\"type\":\"integer\"}}",
			"[\"a\",1,\"x\"]", "$[2]: must be of type \"integer\"" },
		{ "{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\",1]",
			"at most 1 items, not 2" },
		{ "{\"minItems\":1}", "[]", "at least 1 items" },
		{ "{\"maxItems\":1}", "[1,2]", "at most 1 items" },
		{ "{\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}", "{}",
			"$: \"a\" is missing" },
		{ "{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1,\"b\":2}",
			"$.a: must be" },
		{ "{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "{\"b\":2}",
			"there is no \"b\"" },
		{ "{\"additionalProperties\":{\"type\":\"integer\"}}", "{\"b\":\"x\"}",
			"$.b: must be" },
		{ "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", "4", NULL },
		{ "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", "[]",
			"none of the 2 alternatives" },
		{ "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}",
			"{\"__type__\":\"tuple\",\"data\":[1,2]}", NULL },
		{ "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}",
			"{\"__type__\":\"set\",\"data\":[1,\"x\"]}", "$[1]: must" },
		{ "{\"type\":\"string\"}", "{\"__type__\":\"datetime\",\"data\":\"2020-01-01\"}",
			NULL },
		{ "{\"type\":\"number\",\"minimum\":0}",
			"{\"__type__\":\"Decimal\",\"data\":\"1.5\"}", NULL },
		{ "{\"type\":\"object\"}", "{\"__type__\":\"unheard-of\"}", NULL },
		{ "{\"type\":\"array\"}", "{\"__type__\":\"tuple\",\"data\":\"no list\"}", NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_json_ json_t *s = tree(cases[i].schema), *v = tree(cases[i].value);
		struct error e = { 0 };
		OK(schema_check(s, "s", &e) == 0);
		int r = schema_validate(s, v, &e);
		OK(cases[i].says ? r == -EINVAL && strstr(e.text, cases[i].says) != NULL : r == 0);
		if (cases[i].says ? !strstr(e.text, cases[i].says) : r != 0)
			printf("# %s of %s: %s\n", cases[i].value, cases[i].schema, e.text);
		OK(schema_validate(s, v, NULL) == r);
	}
}

/*
 * Alternatives inside alternatives multiply: the work is bounded, not the patience of whoever
 * waits.
 */
static void bounded_work(void)
{
	json_t *schema = json_pack("{s:s}", "type", "string");
	for (int i = 0; i < 14; i++)
		schema = json_pack("{s:[O,O,o]}", "anyOf", schema, schema, schema);
	_cleanup_json_ json_t *value = tree("1");
	struct error e = { 0 };
	OK(schema_validate(schema, value, &e) == -E2BIG && strstr(e.text, "steps"));
	json_decref(schema);
}

static void defaults(void)
{
	_cleanup_json_ json_t *s = tree(
		"{\"properties\":{\"a\":{\"default\":[1]},\"b\":{},\"c\":{\"default\":2}}}");
	_cleanup_json_ json_t *v = tree("{\"c\":3}"), *want = tree("{\"a\":[1],\"c\":3}");
	OK(schema_fill_defaults(s, v) == 0 && json_equal(v, want));
	OK(json_object_get(v, "a") !=
		json_object_get(json_object_get(json_object_get(s, "properties"), "a"), "default"));
}

int main(void)
{
	refuses_schemas();
	refuses_depth();
	judges();
	bounded_work();
	defaults();
	return tap_done();
}
