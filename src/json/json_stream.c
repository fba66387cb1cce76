#include "json/json_stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"

/* A piece of base64 must end after a group of three bytes, which gives four digits. */
enum { PIECE_BYTES = JSON_STREAM_VALUE - JSON_STREAM_VALUE % 3 };

struct json_stream_value {
	size_t at; /* the gap's place in the text */
	enum json_stream_kind kind;
	const char *data;
	size_t len;
};

void json_stream_init(struct json_stream *s)
{
	*s = (struct json_stream){ .text = BUFFER_COUNTED(0) };
}

void json_stream_finish(struct json_stream *s)
{
	buffer_finish(&s->text);
	free(s->values);
	json_stream_init(s);
}

void json_stream_writer(struct json_stream *s, struct json_writer *w)
{
	json_writer_init(w, &s->text);
	w->stream = s;
}

bool json_stream_is_plain(const struct json_stream *s)
{
	return s->n == 0;
}

int json_stream_note(
	struct json_stream *s, enum json_stream_kind kind, const void *data, size_t len)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 8;
		struct json_stream_value *grown = realloc(s->values, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		s->values = grown;
		s->cap = cap;
	}
	s->values[s->n++] = (struct json_stream_value){
		.at = s->text.len, .kind = kind, .data = data, .len = len
	};
	return 0;
}

/* A piece of the text before the next gap, or of what follows the last one. */
static int put_text(struct json_stream *s, size_t end, struct buffer *out)
{
	size_t n = end - s->text_at < PIECE_BYTES ? end - s->text_at : PIECE_BYTES;
	int r = buffer_append(out, s->text.data + s->text_at, n);
	s->text_at += n;
	return r;
}

static int put_escaped(struct json_stream *s, const char *data, size_t n, bool first, bool last,
	struct buffer *out)
{
	if (first)
		json_writer_init(&s->encoder, out);
	s->encoder.out = out;
	s->encoder.in_string = true;
	json_string_append(&s->encoder, data, n);
	if (last)
		json_string_flush(&s->encoder);
	return s->encoder.err;
}

/* Line breaks of a sound JSON text stand between values, where a blank does as well. */
static void join_lines(struct buffer *b, size_t start)
{
	for (size_t i = start; i < b->len; i++)
		if (b->data[i] == '\n' || b->data[i] == '\r')
			b->data[i] = ' ';
}

void json_stream_join_lines(struct json_stream *s, size_t start)
{
	join_lines(&s->text, start);
}

static int put_value(struct json_stream *s, struct buffer *out)
{
	const struct json_stream_value *v = &s->values[s->value];
	size_t left = v->len - s->value_at, n = left < PIECE_BYTES ? left : PIECE_BYTES;
	const char *data = v->data + s->value_at;
	bool first = !s->value_at, last = n == left;
	s->value_at = last ? 0 : s->value_at + n;
	s->value += last;

	switch (v->kind) {
	case JSON_STREAM_TEXT:
		return put_escaped(s, data, n, first, last, out);
	case JSON_STREAM_BASE64:
		return text_base64(out, data, n);
	case JSON_STREAM_RAW:
		break;
	}
	size_t start = out->len;
	int r = buffer_append(out, data, n);
	if (r == 0)
		join_lines(out, start);
	return r;
}

int json_stream_next(struct json_stream *s, struct buffer *out)
{
	size_t end = s->value < s->n ? s->values[s->value].at : s->text.len;
	int r = 0;
	if (s->text_at < end)
		r = put_text(s, end, out);
	else if (s->value < s->n)
		r = put_value(s, out);
	if (r < 0)
		return r;
	return s->value < s->n || s->text_at < s->text.len;
}
