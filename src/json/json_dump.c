#include "json/json_dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "json/json_write.h"

static void put_real(struct json_writer *w, double v)
{
	char text[40];
	int n = 0;
	/* 17 digits always come back as the same number; most need fewer */
	for (int digits = 15; digits <= 17; digits++) {
		n = snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	if (!strpbrk(text, ".e"))
		n += snprintf(text + n, sizeof(text) - (size_t)n, ".0");
	json_put_raw(w, text, (size_t)n);
}

static void put_object(struct json_writer *w, const json_t *object)
{
	const char *key;
	json_t *member;
	json_open_object(w);
	json_object_foreach((json_t *)object, key, member)
	{
		if (w->err)
			break;
		json_key_text(w, key, strlen(key));
		json_put_tree(w, member);
	}
	json_close(w);
}

/* Recurses as deep as the reader allows: LIMIT_JSON_DEPTH. */
void json_put_tree(struct json_writer *w, const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		put_object(w, value);
		break;
	case JSON_ARRAY:
		json_open_array(w);
		for (size_t i = 0; i < json_array_size(value) && !w->err; i++)
			json_put_tree(w, json_array_get(value, i));
		json_close(w);
		break;
	case JSON_STRING:
		json_put_text(w, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		json_put_int(w, json_integer_value(value));
		break;
	case JSON_REAL:
		put_real(w, json_real_value(value));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		json_put_bool(w, json_is_true(value));
		break;
	case JSON_NULL:
		json_put_null(w);
		break;
	}
}

int json_dump(const json_t *value, size_t max, char **ret, size_t *ret_len)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(max + 1);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_put_tree(&w, value);
	int r = json_writer_end(&w);
	if (r == 0 && !buffer_cstr(&b))
		r = -ENOBUFS;
	if (r < 0)
		return r;
	*ret = buffer_take(&b, ret_len);
	return 0;
}

_Static_assert(
	(int)LIMIT_JSON_DEPTH <= (int)JSON_WRITER_DEPTH, "every tree of the reader can be written");
