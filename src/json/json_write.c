#include "json/json_write.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "json/json_stream.h"
#include "json/json_text.h"

void json_writer_init(struct json_writer *w, struct buffer *out)
{
	*w = (struct json_writer){ .out = out };
}

int json_writer_end(const struct json_writer *w)
{
	assert(w->err || (w->depth == 0 && !w->in_string && !w->after_key));
	return w->err;
}

static void append(struct json_writer *w, const void *data, size_t len)
{
	if (!w->err)
		w->err = buffer_append(w->out, data, len);
}

/*
 * Writes the separator that is needed before a value, and notes that the next value needs a comma.
 */
static void before_value(struct json_writer *w)
{
	assert(!w->in_string);
	assert(w->after_key || w->depth == 0 || !(w->is_object >> (w->depth - 1) & 1));
	if (w->need_comma && !w->after_key)
		append(w, ",", 1);
	w->after_key = false;
	w->need_comma = true;
}

static void open_level(struct json_writer *w, bool object)
{
	before_value(w);
	assert(w->depth < JSON_WRITER_DEPTH);
	uint64_t bit = 1ULL << w->depth++;
	w->is_object = object ? w->is_object | bit : w->is_object & ~bit;
	w->need_comma = false;
	append(w, object ? "{" : "[", 1);
}

void json_open_object(struct json_writer *w)
{
	open_level(w, true);
}

void json_open_array(struct json_writer *w)
{
	open_level(w, false);
}

void json_close(struct json_writer *w)
{
	assert(w->depth > 0 && !w->after_key && !w->in_string);
	w->depth--;
	w->need_comma = true;
	append(w, w->is_object >> w->depth & 1 ? "}" : "]", 1);
}

static void before_key(struct json_writer *w)
{
	assert(w->depth > 0 && (w->is_object >> (w->depth - 1) & 1) && !w->after_key &&
		!w->in_string);
	if (w->need_comma)
		append(w, ",", 1);
	w->after_key = true;
}

void json_key(struct json_writer *w, const char *key)
{
	size_t len = strlen(key);
	assert(json_plain_run(key, len) == len);
	before_key(w);
	append(w, "\"", 1);
	append(w, key, len);
	append(w, "\":", 2);
}

static void append_escape(struct json_writer *w, unsigned char c)
{
	static const char shorts[32] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
	};
	static const char hex[] = "0123456789abcdef";
	char text[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };
	if (c == '"' || c == '\\')
		text[1] = (char)c;
	else if (c < 0x20 && shorts[c])
		text[1] = shorts[c];
	append(w, text, text[1] == 'u' ? 6 : 2);
}

/* True when the value is encoded later, while it is sent. */
static bool note_large(
	struct json_writer *w, enum json_stream_kind kind, const void *data, size_t len)
{
	if (!w->stream || len < JSON_STREAM_VALUE)
		return false;
	if (!w->err)
		w->err = json_stream_note(w->stream, kind, data, len);
	return true;
}

/*
 * Appends the bytes escaped; those of a character that the end cuts are an invalid part like any
 * other.
 */
static void append_escaped(struct json_writer *w, const char *s, size_t len)
{
	size_t start = 0, i = 0, step;
	if (note_large(w, JSON_STREAM_TEXT, s, len))
		return;
	if (!w->err)
		w->err = buffer_reserve(w->out, len + 1);
	while (i < len && !w->err) {
		i += json_plain_run(s + i, len - i);
		if (i == len)
			break;
		unsigned char c = (unsigned char)s[i];
		if (c >= 0x80 &&
			utf8_step((const unsigned char *)s + i, len - i, &step) == UTF8_VALID) {
			i += step;
			continue;
		}
		append(w, s + start, i - start);
		if (c < 0x80) {
			append_escape(w, c);
			step = 1;
		} else {
			append(w, "\xef\xbf\xbd", 3);
		}
		start = i += step;
	}

	if (!w->err)
		append(w, s + start, len - start);
}

void json_key_text(struct json_writer *w, const char *key, size_t len)
{
	before_key(w);
	append(w, "\"", 1);
	append_escaped(w, key, len);
	append(w, "\":", 2);
}

void json_put_text(struct json_writer *w, const char *s, size_t len)
{
	before_value(w);
	append(w, "\"", 1);
	append_escaped(w, s, len);
	append(w, "\"", 1);
}

void json_put_cstr(struct json_writer *w, const char *s)
{
	if (s)
		json_put_text(w, s, strlen(s));
	else
		json_put_null(w);
}

void json_put_int(struct json_writer *w, int64_t v)
{
	char text[24];
	before_value(w);
	append(w, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, v));
}

void json_put_uint(struct json_writer *w, uint64_t v)
{
	char text[24];
	before_value(w);
	append(w, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, v));
}

void json_put_double(struct json_writer *w, double v)
{
	char text[32];
	int n = 0;

	if (!isfinite(v)) {
		json_put_null(w);
		return;
	}

	before_value(w);
	if (fabs(v) < 1e15 && v == trunc(v)) {
		n = snprintf(text, sizeof(text), "%.0f", v);
	} else {
		/*
		 * 17 digits always come back as the same number; most need fewer, and people read
		 * them.
		 */
		for (int digits = 15; digits <= 17; digits++) {
			n = snprintf(text, sizeof(text), "%.*g", digits, v);
			if (strtod(text, NULL) == v)
				break;
		}
	}

	append(w, text, (size_t)n);
}

void json_put_bool(struct json_writer *w, bool v)
{
	before_value(w);
	append(w, v ? "true" : "false", v ? 4 : 5);
}

void json_put_null(struct json_writer *w)
{
	before_value(w);
	append(w, "null", 4);
}

void json_put_base64(struct json_writer *w, const void *data, size_t len)
{
	before_value(w);
	append(w, "\"", 1);
	if (!note_large(w, JSON_STREAM_BASE64, data, len) && !w->err)
		w->err = text_base64(w->out, data, len);
	append(w, "\"", 1);
}

void json_put_raw(struct json_writer *w, const char *json, size_t len)
{
	before_value(w);
	if (!note_large(w, JSON_STREAM_RAW, json, len))
		append(w, json, len);
}

void json_string_begin(struct json_writer *w)
{
	before_value(w);
	w->in_string = true;
	w->carry_len = 0;
	append(w, "\"", 1);
}

/*
 * Completes the carried character with the first bytes of the next piece; returns how many of them
 * it took.
 */
static size_t complete_carry(struct json_writer *w, const char *s, size_t len)
{
	unsigned char joined[4];
	size_t had = w->carry_len, more = len < 4 - had ? len : 4 - had, step;

	memcpy(joined, w->carry, had);
	memcpy(joined + had, s, more);
	enum utf8 kind = utf8_step(joined, had + more, &step);
	assert(step >= had); /* the carry was valid so far */
	if (kind == UTF8_CUT) {
		memcpy(w->carry, joined, step);
		w->carry_len = (unsigned)step;
	} else {
		append_escaped(w, (const char *)joined, step);
		w->carry_len = 0;
	}

	return step - had;
}

void json_string_append(struct json_writer *w, const char *s, size_t len)
{
	assert(w->in_string);
	if (w->carry_len && len) {
		size_t took = complete_carry(w, s, len);
		s += took;
		len -= took;
	}
	if (!len)
		return;
	size_t whole = json_utf8_whole(s, len);
	append_escaped(w, s, whole);
	memcpy(w->carry, s + whole, len - whole);
	w->carry_len = (unsigned)(len - whole);
}

void json_string_flush(struct json_writer *w)
{
	append_escaped(w, (const char *)w->carry, w->carry_len);
	w->carry_len = 0;
}

void json_string_end(struct json_writer *w)
{
	assert(w->in_string);
	w->in_string = false;
	json_string_flush(w);
	append(w, "\"", 1);
}

void json_field_text(struct json_writer *w, const char *key, const char *s, size_t len)
{
	json_key(w, key);
	json_put_text(w, s, len);
}

void json_field_cstr(struct json_writer *w, const char *key, const char *s)
{
	json_key(w, key);
	json_put_cstr(w, s);
}

void json_field_int(struct json_writer *w, const char *key, int64_t v)
{
	json_key(w, key);
	json_put_int(w, v);
}

void json_field_uint(struct json_writer *w, const char *key, uint64_t v)
{
	json_key(w, key);
	json_put_uint(w, v);
}

void json_field_double(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	json_put_double(w, v);
}

void json_field_bool(struct json_writer *w, const char *key, bool v)
{
	json_key(w, key);
	json_put_bool(w, v);
}

void json_field_null(struct json_writer *w, const char *key)
{
	json_key(w, key);
	json_put_null(w);
}

void json_field_base64(struct json_writer *w, const char *key, const void *data, size_t len)
{
	json_key(w, key);
	json_put_base64(w, data, len);
}

void json_field_raw(struct json_writer *w, const char *key, const char *json, size_t len)
{
	json_key(w, key);
	json_put_raw(w, json, len);
}

size_t json_utf8_whole(const char *s, size_t len)
{
	/* A cut character has its first byte among the last three. */
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		size_t step;
		unsigned char c = (unsigned char)s[len - back];
		if ((c & 0xc0) == 0x80)
			continue;
		return utf8_step((const unsigned char *)s + len - back, back, &step) == UTF8_CUT
			       ? len - back
			       : len;
	}
	return len;
}
