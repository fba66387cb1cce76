/* Is this a schema that we understand? */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "json/json_schema.h"
#include "json/json_schema_internal.h"

static const char *const type_words[] = { "null", "boolean", "integer", "number", "string", "array",
	"object", "any", NULL };

struct checker {
	const char *where;
	struct error *e;
};

static int bad_schema(const struct checker *c, const struct spot *s, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int bad_schema(const struct checker *c, const struct spot *s, const char *fmt, ...)
{
	char path[SPOT_PATH_MAX], text[200];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	spot_path(s, path, sizeof(path));
	error_set(c->e, -EINVAL, "%s: %s: %s", c->where, path, text);
	error_remedy(c->e, "docs/tools.md lists the supported part of JSON Schema.");
	error_slug(c->e, "invalid_schema");
	return -EINVAL;
}

static int check(
	const struct checker *c, const json_t *schema, const struct spot *s, unsigned depth);

static int check_type_word(const struct checker *c, const json_t *v, const struct spot *s)
{
	const char *word = json_string_value(v);
	for (size_t i = 0; word && type_words[i]; i++)
		if (text_eq(type_words[i], word))
			return 0;
	return bad_schema(c, s,
		"must be null, boolean, integer, number, string, array, object, any, or a list of "
		"these");
}

static int check_type(
	const struct checker *c, const json_t *v, const struct spot *s, unsigned depth)
{
	(void)depth;
	if (!json_array_size(v))
		return check_type_word(c, v, s);
	for (size_t i = 0; i < json_array_size(v); i++) {
		struct spot item = { s, NULL, i };
		int r = check_type_word(c, json_array_get(v, i), &item);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_map(const struct checker *c, const json_t *v, const struct spot *s, unsigned depth)
{
	const char *key;
	json_t *value;
	if (!json_is_object(v))
		return bad_schema(c, s, "must be an object of schemas");
	json_object_foreach((json_t *)v, key, value)
	{
		struct spot member = { s, key, 0 };
		int r = check(c, value, &member, depth + 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_names(
	const struct checker *c, const json_t *v, const struct spot *s, unsigned depth)
{
	(void)depth;
	for (size_t i = 0; i < json_array_size(v); i++)
		if (!json_is_string(json_array_get(v, i)))
			return bad_schema(c, s, "must be a list of names");
	return json_is_array(v) ? 0 : bad_schema(c, s, "must be a list of names");
}

static int check_one_or_bool(
	const struct checker *c, const json_t *v, const struct spot *s, unsigned depth)
{
	return json_is_boolean(v) ? 0 : check(c, v, s, depth + 1);
}

static int check_several(
	const struct checker *c, const json_t *v, const struct spot *s, unsigned depth)
{
	if (!json_array_size(v))
		return bad_schema(c, s, "must be a list of schemas, with at least one");
	for (size_t i = 0; i < json_array_size(v); i++) {
		struct spot item = { s, NULL, i };
		int r = check(c, json_array_get(v, i), &item, depth + 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_list(
	const struct checker *c, const json_t *v, const struct spot *s, unsigned depth)
{
	(void)depth;
	return json_array_size(v) ? 0
				  : bad_schema(c, s, "must be a list of values, with at least one");
}

static int check_number(
	const struct checker *c, const json_t *v, const struct spot *s, unsigned depth)
{
	(void)depth;
	return json_is_number(v) ? 0 : bad_schema(c, s, "must be a number");
}

static int check_size(
	const struct checker *c, const json_t *v, const struct spot *s, unsigned depth)
{
	(void)depth;
	return json_is_integer(v) && json_integer_value(v) >= 0
		       ? 0
		       : bad_schema(c, s, "must be a whole number, 0 or more");
}

static int check_bool(
	const struct checker *c, const json_t *v, const struct spot *s, unsigned depth)
{
	(void)depth;
	return json_is_boolean(v) ? 0 : bad_schema(c, s, "must be true or false");
}

static int check_nothing(
	const struct checker *c, const json_t *v, const struct spot *s, unsigned depth)
{
	(void)c, (void)v, (void)s, (void)depth;
	return 0;
}

static const struct {
	const char *word;
	int (*check)(
		const struct checker *c, const json_t *v, const struct spot *s, unsigned depth);
} keywords[] = {
	{ "type", check_type },
	{ "properties", check_map },
	{ "required", check_names },
	{ "additionalProperties", check_one_or_bool },
	{ "items", check_one_or_bool },
	{ "prefixItems", check_several },
	{ "enum", check_list },
	{ "const", check_nothing },
	{ "anyOf", check_several },
	{ "nullable", check_bool },
	{ "default", check_nothing },
	{ "minimum", check_number },
	{ "maximum", check_number },
	{ "exclusiveMinimum", check_number },
	{ "exclusiveMaximum", check_number },
	{ "minLength", check_size },
	{ "maxLength", check_size },
	{ "minItems", check_size },
	{ "maxItems", check_size },
	{ "title", check_nothing },
	{ "description", check_nothing },
	{ "examples", check_nothing },
	{ "example", check_nothing },
	{ "format", check_nothing },
	{ "deprecated", check_nothing },
	{ "readOnly", check_nothing },
	{ "writeOnly", check_nothing },
	{ "$schema", check_nothing },
	{ "$id", check_nothing },
	{ "$comment", check_nothing },
};

static int check_keyword(const struct checker *c, const char *word, const json_t *v,
	const struct spot *s, unsigned depth)
{
	for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
		if (text_eq(keywords[i].word, word))
			return keywords[i].check(c, v, s, depth);
	return bad_schema(c, s, "\"%.*s\" is not understood here, so it would not be enforced",
		SPOT_WORD_MAX, word);
}

static int check(
	const struct checker *c, const json_t *schema, const struct spot *s, unsigned depth)
{
	const char *word;
	json_t *v;

	if (!json_is_object(schema))
		return bad_schema(c, s, "must be a schema, a JSON object");
	if (depth > LIMIT_SCHEMA_DEPTH)
		return bad_schema(c, s, "is more than %d levels deep", LIMIT_SCHEMA_DEPTH);
	json_object_foreach((json_t *)schema, word, v)
	{
		struct spot here = { s, word, 0 };
		int r = check_keyword(c, word, v, &here, depth);
		if (r < 0)
			return r;
	}

	return 0;
}

int schema_check(const json_t *schema, const char *where, struct error *e)
{
	struct checker c = { where, e };
	return check(&c, schema, NULL, 1);
}
