/* Query strings decoded with the tables of fields.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/schema/fields.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "base/text.h"
#include "http/http.h"

enum { NAME_BYTES = 128, VALUE_BYTES = LIMIT_PATH_BYTES + 1 };

static int bad(struct error *e, const char *slug)
{
	error_slug(e, slug);
	return -EINVAL;
}

static int wrong(struct error *e, const struct field *f, const char *rule)
{
	char shape[96];
	error_set(e, -EINVAL, "?%s: %s", f->name, rule);
	error_remedy(e, "%s takes a %s.", f->name, fields_describe(f, shape, sizeof(shape)));
	return bad(e, "invalid_parameter");
}

/* A FIELD_MATCH is asked for by "name.KEY": its bare name is not a parameter. */
static int unknown(struct error *e, const struct fields *f, const char *name)
{
	const char *names[LIMIT_QUERY_PARAMS + 1];
	char list[ERROR_REMEDY_MAX - 32];
	size_t n = 0, len = 0;

	list[0] = '\0';
	for (; n < f->n && n < LIMIT_QUERY_PARAMS; n++) {
		names[n] = f->field[n].name;
		if (len < sizeof(list))
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s%s",
				n ? ", " : "", names[n],
				f->field[n].type == FIELD_MATCH ? ".KEY" : "");
	}

	names[n] = NULL;
	const char *near = nearest_word(name, names);
	bool exact = near && text_eq(near, name);
	if (near)
		error_set(e, -EINVAL, "?%.64s: unknown parameter; did you mean \"%s%s\"?", name,
			near, exact ? ".KEY" : "");
	else
		error_set(e, -EINVAL, "?%.64s: unknown parameter", name);
	if (f->n)
		error_remedy(e, "Known parameters: %s.", list);
	else
		error_remedy(e, "This address takes no parameters.");
	return bad(e, "unknown_parameter");
}

/* Finds the row; for "name.KEY" of a FIELD_MATCH also where the key starts. */
static const struct field *find(const struct fields *f, const char *name, const char **ret_key)
{
	*ret_key = NULL;
	for (size_t i = 0; i < f->n; i++) {
		const struct field *field = &f->field[i];
		size_t len = strlen(field->name);
		if (field->type != FIELD_MATCH && text_eq(field->name, name))
			return field;
		if (field->type == FIELD_MATCH && !strncmp(field->name, name, len) &&
			name[len] == '.' && name[len + 1]) {
			*ret_key = name + len + 1;
			return field;
		}
	}
	return NULL;
}

static int add_match(struct field_match *m, const struct field *f, const char *key,
	const char *value, struct error *e)
{
	if ((double)m->n >= f->max)
		return wrong(e, f, "is given too often");
	struct field_pair *more = reallocarray(m->pair, m->n + 1, sizeof(*more));
	if (!more)
		return error_set(e, -ENOMEM, "out of memory");
	m->pair = more;
	struct field_pair pair = { .key = strdup(key), .value = strdup(value) };
	m->pair[m->n++] = pair;
	return pair.key && pair.value ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int store_number(const struct field *f, const char *value, void *to, struct error *e)
{
	char rule[96];
	int r = f->type == FIELD_UINT
			? text_parse_u64(value, (uint64_t)f->min, (uint64_t)f->max, to)
			: text_parse_double(value, f->min, f->max, to);
	if (!r)
		return 0;
	snprintf(rule, sizeof(rule), "must be a %s between %.16g and %.16g",
		f->type == FIELD_UINT ? "whole number" : "number", f->min, f->max);
	return wrong(e, f, rule);
}

static int store_word(const struct field *f, const char *value, char **to, struct error *e)
{
	char rule[160];
	size_t n = 0;
	bool known = !f->choices;

	if (strlen(value) < (size_t)f->min)
		return wrong(e, f, "must not be empty");
	if (strlen(value) > (size_t)f->max)
		return wrong(e, f, "is too long");
	for (size_t i = 0; f->choices && f->choices[i]; i++) {
		known = known || text_eq(f->choices[i], value);
		if (n < sizeof(rule))
			n += (size_t)snprintf(rule + n, sizeof(rule) - n, "%s%s",
				i ? ", " : "must be one of ", f->choices[i]);
	}

	if (!known)
		return wrong(e, f, rule);
	free(*to);
	*to = strdup(value);
	return *to ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int store(
	const struct field *f, const char *key, const char *value, void *base, struct error *e)
{
	void *to = (char *)base + f->offset;
	switch (f->type) {
	case FIELD_BOOL:
		/* "?recursive" alone means yes. */
		return !*value                          ? (*(bool *)to = true, 0)
		       : text_parse_bool(value, to) < 0 ? wrong(e, f, "must be true or false")
							: 0;
	case FIELD_UINT:
	case FIELD_NUMBER:
		return store_number(f, value, to, e);
	case FIELD_MATCH:
		return add_match(to, f, key, value, e);
	default:
		return store_word(f, value, to, e);
	}
}

/* "name[KEY]", as OpenAPI's deepObject style writes it, means "name.KEY". */
static void unbracket(char *name)
{
	char *open = strchr(name, '[');
	size_t len = strlen(name);
	if (!open || name[len - 1] != ']')
		return;
	*open = '.';
	name[len - 1] = '\0';
}

static int decode_pair(
	const struct fields *f, const char *pair, size_t len, void *base, struct error *e)
{
	char name[NAME_BYTES], value[VALUE_BYTES];
	const char *key, *equals = memchr(pair, '=', len);
	size_t name_len = equals ? (size_t)(equals - pair) : len;

	if (http_percent_decode(pair, name_len, true, name, sizeof(name)) < 0) {
		error_set(e, -EINVAL,
			"the query holds a parameter name that is too long or wrongly percent-encoded");
		return bad(e, "invalid_parameter");
	}

	unbracket(name);
	const struct field *field = find(f, name, &key);
	if (!field)
		return unknown(e, f, name);
	if (http_percent_decode(equals ? equals + 1 : "", equals ? len - name_len - 1 : 0, true,
		    value, sizeof(value)) < 0)
		return wrong(e, field, "is too long, wrongly percent-encoded, or not UTF-8");
	int r = store(field, key, value, base, e);
	if (!r && field->flags & FIELD_HAS_FLAG)
		*(bool *)((char *)base + field->flag_offset) = true;
	return r;
}

int fields_decode_query(const struct fields *f, const char *query, void *ret, struct error *e)
{
	size_t n = 0;
	while (*query) {
		size_t len = strcspn(query, "&");
		if (len && ++n > LIMIT_QUERY_PARAMS) {
			error_set(e, -EINVAL, "the query has more than %d parameters",
				LIMIT_QUERY_PARAMS);
			return bad(e, "invalid_parameter");
		}
		int r = len ? decode_pair(f, query, len, ret, e) : 0;
		if (r < 0)
			return r;
		query += len + (query[len] == '&');
	}

	return 0;
}
