#include "api/schema/fields.h"

#include <errno.h>

#include "api/schema/fields_internal.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "json/json_read.h"

static void *at(void *base, size_t offset)
{
	return (char *)base + offset;
}

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
		return place_unknown(f, &item, key, "unknown_field");
	}
	return 0;
}

int fields_decode_object(
	const struct fields *f, const json_t *object, void *base, const struct place *p)
{
	char buf[48];
	if (!json_is_object(object))
		return place_wrong(p, "must be an object, not %s", place_given(object, buf));
	int r = check_names(f, object, p);
	for (size_t i = 0; i < f->n && r >= 0; i++) {
		const struct field *field = &f->field[i];
		const json_t *v = json_object_get(object, field->name);
		struct place item;
		if (!v || json_is_null(v)) {
			if (field->flags & FIELD_REQUIRED)
				return place_missing(field, p, "missing_field");
			continue;
		}
		place_member(&item, p, field->name);
		if (field->flags & FIELD_OR_BOOL && json_is_false(v))
			continue;
		if (field->flags & FIELD_OR_BOOL && !json_is_true(v) && !json_is_object(v))
			return place_wrong(&item, "must be true, false or an object, not %s",
				place_given(v, buf));
		if (!(field->flags & FIELD_OR_BOOL && json_is_true(v)))
			r = fields_decode_value(field, v, at(base, field->offset), &item);
		if (r >= 0)
			set_flag(field, base);
	}

	return r;
}

int fields_decode(const struct fields *f, const json_t *object, void *ret, struct error *e)
{
	struct place root = { .path = "$", .e = e };
	return fields_decode_object(f, object, ret, &root);
}

int fields_decode_text(
	const struct fields *f, const char *text, size_t len, void *ret, struct error *e)
{
	_cleanup_json_ json_t *tree = NULL;
	int r = len ? json_read(text, len, e, &tree) : 0;
	if (r < 0)
		return r;
	if (!tree && !(tree = json_object()))
		return error_set(e, -ENOMEM, "out of memory");
	return fields_decode(f, tree, ret, e);
}
