/* Decoders of single values, one per type of field. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/schema/fields_internal.h"
#include "api/schema/fields_network.h"
#include "api/workspace.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"
#include "json/json_dump.h"

static char *copy_text(const char *s, size_t len)
{
	char *copy = malloc(len + 1);
	if (copy) {
		memcpy(copy, s, len);
		copy[len] = '\0';
	}
	return copy;
}

void field_text_share(struct field_text *text, const json_t *v)
{
	*text = (struct field_text){ .data = (char *)json_string_value(v),
		.len = json_string_length(v),
		.owner = json_incref((json_t *)v) };
}

static int decode_bool(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	if (!json_is_boolean(v))
		return place_wrong(p, "must be true or false, not %s", place_given(v, buf));
	*(bool *)to = json_is_true(v);
	return 0;
}

static int decode_number(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	double d = json_number_value(v);
	if (!json_is_number(v) || !(d >= f->min && d <= f->max))
		return place_wrong(p, "must be a number between %.16g and %.16g, not %s", f->min,
			f->max, place_given(v, buf));
	*(double *)to = d;
	return 0;
}

static int decode_uint(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	double d = json_number_value(v);
	if (!json_is_number(v) || d != floor(d) || !(d >= f->min && d <= f->max))
		return place_wrong(p, "must be a whole number between %.16g and %.16g, not %s",
			f->min, f->max, place_given(v, buf));
	/* Through the integer where there is one: a double has only 53 bits. */
	*(uint64_t *)to = json_is_integer(v) ? (uint64_t)json_integer_value(v) : (uint64_t)d;
	return 0;
}

/* Is it a string of an allowed length, with NUL only where that is data? */
static int check_string(const json_t *v, size_t min, size_t max, bool nul_allowed,
	const struct place *p, size_t *ret_len)
{
	char buf[48];
	if (!json_is_string(v))
		return place_wrong(p, "must be a string, not %s", place_given(v, buf));
	size_t len = json_string_length(v);
	if (len < min)
		return place_wrong(p, "must not be empty");
	if (len > max)
		return place_wrong(p, "must have at most %zu bytes, not %zu", max, len);
	const char *nul = nul_allowed ? NULL : memchr(json_string_value(v), '\0', len);
	if (nul)
		return place_wrong(p, "must not contain a NUL character (there is one at byte %zu)",
			(size_t)(nul - json_string_value(v)));
	*ret_len = len;
	return 0;
}

static int check_choice(const struct field *f, const char *value, const struct place *p)
{
	char list[160];
	size_t n = 0;
	if (!f->choices)
		return 0;
	for (size_t i = 0; f->choices[i]; i++) {
		if (text_eq(f->choices[i], value))
			return 0;
		if (n < sizeof(list))
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s\"%s\"", i ? ", " : "",
				f->choices[i]);
	}
	return place_wrong(p, "must be one of %s", list);
}

static int store_word(
	const struct field *f, const char *s, size_t len, void *to, const struct place *p)
{
	int r = check_choice(f, s, p);
	if (r < 0)
		return r;
	char *copy = copy_text(s, len);
	if (!copy)
		return place_no_memory(p);
	*(char **)to = copy;
	return 0;
}

static int decode_word(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	size_t len;
	int r = check_string(v, (size_t)f->min, (size_t)f->max, false, p, &len);
	return r < 0 ? r : store_word(f, json_string_value(v), len, to, p);
}

static int decode_choice(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	size_t len;
	unsigned index = 0;
	int r = check_string(v, 0, LIMIT_NAME_BYTES, false, p, &len);
	if (r == 0)
		r = check_choice(f, json_string_value(v), p);
	if (r < 0)
		return r;
	while (!text_eq(f->choices[index], json_string_value(v)))
		index++;
	*(unsigned *)to = index;
	return 0;
}

static int decode_text(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	struct field_text *text = to;
	size_t len;
	int r = check_string(
		v, (size_t)f->min, (size_t)f->max, f->flags & FIELD_NUL_ALLOWED, p, &len);
	if (r < 0)
		return r;
	field_text_share(text, v);
	return 0;
}

static int decode_words(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	if (!json_is_array(v))
		return place_wrong(p, "must be a list of strings, not %s", place_given(v, buf));
	size_t n = json_array_size(v), len;
	if ((double)n > f->max)
		return place_wrong(p, "must have at most %.0f items, not %zu", f->max, n);
	char **list = calloc(n + 1, sizeof(*list));
	if (!list)
		return place_no_memory(p);
	*(char ***)to = list;
	for (size_t i = 0; i < n; i++) {
		struct place item;
		const json_t *one = json_array_get(v, i);
		place_item(&item, p, i);
		int r = check_string(one, 1, f->max_bytes, false, &item, &len);
		if (r < 0)
			return r;
		list[i] = copy_text(json_string_value(one), len);
		if (!list[i])
			return place_no_memory(&item);
	}

	return 0;
}

/* The shape all maps share: an object with at most so many members. */
static int check_map(
	const struct field *f, const json_t *v, const char *what, const struct place *p)
{
	char buf[48];
	if (!json_is_object(v))
		return place_wrong(p, "must be an object of %s, not %s", what, place_given(v, buf));
	if ((double)json_object_size(v) > f->max)
		return place_wrong(
			p, "must have at most %.0f entries, not %zu", f->max, json_object_size(v));
	return 0;
}

static int decode_env(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	int r = check_map(f, v, "names and texts", p);
	if (r < 0)
		return r;
	char **list = calloc(json_object_size(v) + 1, sizeof(*list));
	size_t n = 0, total = 0, len;
	const char *key;
	json_t *value;
	if (!list)
		return place_no_memory(p);
	*(char ***)to = list;
	json_object_foreach((json_t *)v, key, value)
	{
		struct place item;
		place_member(&item, p, key);
		if (!place_is_name(key))
			return place_wrong(&item,
				"is not a variable name (letters, digits and _, not beginning with a digit)");
		r = check_string(value, 0, f->max_bytes, false, &item, &len);
		if (r < 0)
			return r;
		total += strlen(key) + len + 2;
		if (total > f->max_bytes)
			return place_wrong(p, "must have at most %zu bytes in all", f->max_bytes);
		if (asprintf(&list[n], "%s=%s", key, json_string_value(value)) < 0) {
			list[n] = NULL;
			return place_no_memory(p);
		}
		n++;
	}

	return 0;
}

static int wrong_base64(const struct place *p)
{
	return place_wrong(p, "is not base64 (the standard alphabet, padded with =)");
}

/* Large content is decoded later, in steps; small content is looked at here. */
static int decode_base64(const json_t *v, size_t max, struct field_file *ret, const struct place *p)
{
	enum { AT_ONCE = 64 * 1024 };
	size_t len;
	int r = check_string(v, 0, max / 3 * 4 + 4, false, p, &len);
	if (r < 0)
		return r;
	if (len % 4)
		return wrong_base64(p);
	if (len > AT_ONCE) {
		field_text_share(&ret->content, v);
		ret->base64 = true;
		return 0;
	}

	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	r = text_base64_decode(&b, json_string_value(v), len);
	if (r == -EINVAL)
		return wrong_base64(p);
	if (r < 0 || !buffer_cstr(&b))
		return place_no_memory(p);
	ret->content.data = buffer_take(&b, &ret->content.len);
	return 0;
}

static int decode_content(
	const json_t *v, size_t max, struct field_file *ret, const struct place *p)
{
	struct place inner;
	const json_t *base64 = json_object_get(v, "base64");
	size_t len;

	if (json_is_object(v)) {
		place_member(&inner, p, "base64");
		if (!base64 || json_object_size(v) != 1)
			return place_wrong(p, "must be a text, or an object with just \"base64\"");
		return decode_base64(base64, max, ret, &inner);
	}

	if (!json_is_string(v))
		return place_wrong(
			p, "must be a text or {\"base64\": \"…\"}, not %s", place_type_name(v));
	int r = check_string(v, 0, max, true, p, &len);
	if (r < 0)
		return r;
	field_text_share(&ret->content, v);
	return 0;
}

size_t field_file_bytes(const struct field_file *file)
{
	const struct field_text *c = &file->content;
	size_t pad = c->len && c->data[c->len - 1] == '=' ? 1 + (c->data[c->len - 2] == '=') : 0;
	return file->base64 ? c->len / 4 * 3 - pad : c->len;
}

static int decode_files(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	struct field_files *files = to;
	size_t total = 0;
	const char *key;
	json_t *value;
	int r = check_map(f, v, "paths and contents", p);

	if (r < 0)
		return r;
	files->file = calloc(json_object_size(v) + 1, sizeof(*files->file));
	if (!files->file)
		return place_no_memory(p);
	json_object_foreach((json_t *)v, key, value)
	{
		struct field_file *file = &files->file[files->n];
		struct error bad = { 0 };
		struct place item;
		place_member(&item, p, key);
		if (workspace_check_path(key, strlen(key), &bad) < 0)
			return place_wrong(&item, "%s", bad.text);
		files->n++;
		file->path = strdup(key);
		if (!file->path)
			return place_no_memory(p);
		r = decode_content(value, f->max_bytes, file, &item);
		if (r < 0)
			return r;
		total += field_file_bytes(file);
		if (total > f->max_bytes)
			return place_wrong(p, "must have at most %zu bytes in all", f->max_bytes);
	}

	return 0;
}

static int store_json(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	int r = json_dump(v, (size_t)f->max, to, NULL);
	if (r == -ENOBUFS)
		return place_wrong(p, "must have at most %.0f bytes as JSON", f->max);
	return r < 0 ? place_no_memory(p) : 0;
}

static int decode_json(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	if (!json_is_object(v))
		return place_wrong(p, "must be an object, not %s", place_given(v, buf));
	return store_json(f, v, to, p);
}

static int decode_id(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	if (!json_is_string(v) && !json_is_integer(v))
		return place_wrong(
			p, "must be a string or a whole number, not %s", place_type_name(v));
	size_t len;
	int r = json_is_string(v) ? check_string(v, 1, (size_t)f->max, false, p, &len) : 0;
	return r < 0 ? r : store_json(f, v, to, p);
}

static int decode_list(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	if (!json_is_array(v))
		return place_wrong(p, "must be a list, not %s", place_given(v, buf));
	if (json_array_size(v) > (size_t)f->max)
		return place_wrong(
			p, "must have at most %.0f entries, not %zu", f->max, json_array_size(v));
	*(json_t **)to = json_incref((json_t *)v);
	return 0;
}

static int decode_any(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	(void)f, (void)p;
	*(json_t **)to = json_incref((json_t *)v);
	return 0;
}

/* A name that begins with a brace would be taken for an object later on. */
static int decode_named(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	if (*(char **)to)
		return place_wrong(p,
			"is another name of a field that is also given: give only one of the two");
	if (json_is_object(v))
		return store_json(f, v, to, p);
	if (!json_is_string(v))
		return place_wrong(p, "must be a name or an object, not %s", place_type_name(v));
	if (*json_string_value(v) == '{')
		return place_wrong(p, "must be a name, or an object that is not written as text");
	return decode_word(f, v, to, p);
}

static int decode_nested(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	return fields_decode_object(f->object, v, to, p);
}

static int decode_network(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	return fields_decode_network(v, p->path, to, p->e);
}

int fields_decode_value(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	static int (*const decoders[])(
		const struct field *, const json_t *, void *, const struct place *) = {
		[FIELD_BOOL] = decode_bool,
		[FIELD_UINT] = decode_uint,
		[FIELD_NUMBER] = decode_number,
		[FIELD_WORD] = decode_word,
		[FIELD_CHOICE] = decode_choice,
		[FIELD_TEXT] = decode_text,
		[FIELD_WORDS] = decode_words,
		[FIELD_ENV] = decode_env,
		[FIELD_FILES] = decode_files,
		[FIELD_JSON] = decode_json,
		[FIELD_ID] = decode_id,
		[FIELD_LIST] = decode_list,
		[FIELD_VALUE] = decode_any,
		[FIELD_NAMED] = decode_named,
		[FIELD_OBJECT] = decode_nested,
		[FIELD_NETWORK] = decode_network,
	};
	return decoders[f->type](f, v, to, p);
}
