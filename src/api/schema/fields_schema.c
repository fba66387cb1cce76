/* The tables of fields.h as JSON Schema, and in words. */
#include <stdio.h>
#include <string.h>

#include "api/schema/fields.h"
#include "base/text.h"
#include "json/json_write.h"

static void put_type(struct json_writer *w, const char *type)
{
	json_field_cstr(w, "type", type);
}

static void put_numbers(const struct field *f, struct json_writer *w, const char *type)
{
	put_type(w, type);
	json_field_double(w, "minimum", f->min);
	json_field_double(w, "maximum", f->max);
}

static void put_string(const struct field *f, struct json_writer *w)
{
	put_type(w, "string");
	if (f->choices) {
		json_key(w, "enum");
		json_open_array(w);
		for (size_t i = 0; f->choices[i]; i++)
			json_put_cstr(w, f->choices[i]);
		json_close(w);
		return;
	}
	if (f->min > 0)
		json_field_double(w, "minLength", f->min);
	json_field_double(w, "maxLength", f->max);
}

static void put_words(const struct field *f, struct json_writer *w)
{
	put_type(w, "array");
	json_field_double(w, "maxItems", f->max);
	json_key(w, "items");
	json_open_object(w);
	put_type(w, "string");
	json_field_uint(w, "minLength", 1);
	json_field_uint(w, "maxLength", f->max_bytes);
	json_close(w);
}

static void put_env(const struct field *f, struct json_writer *w)
{
	put_type(w, "object");
	json_field_double(w, "maxProperties", f->max);
	json_key(w, "propertyNames");
	json_open_object(w);
	json_field_cstr(w, "pattern", "^[A-Za-z_][A-Za-z0-9_]*$");
	json_close(w);
	json_key(w, "additionalProperties");
	json_open_object(w);
	put_type(w, "string");
	json_close(w);
}

static void put_file_content(struct json_writer *w)
{
	json_key(w, "oneOf");
	json_open_array(w);
	json_open_object(w);
	put_type(w, "string");
	json_close(w);
	json_open_object(w);
	put_type(w, "object");
	json_key(w, "properties");
	json_open_object(w);
	json_key(w, "base64");
	json_open_object(w);
	put_type(w, "string");
	json_field_cstr(w, "contentEncoding", "base64");
	json_close(w);
	json_close(w);
	json_key(w, "required");
	json_put_raw(w, "[\"base64\"]", strlen("[\"base64\"]"));
	json_field_bool(w, "additionalProperties", false);
	json_close(w);
	json_close(w);
}

static void put_files(const struct field *f, struct json_writer *w)
{
	put_type(w, "object");
	json_field_double(w, "maxProperties", f->max);
	json_key(w, "additionalProperties");
	json_open_object(w);
	put_file_content(w);
	json_close(w);
}

static void put_id(const struct field *f, struct json_writer *w)
{
	json_key(w, "type");
	json_put_raw(w, "[\"string\",\"integer\"]", strlen("[\"string\",\"integer\"]"));
	json_field_double(w, "maxLength", f->max);
}

static void put_network(const struct field *f, struct json_writer *w)
{
	static const char words[] = "{\"type\":\"string\",\"enum\":[\"none\",\"loopback\"]}";
	json_key(w, "oneOf");
	json_open_array(w);
	json_put_raw(w, words, strlen(words));
	json_open_object(w);
	put_type(w, "object");
	json_key(w, "properties");
	json_open_object(w);
	json_key(w, "allow");
	json_open_object(w);
	put_words(&(struct field){ .max = f->max, .max_bytes = f->max_bytes }, w);
	json_close(w);
	json_close(w);
	json_key(w, "required");
	json_put_raw(w, "[\"allow\"]", strlen("[\"allow\"]"));
	json_field_bool(w, "additionalProperties", false);
	json_close(w);
	json_close(w);
}

static void put_object_type(const struct field *f, struct json_writer *w)
{
	if (!(f->flags & FIELD_OR_BOOL)) {
		put_type(w, "object");
		return;
	}
	json_key(w, "type");
	json_open_array(w);
	json_put_cstr(w, "boolean");
	json_put_cstr(w, "object");
	json_close(w);
}

static void put_shape(const struct field *f, struct json_writer *w)
{
	switch (f->type) {
	case FIELD_BOOL:
		put_type(w, "boolean");
		break;
	case FIELD_UINT:
		put_numbers(f, w, "integer");
		break;
	case FIELD_NUMBER:
		put_numbers(f, w, "number");
		break;
	case FIELD_WORD:
	case FIELD_CHOICE:
	case FIELD_TEXT:
		put_string(f, w);
		break;
	case FIELD_WORDS:
		put_words(f, w);
		break;
	case FIELD_ENV:
		put_env(f, w);
		break;
	case FIELD_FILES:
		put_files(f, w);
		break;
	case FIELD_ID:
		put_id(f, w);
		break;
	case FIELD_NAMED:
		json_field_raw(
			w, "type", "[\"string\",\"object\"]", strlen("[\"string\",\"object\"]"));
		break;
	case FIELD_JSON:
	case FIELD_MATCH:
		put_type(w, "object");
		break;
	case FIELD_LIST:
		put_type(w, "array");
		break;
	case FIELD_VALUE:
		break;
	case FIELD_OBJECT:
		put_object_type(f, w);
		break;
	case FIELD_NETWORK:
		put_network(f, w);
		break;
	}
}

static void put_members(const struct fields *f, struct json_writer *w);

void fields_write_value_schema(const struct field *f, struct json_writer *w)
{
	json_open_object(w);
	put_shape(f, w);
	if (f->type == FIELD_OBJECT)
		put_members(f->object, w);
	if (f->help)
		json_field_cstr(w, "description", f->help);
	if (f->example) {
		json_key(w, "examples");
		json_open_array(w);
		json_put_raw(w, f->example, strlen(f->example));
		json_close(w);
	}
	json_close(w);
}

static void put_required(const struct fields *f, struct json_writer *w)
{
	size_t n = 0;
	for (size_t i = 0; i < f->n; i++)
		n += f->field[i].flags & FIELD_REQUIRED ? 1 : 0;
	if (!n)
		return;
	json_key(w, "required");
	json_open_array(w);
	for (size_t i = 0; i < f->n; i++)
		if (f->field[i].flags & FIELD_REQUIRED)
			json_put_cstr(w, f->field[i].name);
	json_close(w);
}

static void put_members(const struct fields *f, struct json_writer *w)
{
	json_key(w, "properties");
	json_open_object(w);
	for (size_t i = 0; i < f->n; i++) {
		json_key(w, f->field[i].name);
		fields_write_value_schema(&f->field[i], w);
	}
	json_close(w);
	put_required(f, w);
	json_field_bool(w, "additionalProperties", false);
}

void fields_write_schema(const struct fields *f, struct json_writer *w)
{
	json_open_object(w);
	put_type(w, "object");
	put_members(f, w);
	json_close(w);
}

static const char *size_text(double bytes, char buf[32])
{
	if (bytes >= 1 << 20)
		snprintf(buf, 32, "%.15g MiB", bytes / (1 << 20));
	else if (bytes >= 4096)
		snprintf(buf, 32, "%.15g KiB", bytes / 1024);
	else
		snprintf(buf, 32, "%.15g bytes", bytes);
	return buf;
}

/* Types whose description does not depend on the field's limits. */
static const char *const fixed_descriptions[] = {
	[FIELD_BOOL] = "boolean",
	[FIELD_ID] = "string or whole number",
	[FIELD_NAMED] = "name or object",
	[FIELD_VALUE] = "any value",
	[FIELD_NETWORK] = "\"none\", \"loopback\" or {\"allow\": [rules]}",
};

static void describe_choices(const char *const *choices, char *buf, size_t size)
{
	size_t n = 0;
	for (size_t i = 0; choices[i] && n < size; i++)
		n += (size_t)snprintf(
			buf + n, size - n, "%s\"%s\"", i ? " or " : "word, ", choices[i]);
}

char *fields_describe(const struct field *f, char *buf, size_t size)
{
	char bytes[32];

	if (f->type < ARRAY_LEN(fixed_descriptions) && fixed_descriptions[f->type]) {
		snprintf(buf, size, "%s", fixed_descriptions[f->type]);
		return buf;
	}

	if (f->choices) {
		describe_choices(f->choices, buf, size);
		return buf;
	}

	switch (f->type) {
	case FIELD_UINT:
		snprintf(buf, size, "whole number, %.16g to %.16g", f->min, f->max);
		break;
	case FIELD_NUMBER:
		snprintf(buf, size, "number, %.16g to %.16g", f->min, f->max);
		break;
	case FIELD_WORDS:
		snprintf(buf, size, "list of at most %.0f strings", f->max);
		break;
	case FIELD_ENV:
		snprintf(buf, size, "object of at most %.0f names and texts", f->max);
		break;
	case FIELD_FILES:
		snprintf(buf, size, "object of at most %.0f paths and contents, %s in all", f->max,
			size_text((double)f->max_bytes, bytes));
		break;
	case FIELD_JSON:
		snprintf(buf, size, "object, at most %s as JSON", size_text(f->max, bytes));
		break;
	case FIELD_MATCH:
		snprintf(buf, size, "text behind %s.KEY", f->name);
		break;
	case FIELD_LIST:
		snprintf(buf, size, "list of at most %.0f", f->max);
		break;
	case FIELD_OBJECT:
		snprintf(buf, size, f->flags & FIELD_OR_BOOL ? "boolean or object" : "object");
		break;
	default:
		snprintf(buf, size, "string, at most %s", size_text(f->max, bytes));
	}

	return buf;
}
