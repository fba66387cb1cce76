/* Shapes of answers as JSON Schema. */
#include "api/schema/shapes.h"
#include "base/buffer.h"
#include "base/text.h"
#include "json/json_write.h"

static void put_ref(struct json_writer *w, const struct shape *s)
{
	_cleanup_buffer_ struct buffer ref = BUFFER_INIT(0);
	buffer_printf(&ref, "#/components/schemas/%s", s->name);
	json_open_object(w);
	json_field_text(w, "$ref", ref.data, ref.len);
	json_close(w);
}

static void put_type(const struct shape_row *row, struct json_writer *w)
{
	if (text_eq(row->type, "any"))
		return;
	json_key(w, "type");
	if (row->nullable) {
		json_open_array(w);
		json_put_cstr(w, row->type);
		json_put_cstr(w, "null");
		json_close(w);
	} else {
		json_put_cstr(w, row->type);
	}
}

static void put_row(const struct shape_row *row, struct json_writer *w)
{
	json_key(w, row->name);
	json_open_object(w);
	if (row->of && text_eq(row->type, "object")) {
		json_key(w, "oneOf");
		json_open_array(w);
		put_ref(w, row->of);
		if (row->nullable)
			json_put_raw(w, "{\"type\":\"null\"}", sizeof("{\"type\":\"null\"}") - 1);
		json_close(w);
	} else {
		put_type(row, w);
	}

	if (row->of && text_eq(row->type, "array")) {
		json_key(w, "items");
		put_ref(w, row->of);
	}

	if (row->help)
		json_field_cstr(w, "description", row->help);
	json_close(w);
}

void shape_write_schema(const struct shape *s, struct json_writer *w)
{
	json_open_object(w);
	json_field_cstr(w, "type", "object");
	if (s->open_help) {
		json_field_cstr(w, "description", s->open_help);
		json_field_bool(w, "additionalProperties", true);
		json_close(w);
		return;
	}

	json_key(w, "properties");
	json_open_object(w);
	for (size_t i = 0; i < s->n; i++)
		put_row(&s->row[i], w);
	json_close(w);
	json_key(w, "required");
	json_open_array(w);
	for (size_t i = 0; i < s->n; i++)
		json_put_cstr(w, s->row[i].name);
	json_close(w);
	json_close(w);
}
