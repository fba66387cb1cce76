#include "json/json_schema.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "json/json_schema_internal.h"

size_t spot_path(const struct spot *s, char *out, size_t size)
{
	if (!s) {
		snprintf(out, size, "$");
		return 1;
	}
	size_t n = spot_path(s->parent, out, size);
	if (n >= size)
		return n;
	if (s->key)
		return n + (size_t)snprintf(out + n, size - n, ".%.*s", SPOT_WORD_MAX, s->key);
	return n + (size_t)snprintf(out + n, size - n, "[%zu]", s->index);
}

/* ---- what a value is -------------------------------------------------------- */

enum kind {
	KIND_NULL,
	KIND_BOOLEAN,
	KIND_INTEGER,
	KIND_NUMBER,
	KIND_STRING,
	KIND_ARRAY,
	KIND_OBJECT
};
static const char *const kind_names[] = { "null", "a boolean", "a whole number", "a number",
	"a string", "an array", "an object" };

/* Typed markers and what they stand for. Those with `data` of that same kind are looked into. */
static const struct {
	const char *type;
	enum kind kind;
} markers[] = { { "tuple", KIND_ARRAY }, { "set", KIND_ARRAY }, { "frozenset", KIND_ARRAY },
	{ "ndarray", KIND_ARRAY }, { "bytes", KIND_STRING }, { "datetime", KIND_STRING },
	{ "date", KIND_STRING }, { "time", KIND_STRING }, { "Path", KIND_STRING },
	{ "PIL.Image", KIND_STRING }, { "Decimal", KIND_NUMBER }, { "timedelta", KIND_NUMBER } };

static enum kind plain_kind(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_NULL:
		return KIND_NULL;
	case JSON_TRUE:
	case JSON_FALSE:
		return KIND_BOOLEAN;
	case JSON_INTEGER:
		return KIND_INTEGER;
	case JSON_REAL:
		return json_real_value(v) == floor(json_real_value(v)) ? KIND_INTEGER : KIND_NUMBER;
	case JSON_STRING:
		return KIND_STRING;
	case JSON_ARRAY:
		return KIND_ARRAY;
	default:
		return KIND_OBJECT;
	}
}

/*
 * The kind of a value; *ret_inside is what its rules about content apply to, NULL when they do not
 * apply to a marker.
 */
static enum kind kind_of(const json_t *v, const json_t **ret_inside)
{
	const char *type = json_string_value(json_object_get(v, "__type__"));
	*ret_inside = v;
	for (size_t i = 0; type && i < ARRAY_LEN(markers); i++) {
		if (!text_eq(markers[i].type, type))
			continue;
		const json_t *data = json_object_get(v, "data");
		*ret_inside = data && plain_kind(data) == markers[i].kind &&
					      markers[i].kind == KIND_ARRAY
				      ? data
				      : NULL;
		return markers[i].kind;
	}
	return plain_kind(v);
}

static bool kind_fits(enum kind k, const char *word)
{
	static const char *const words[] = { "null", "boolean", "integer", "number", "string",
		"array", "object" };
	return text_eq(word, words[k]) || text_eq(word, "any") ||
	       (k == KIND_INTEGER && text_eq(word, "number"));
}

static bool type_fits(const json_t *type, enum kind k)
{
	if (json_is_string(type))
		return kind_fits(k, json_string_value(type));
	for (size_t i = 0; i < json_array_size(type); i++)
		if (kind_fits(k, json_string_value(json_array_get(type, i))))
			return true;
	return false;
}

/* ---- holding a value to a schema -------------------------------------------- */

struct judge {
	struct error *e; /* NULL while alternatives are tried */
	unsigned steps;
};

static int wrong(const struct judge *j, const struct spot *s, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int wrong(const struct judge *j, const struct spot *s, const char *fmt, ...)
{
	char path[SPOT_PATH_MAX], text[300];
	va_list ap;
	if (!j->e)
		return -EINVAL;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	spot_path(s, path, sizeof(path));
	error_set(j->e, -EINVAL, "%s: %s", path, text);
	error_slug(j->e, "schema_mismatch");
	return -EINVAL;
}

static int validate(struct judge *j, const json_t *schema, const json_t *v, const struct spot *s);

/* JSON text of a value or a list, as much as helps. */
static void show(const json_t *v, char *out, size_t size)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	snprintf(out, size, "%s", text ? text : "");
	free(text);
}

static int judge_type(
	struct judge *j, const json_t *schema, const json_t *v, enum kind k, const struct spot *s)
{
	const json_t *type = json_object_get(schema, "type");
	char words[120];
	if (!type || type_fits(type, k) ||
		(k == KIND_NULL && json_is_true(json_object_get(schema, "nullable"))))
		return 0;
	show(type, words, sizeof(words));
	return wrong(j, s, "must be of type %s, not %s", words, kind_names[k]);
}

static int judge_choice(
	struct judge *j, const json_t *schema, const json_t *v, const struct spot *s)
{
	const json_t *choices = json_object_get(schema, "enum"),
		     *only = json_object_get(schema, "const");
	char words[200];

	if (only && !json_equal((json_t *)only, (json_t *)v)) {
		show(only, words, sizeof(words));
		return wrong(j, s, "must be %s", words);
	}

	if (!choices)
		return 0;
	for (size_t i = 0; i < json_array_size(choices); i++)
		if (json_equal(json_array_get(choices, i), (json_t *)v))
			return 0;
	show(choices, words, sizeof(words));
	return wrong(j, s, "must be one of %s", words);
}

static int judge_number(
	struct judge *j, const json_t *schema, const json_t *v, const struct spot *s)
{
	double x = json_number_value(v);
	const json_t *bound;

	if ((bound = json_object_get(schema, "minimum")) && !(x >= json_number_value(bound)))
		return wrong(
			j, s, "must be at least %.15g, not %.15g", json_number_value(bound), x);
	if ((bound = json_object_get(schema, "maximum")) && !(x <= json_number_value(bound)))
		return wrong(j, s, "must be at most %.15g, not %.15g", json_number_value(bound), x);
	if ((bound = json_object_get(schema, "exclusiveMinimum")) &&
		!(x > json_number_value(bound)))
		return wrong(
			j, s, "must be more than %.15g, not %.15g", json_number_value(bound), x);
	if ((bound = json_object_get(schema, "exclusiveMaximum")) &&
		!(x < json_number_value(bound)))
		return wrong(
			j, s, "must be less than %.15g, not %.15g", json_number_value(bound), x);
	return 0;
}

/* Lengths count characters, not bytes. */
static size_t characters(const json_t *v)
{
	const char *p = json_string_value(v);
	size_t n = 0;
	for (size_t i = 0; i < json_string_length(v); i++)
		n += ((unsigned char)p[i] & 0xc0) != 0x80;
	return n;
}

static int judge_size(struct judge *j, const json_t *schema, const char *least, const char *most,
	const char *unit, size_t n, const struct spot *s)
{
	const json_t *bound;
	if ((bound = json_object_get(schema, least)) && n < (size_t)json_integer_value(bound))
		return wrong(j, s, "must have at least %lld %s, not %zu",
			(long long)json_integer_value(bound), unit, n);
	if ((bound = json_object_get(schema, most)) && n > (size_t)json_integer_value(bound))
		return wrong(j, s, "must have at most %lld %s, not %zu",
			(long long)json_integer_value(bound), unit, n);
	return 0;
}

static int judge_array(struct judge *j, const json_t *schema, const json_t *v, const struct spot *s)
{
	/* the first ones have schemas of their own; `items` is for the others */
	const json_t *items = json_object_get(schema, "items"),
		     *first = json_object_get(schema, "prefixItems");
	size_t n = json_array_size(v), own = json_array_size(first);
	int r = judge_size(j, schema, "minItems", "maxItems", "items", n, s);
	if (r == 0 && json_is_false(items) && n > own)
		r = wrong(j, s, "must have at most %zu items, not %zu", own, n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct spot item = { s, NULL, i };
		const json_t *rule = i < own ? json_array_get(first, i) : items;
		if (json_is_object(rule))
			r = validate(j, rule, json_array_get(v, i), &item);
	}

	return r;
}

static int judge_required(
	struct judge *j, const json_t *schema, const json_t *v, const struct spot *s)
{
	const json_t *required = json_object_get(schema, "required");
	for (size_t i = 0; i < json_array_size(required); i++) {
		const char *name = json_string_value(json_array_get(required, i));
		if (!json_object_get(v, name))
			return wrong(j, s, "\"%.*s\" is missing", SPOT_WORD_MAX, name);
	}
	return 0;
}

static int judge_object(
	struct judge *j, const json_t *schema, const json_t *v, const struct spot *s)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *others = json_object_get(schema, "additionalProperties");
	const char *key;
	json_t *value;
	int r = judge_required(j, schema, v, s);

	if (r < 0)
		return r;
	json_object_foreach((json_t *)v, key, value)
	{
		struct spot member = { s, key, 0 };
		const json_t *rule = json_object_get(properties, key);
		if (!rule && json_is_false(others))
			return wrong(j, s, "there is no \"%.*s\"", SPOT_WORD_MAX, key);
		if (!rule && json_is_object(others))
			rule = others;
		if (rule && (r = validate(j, rule, value, &member)) < 0)
			return r;
	}

	return 0;
}

static int judge_alternatives(
	struct judge *j, const json_t *schema, const json_t *v, const struct spot *s)
{
	const json_t *several = json_object_get(schema, "anyOf");
	struct judge trial = { NULL, j->steps };
	if (!several)
		return 0;
	int r = -EINVAL;
	for (size_t i = 0; r == -EINVAL && i < json_array_size(several); i++)
		r = validate(&trial, json_array_get(several, i), v, s);
	j->steps = trial.steps;
	return r == -EINVAL
		       ? wrong(j, s, "fits none of the %zu alternatives", json_array_size(several))
		       : r;
}

static int judge_content(struct judge *j, const json_t *schema, const json_t *inside, enum kind k,
	const struct spot *s)
{
	switch (k) {
	case KIND_INTEGER:
	case KIND_NUMBER:
		return judge_number(j, schema, inside, s);
	case KIND_STRING:
		return judge_size(
			j, schema, "minLength", "maxLength", "characters", characters(inside), s);
	case KIND_ARRAY:
		return judge_array(j, schema, inside, s);
	case KIND_OBJECT:
		return judge_object(j, schema, inside, s);
	default:
		return 0;
	}
}

static int validate(struct judge *j, const json_t *schema, const json_t *v, const struct spot *s)
{
	const json_t *inside;
	enum kind k = kind_of(v, &inside);
	if (++j->steps > LIMIT_SCHEMA_STEPS)
		return -E2BIG;
	int r = judge_type(j, schema, v, k, s);
	if (r < 0 || (k == KIND_NULL && json_is_true(json_object_get(schema, "nullable"))))
		return r;
	r = judge_choice(j, schema, v, s);
	if (r == 0 && inside)
		r = judge_content(j, schema, inside, k, s);
	return r < 0 ? r : judge_alternatives(j, schema, v, s);
}

int schema_validate(const json_t *schema, const json_t *value, struct error *e)
{
	struct error ignored;
	struct judge j = { e ? e : &ignored, 0 };
	int r = validate(&j, schema, value, NULL);
	if (r == -E2BIG)
		error_set(e, r, "checking the value against its schema takes more than %d steps",
			LIMIT_SCHEMA_STEPS);
	return r;
}

int schema_fill_defaults(const json_t *schema, json_t *object)
{
	const char *key;
	json_t *rule;
	json_object_foreach(json_object_get(schema, "properties"), key, rule)
	{
		const json_t *value = json_object_get(rule, "default");
		if (!value || json_object_get(object, key))
			continue;
		if (json_object_set_new(object, key, json_deep_copy(value)) < 0)
			return -ENOMEM;
	}
	return 0;
}
