/* Errors of the decoder: where the wrong value is, and what would be right. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/schema/fields_internal.h"
#include "base/nearest.h"
#include "base/text.h"

enum { KEY_MAX_SHOWN = 48, FIELDS_MAX = 48 };

const char *place_type_name(const json_t *v)
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

int place_wrong(const struct place *p, const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	error_set(p->e, -EINVAL, "%s: %s", p->path, text);
	error_slug(p->e, "invalid_field");
	error_remedy(p->e,
		"Correct the field and send the request again; GET /docs lists every field with its type and range.");
	return -EINVAL;
}

/* What was given instead, as far as it helps: the value of a number, the type of anything else. */
char *place_given(const json_t *v, char buf[48])
{
	if (json_is_number(v))
		snprintf(buf, 48, "%.15g", json_number_value(v));
	else
		snprintf(buf, 48, "%s", place_type_name(v));
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

bool place_is_name(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

void place_member(struct place *p, const struct place *parent, const char *key)
{
	char shown[KEY_MAX_SHOWN];
	show_key(key, shown);
	p->e = parent->e;
	if (place_is_name(shown))
		snprintf(p->path, sizeof(p->path), "%.100s.%s", parent->path, shown);
	else
		snprintf(p->path, sizeof(p->path), "%.100s[\"%s\"]", parent->path, shown);
}

void place_item(struct place *p, const struct place *parent, size_t index)
{
	p->e = parent->e;
	snprintf(p->path, sizeof(p->path), "%.100s[%zu]", parent->path, index);
}

/* "code, stdin, timeout_s": as many as fit. */
static void list_names(const struct fields *f, char *out, size_t size)
{
	static const char more[] = ", … (/docs has all)";
	size_t n = 0;
	for (size_t i = 0; i < f->n; i++) {
		/* whole names only, and room for the hint that there are more */
		if (n + strlen(f->field[i].name) + 2 + sizeof(more) > size) {
			snprintf(out + n, size - n, "%s", more);
			return;
		}
		n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "", f->field[i].name);
	}
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

int place_unknown(const struct fields *f, const struct place *p, const char *name, const char *slug)
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

int place_missing(const struct field *f, const struct place *parent, const char *slug)
{
	char shape[96];
	error_set(parent->e, -EINVAL, "%s.%s: is required", parent->path, f->name);
	error_remedy(
		parent->e, "Add \"%s\" (%s).", f->name, fields_describe(f, shape, sizeof(shape)));
	error_slug(parent->e, slug);
	return -EINVAL;
}

int place_no_memory(const struct place *p)
{
	error_set(p->e, -ENOMEM, "%s: out of memory", p->path);
	return -ENOMEM;
}
