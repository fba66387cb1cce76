#include "api/schema/fields.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/schema/fields_network.h"
#include "api/workspace.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "base/text.h"
#include "json/json_read.h"

enum { PATH_MAX_SHOWN = 160, KEY_MAX_SHOWN = 48, FIELDS_MAX = 48 };

/* Where the decoder stands: the value's path, for errors. Cut when it is long; names from outside are shown
 * tamed. */
struct place {
	char path[PATH_MAX_SHOWN];
	struct error *e;
};

static void *at(void *base, size_t offset)
{
	return (char *)base + offset;
}

/* ---- errors ------------------------------------------------------------- */

static const char *type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "a list";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	default:
		return "null";
	}
}

__attribute__((format(printf, 2, 3))) static int wrong(const struct place *p, const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	error_set(p->e, -EINVAL, "%s: %s", p->path, text);
	error_slug(p->e, "invalid_field");
	error_remedy(p->e, "Correct the field and send the request again; GET /docs lists every field with its type and range.");
	return -EINVAL;
}

/* What was given instead, as far as it helps: the value of a number, the type of anything else. */
static char *given(const json_t *v, char buf[48])
{
	if (json_is_number(v))
		snprintf(buf, 48, "%.15g", json_number_value(v));
	else
		snprintf(buf, 48, "%s", type_name(v));
	return buf;
}

static void show_key(const char *key, char out[KEY_MAX_SHOWN])
{
	size_t n = 0;
	for (; *key && n < KEY_MAX_SHOWN - 1; key++)
		out[n++] = (unsigned char)*key < 0x20 || *key == 0x7f ? '?' : *key;
	/* Do not cut a character in two. */
	while (n && *key && ((unsigned char)out[n - 1] & 0xc0) == 0x80)
		n--;
	if (n && *key && (unsigned char)out[n - 1] >= 0xc0)
		n--;
	out[n] = '\0';
}

static bool is_plain_name(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

static void place_member(struct place *p, const struct place *parent, const char *key)
{
	char shown[KEY_MAX_SHOWN];
	show_key(key, shown);
	p->e = parent->e;
	if (is_plain_name(shown))
		snprintf(p->path, sizeof(p->path), "%.100s.%s", parent->path, shown);
	else
		snprintf(p->path, sizeof(p->path), "%.100s[\"%s\"]", parent->path, shown);
}

static void place_item(struct place *p, const struct place *parent, size_t index)
{
	p->e = parent->e;
	snprintf(p->path, sizeof(p->path), "%.100s[%zu]", parent->path, index);
}

/* "code, stdin, timeout_s": as many as fit. */
static void list_names(const struct fields *f, char *out, size_t size)
{
	size_t n = 0;
	for (size_t i = 0; i < f->n && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "", f->field[i].name);
}

static const char *nearest_field(const struct fields *f, const char *name)
{
	const char *names[FIELDS_MAX + 1];
	size_t n = 0;
	for (; n < f->n && n < FIELDS_MAX; n++)
		names[n] = f->field[n].name;
	names[n] = NULL;
	const char *near = nearest_word(name, names);
	/* "memory" is far from "memory_bytes" by letters, but plainly meant. */
	for (size_t i = 0; !near && i < n && strlen(name) >= 3; i++)
		if (text_starts(names[i], name) || text_starts(name, names[i]))
			near = names[i];
	return near;
}

static int unknown(const struct fields *f, const struct place *p, const char *name, const char *slug)
{
	char names[ERROR_REMEDY_MAX - 32];
	const char *near = nearest_field(f, name);
	names[0] = '\0';
	list_names(f, names, sizeof(names));
	if (near)
		error_set(p->e, -EINVAL, "%s: unknown field; did you mean \"%s\"?", p->path, near);
	else
		error_set(p->e, -EINVAL, "%s: unknown field", p->path);
	if (f->n)
		error_remedy(p->e, "Known fields: %s.", names);
	else
		error_remedy(p->e, "Leave it out: nothing can be set here.");
	error_slug(p->e, slug);
	return -EINVAL;
}

static int missing(const struct field *f, const struct place *parent, const char *slug)
{
	char shape[96];
	error_set(parent->e, -EINVAL, "%s.%s: is required", parent->path, f->name);
	error_remedy(parent->e, "Add \"%s\" (%s).", f->name, fields_describe(f, shape, sizeof(shape)));
	error_slug(parent->e, slug);
	return -EINVAL;
}

/* ---- values ------------------------------------------------------------- */

static char *copy_text(const char *s, size_t len)
{
	char *copy = malloc(len + 1);
	if (copy) {
		memcpy(copy, s, len);
		copy[len] = '\0';
	}
	return copy;
}

static int no_memory(const struct place *p)
{
	error_set(p->e, -ENOMEM, "%s: not enough memory", p->path);
	return -ENOMEM;
}

static int decode_bool(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	if (!json_is_boolean(v))
		return wrong(p, "must be true or false, not %s", given(v, buf));
	*(bool *)to = json_is_true(v);
	return 0;
}

static int decode_number(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	double d = json_number_value(v);
	if (!json_is_number(v) || !(d >= f->min && d <= f->max))
		return wrong(
			p, "must be a number between %.16g and %.16g, not %s", f->min, f->max, given(v, buf));
	*(double *)to = d;
	return 0;
}

static int decode_uint(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	double d = json_number_value(v);
	if (!json_is_number(v) || d != floor(d) || !(d >= f->min && d <= f->max))
		return wrong(p, "must be a whole number between %.16g and %.16g, not %s", f->min, f->max,
			given(v, buf));
	/* Through the integer where there is one: a double has only 53 bits. */
	*(uint64_t *)to = json_is_integer(v) ? (uint64_t)json_integer_value(v) : (uint64_t)d;
	return 0;
}

/* Is it a string of an allowed length, with NUL only where that is data? */
static int check_string(
	const json_t *v, size_t min, size_t max, bool nul_allowed, const struct place *p, size_t *ret_len)
{
	char buf[48];
	if (!json_is_string(v))
		return wrong(p, "must be a string, not %s", given(v, buf));
	size_t len = json_string_length(v);
	if (len < min)
		return wrong(p, "must not be empty");
	if (len > max)
		return wrong(p, "must have at most %zu bytes, not %zu", max, len);
	const char *nul = nul_allowed ? NULL : memchr(json_string_value(v), '\0', len);
	if (nul)
		return wrong(p, "must not contain a NUL character (there is one at byte %zu)",
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
			n += (size_t)snprintf(
				list + n, sizeof(list) - n, "%s\"%s\"", i ? ", " : "", f->choices[i]);
	}
	return wrong(p, "must be one of %s", list);
}

static int store_word(const struct field *f, const char *s, size_t len, void *to, const struct place *p)
{
	int r = check_choice(f, s, p);
	if (r < 0)
		return r;
	char *copy = copy_text(s, len);
	if (!copy)
		return no_memory(p);
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
	int r = check_string(v, (size_t)f->min, (size_t)f->max, f->flags & FIELD_NUL_ALLOWED, p, &len);
	if (r < 0)
		return r;
	text->data = copy_text(json_string_value(v), len);
	if (!text->data)
		return no_memory(p);
	text->len = len;
	return 0;
}

static int decode_words(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	if (!json_is_array(v))
		return wrong(p, "must be a list of strings, not %s", given(v, buf));
	size_t n = json_array_size(v), len;
	if ((double)n > f->max)
		return wrong(p, "must have at most %.0f items, not %zu", f->max, n);
	char **list = calloc(n + 1, sizeof(*list));
	if (!list)
		return no_memory(p);
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
			return no_memory(&item);
	}
	return 0;
}

/* The shape all maps share: an object with at most so many members. */
static int check_map(const struct field *f, const json_t *v, const char *what, const struct place *p)
{
	char buf[48];
	if (!json_is_object(v))
		return wrong(p, "must be an object of %s, not %s", what, given(v, buf));
	if ((double)json_object_size(v) > f->max)
		return wrong(p, "must have at most %.0f entries, not %zu", f->max, json_object_size(v));
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
		return no_memory(p);
	*(char ***)to = list;
	json_object_foreach((json_t *)v, key, value)
	{
		struct place item;
		place_member(&item, p, key);
		if (!is_plain_name(key))
			return wrong(&item,
				"is not a variable name (letters, digits and _, not beginning with a digit)");
		r = check_string(value, 0, f->max_bytes, false, &item, &len);
		if (r < 0)
			return r;
		total += strlen(key) + len + 2;
		if (total > f->max_bytes)
			return wrong(p, "must have at most %zu bytes in all", f->max_bytes);
		if (asprintf(&list[n], "%s=%s", key, json_string_value(value)) < 0) {
			list[n] = NULL;
			return no_memory(p);
		}
		n++;
	}
	return 0;
}

static int decode_base64(const json_t *v, size_t max, struct field_text *ret, const struct place *p)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	size_t len;
	int r = check_string(v, 0, max / 3 * 4 + 4, false, p, &len);
	if (r < 0)
		return r;
	r = text_base64_decode(&b, json_string_value(v), len);
	if (r == -EINVAL)
		return wrong(p, "is not base64 (the standard alphabet, padded with =)");
	if (r < 0 || !buffer_cstr(&b))
		return no_memory(p);
	ret->data = buffer_take(&b, &ret->len);
	return 0;
}

static int decode_content(const json_t *v, size_t max, struct field_text *ret, const struct place *p)
{
	struct place inner;
	const json_t *base64 = json_object_get(v, "base64");
	size_t len;
	if (json_is_object(v)) {
		place_member(&inner, p, "base64");
		if (!base64 || json_object_size(v) != 1)
			return wrong(p, "must be a text, or an object with just \"base64\"");
		return decode_base64(base64, max, ret, &inner);
	}
	if (!json_is_string(v))
		return wrong(p, "must be a text or {\"base64\": \"…\"}, not %s", type_name(v));
	int r = check_string(v, 0, max, true, p, &len);
	if (r < 0)
		return r;
	ret->data = copy_text(json_string_value(v), len);
	ret->len = len;
	return ret->data ? 0 : no_memory(p);
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
		return no_memory(p);
	json_object_foreach((json_t *)v, key, value)
	{
		struct field_file *file = &files->file[files->n];
		struct error bad = { 0 };
		struct place item;
		place_member(&item, p, key);
		if (workspace_check_path(key, strlen(key), &bad) < 0)
			return wrong(&item, "%s", bad.text);
		files->n++;
		file->path = strdup(key);
		if (!file->path)
			return no_memory(p);
		r = decode_content(value, f->max_bytes, &file->content, &item);
		if (r < 0)
			return r;
		total += file->content.len;
		if (total > f->max_bytes)
			return wrong(p, "must have at most %zu bytes in all", f->max_bytes);
	}
	return 0;
}

static int store_json(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	if (!text)
		return no_memory(p);
	if ((double)strlen(text) > f->max) {
		free(text);
		return wrong(p, "must have at most %.0f bytes as JSON", f->max);
	}
	*(char **)to = text;
	return 0;
}

static int decode_json(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	if (!json_is_object(v))
		return wrong(p, "must be an object, not %s", given(v, buf));
	return store_json(f, v, to, p);
}

static int decode_id(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	if (!json_is_string(v) && !json_is_integer(v))
		return wrong(p, "must be a string or a whole number, not %s", type_name(v));
	size_t len;
	int r = json_is_string(v) ? check_string(v, 1, (size_t)f->max, false, p, &len) : 0;
	return r < 0 ? r : store_json(f, v, to, p);
}

static int decode_list(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	char buf[48];
	if (!json_is_array(v))
		return wrong(p, "must be a list, not %s", given(v, buf));
	if (json_array_size(v) > (size_t)f->max)
		return wrong(p, "must have at most %.0f entries, not %zu", f->max, json_array_size(v));
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
		return wrong(p, "is another name of a field that is given too: give one of them");
	if (json_is_object(v))
		return store_json(f, v, to, p);
	if (!json_is_string(v))
		return wrong(p, "must be a name or an object, not %s", type_name(v));
	if (*json_string_value(v) == '{')
		return wrong(p, "must be a name, or an object that is not written as text");
	return decode_word(f, v, to, p);
}

static int decode_object(const struct fields *f, const json_t *object, void *base, const struct place *p);

static int decode_nested(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	return decode_object(f->object, v, to, p);
}

static int decode_network(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	return fields_decode_network(v, p->path, to, p->e);
}

static int decode_value(const struct field *f, const json_t *v, void *to, const struct place *p)
{
	static int (*const decoders[])(const struct field *, const json_t *, void *, const struct place *) = {
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

/* ---- objects ------------------------------------------------------------ */

static const struct field *find_field(const struct fields *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (text_eq(f->field[i].name, name))
			return &f->field[i];
	return NULL;
}

static void set_flag(const struct field *f, void *base)
{
	if (f->flags & FIELD_HAS_FLAG)
		*(bool *)at(base, f->flag_offset) = true;
}

/* Unknown names first: a misspelt name explains a missing field better than the absence does. */
static int check_names(const struct fields *f, const json_t *object, const struct place *p)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)object, key, value)
	{
		struct place item;
		if (find_field(f, key))
			continue;
		place_member(&item, p, key);
		return unknown(f, &item, key, "unknown_field");
	}
	return 0;
}

static int decode_object(const struct fields *f, const json_t *object, void *base, const struct place *p)
{
	char buf[48];
	if (!json_is_object(object))
		return wrong(p, "must be an object, not %s", given(object, buf));
	int r = check_names(f, object, p);
	for (size_t i = 0; i < f->n && r >= 0; i++) {
		const struct field *field = &f->field[i];
		const json_t *v = json_object_get(object, field->name);
		struct place item;
		if (!v || json_is_null(v)) {
			if (field->flags & FIELD_REQUIRED)
				return missing(field, p, "missing_field");
			continue;
		}
		place_member(&item, p, field->name);
		if (field->flags & FIELD_OR_BOOL && json_is_false(v))
			continue;
		if (field->flags & FIELD_OR_BOOL && !json_is_true(v) && !json_is_object(v))
			return wrong(&item, "must be true, false or an object, not %s", given(v, buf));
		if (!(field->flags & FIELD_OR_BOOL && json_is_true(v)))
			r = decode_value(field, v, at(base, field->offset), &item);
		if (r >= 0)
			set_flag(field, base);
	}
	return r;
}

int fields_decode(const struct fields *f, const json_t *object, void *ret, struct error *e)
{
	struct place root = { .path = "$", .e = e };
	return decode_object(f, object, ret, &root);
}

int fields_decode_text(const struct fields *f, const char *text, size_t len, void *ret, struct error *e)
{
	_cleanup_json_ json_t *tree = NULL;
	int r = len ? json_read(text, len, e, &tree) : 0;
	if (r < 0)
		return r;
	if (!tree && !(tree = json_object()))
		return error_set(e, -ENOMEM, "not enough memory");
	return fields_decode(f, tree, ret, e);
}
