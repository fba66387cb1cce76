#include "dialects/common/pydantic.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char documents[] = "https://errors.pydantic.dev/2.12/v/";

void pydantic_init(struct pydantic *p, const char *root, bool urls)
{
	*p = (struct pydantic){ .errors = json_array(), .root = root, .urls = urls };
}

void pydantic_finish(struct pydantic *p)
{
	json_decref(p->errors);
	p->errors = NULL;
}

size_t pydantic_count(const struct pydantic *p)
{
	return json_array_size(p->errors);
}

char *pydantic_text(const struct pydantic *p)
{
	return json_dumps(p->errors, JSON_COMPACT | JSON_REAL_PRECISION(15));
}

void pydantic_add(struct pydantic *p, const char *type, const char *field, const char *msg,
	json_t *input, json_t *ctx)
{
	json_t *error = json_object(), *loc = json_array();
	char url[128];

	if (p->root)
		json_array_append_new(loc, json_string(p->root));
	if (field)
		json_array_append_new(loc, json_string(field));
	json_object_set_new(error, "type", json_string(type));
	json_object_set_new(error, "loc", loc);
	json_object_set_new(error, "msg", json_string(msg));
	if (input)
		json_object_set(error, "input", input);
	else
		json_object_set_new(error, "input", json_null());
	if (ctx)
		json_object_set_new(error, "ctx", ctx);
	if (p->urls) {
		snprintf(url, sizeof(url), "%s%s", documents, type);
		json_object_set_new(error, "url", json_string(url));
	}

	json_array_append_new(p->errors, error);
}

void pydantic_missing(struct pydantic *p, const char *field, json_t *input)
{
	pydantic_add(p, "missing", field, "Field required", input, NULL);
}

static size_t characters(const json_t *v)
{
	const char *s = json_string_value(v);
	size_t n = 0;
	for (size_t i = 0; i < json_string_length(v); i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

json_t *pydantic_string(
	struct pydantic *p, json_t *object, const char *field, bool nullable, size_t max_length)
{
	json_t *v = json_object_get(object, field);
	char msg[64];

	if (!v || (nullable && json_is_null(v)))
		return NULL;
	if (!json_is_string(v)) {
		pydantic_add(p, "string_type", field, "Input should be a valid string", v, NULL);
		return NULL;
	}

	if (!max_length || characters(v) <= max_length)
		return v;
	snprintf(msg, sizeof(msg), "String should have at most %zu characters", max_length);
	pydantic_add(p, "string_too_long", field, msg, v,
		json_pack("{s:I}", "max_length", (json_int_t)max_length));
	return NULL;
}

json_t *pydantic_dict(struct pydantic *p, json_t *object, const char *field, bool required)
{
	json_t *v = json_object_get(object, field);
	if (json_is_object(v))
		return v;
	if (v)
		pydantic_add(p, "dict_type", field, "Input should be a valid dictionary", v, NULL);
	else if (required)
		pydantic_missing(p, field, object);
	return NULL;
}

json_t *pydantic_bool(struct pydantic *p, json_t *object, const char *field)
{
	json_t *v = json_object_get(object, field);
	if (!v || json_is_null(v) || json_is_boolean(v))
		return json_is_boolean(v) ? v : NULL;
	pydantic_add(p, "bool_type", field, "Input should be a valid boolean", v, NULL);
	return NULL;
}

static bool seed_from_text(struct pydantic *p, json_t *v, const char *field, long long *ret)
{
	char *end;
	const char *s = json_string_value(v);
	errno = 0;
	*ret = strtoll(s, &end, 10);
	if (!errno && end != s && !*end)
		return true;
	pydantic_add(p, "int_parsing", field,
		"Input should be a valid integer, unable to parse string as an integer", v, NULL);
	return false;
}

static bool seed_value(struct pydantic *p, json_t *v, const char *field, long long *ret)
{
	double d = json_real_value(v);
	if (json_is_string(v))
		return seed_from_text(p, v, field, ret);
	if (json_is_integer(v)) {
		*ret = json_integer_value(v);
		return true;
	}

	if (json_is_boolean(v)) { /* True is 1 to pydantic */
		*ret = json_is_true(v);
		return true;
	}

	if (!json_is_real(v)) {
		pydantic_add(p, "int_type", field, "Input should be a valid integer", v, NULL);
		return false;
	}

	if (d != floor(d) || fabs(d) > 9007199254740992.0) {
		pydantic_add(p, "int_from_float", field,
			"Input should be a valid integer, got a number with a fractional part", v,
			NULL);
		return false;
	}

	*ret = (long long)d;
	return true;
}

bool pydantic_seed(struct pydantic *p, json_t *object, const char *field, unsigned long long *ret)
{
	json_t *v = json_object_get(object, field);
	long long n;
	if (!v || json_is_null(v) || !seed_value(p, v, field, &n))
		return false;
	if (n < 0) {
		pydantic_add(p, "greater_than_equal", field,
			"Input should be greater than or equal to 0", v,
			json_pack("{s:i}", "ge", 0));
		return false;
	}
	*ret = (unsigned long long)n;
	return true;
}

static bool number(struct pydantic *p, json_t *object, const char *field, double *ret)
{
	json_t *v = json_object_get(object, field);
	double d;

	if (!v || json_is_null(v))
		return false;
	if (json_is_string(v) && text_parse_double(json_string_value(v), -1e300, 1e300, &d) < 0) {
		pydantic_add(p, "float_parsing", field,
			"Input should be a valid number, unable to parse string as a number", v,
			NULL);
		return false;
	}

	if (!json_is_string(v)) {
		if (!json_is_number(v) && !json_is_boolean(v)) {
			pydantic_add(
				p, "float_type", field, "Input should be a valid number", v, NULL);
			return false;
		}
		d = json_is_boolean(v) ? json_is_true(v) : json_number_value(v);
	}

	*ret = d;
	return true;
}

bool pydantic_positive(struct pydantic *p, json_t *object, const char *field, double *ret)
{
	double d;
	if (!number(p, object, field, &d))
		return false;
	if (d <= 0) {
		pydantic_add(p, "greater_than", field, "Input should be greater than 0",
			json_object_get(object, field), json_pack("{s:f}", "gt", 0.0));
		return false;
	}
	*ret = d;
	return true;
}

bool pydantic_up_to(struct pydantic *p, json_t *object, const char *field, double max, double *ret)
{
	char text[80];
	double d;

	if (!number(p, object, field, &d))
		return false;
	if (d >= 0 && d <= max) {
		*ret = d;
		return true;
	}

	bool low = d < 0;
	snprintf(text, sizeof(text), "Input should be %s than or equal to %g",
		low ? "greater" : "less", low ? 0 : max);
	pydantic_add(p, low ? "greater_than_equal" : "less_than_equal", field, text,
		json_object_get(object, field),
		json_pack("{s:f}", low ? "ge" : "le", low ? 0.0 : max));
	return false;
}

void pydantic_forbid_extra(struct pydantic *p, json_t *object, const char *const *known)
{
	const char *name;
	json_t *value;
	json_object_foreach(object, name, value)
	{
		size_t i = 0;
		while (known[i] && !text_eq(known[i], name))
			i++;
		if (!known[i])
			pydantic_add(p, "extra_forbidden", name, "Extra inputs are not permitted",
				value, NULL);
	}
}
