/*
 * A JSON text whose large values are encoded while it is sent.
 *
 * 	struct json_stream s;
 * 	struct json_writer w;
 * 	json_stream_init(&s);
 * 	json_stream_writer(&s, &w);
 * 	… write as usual, json_writer_end(&w) …
 * 	while (json_stream_next(&s, &out) > 0) send(out)
 *
 * Texts, base64 and raw values of at least JSON_STREAM_VALUE bytes are only noted by the writer;
 * their bytes stay the caller's and must not move or change before the stream is finished. All else
 * is kept as text. So a stream takes little memory, however much escaping adds to a value.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "json/json_write.h"

enum { JSON_STREAM_VALUE = 64 * 1024 };

struct json_stream_value;

struct json_stream {
	/* private */
	struct buffer text; /* with a gap at each noted value */
	struct json_stream_value *values;
	size_t n, cap;
	size_t value, text_at, value_at; /* how far it is encoded */
	/* holds the start of a character that is cut between two pieces */
	struct json_writer encoder;
};

void json_stream_init(struct json_stream *s);
void json_stream_finish(struct json_stream *s);

/* A writer for the stream's text. */
void json_stream_writer(struct json_stream *s, struct json_writer *w);

/*
 * Makes one line of the text behind its first `start` bytes; raw values that were noted are one
 * line in every case.
 */
void json_stream_join_lines(struct json_stream *s, size_t start);

/* Nothing was noted: `text` is all there is. */
bool json_stream_is_plain(const struct json_stream *s);

/*
 * Appends the next piece, of some JSON_STREAM_VALUE bytes before they are escaped. 1: there may be
 * more; 0: that was all; negative errno.
 */
int json_stream_next(struct json_stream *s, struct buffer *out);

/* For the writer: notes a value instead of writing it. */
enum json_stream_kind { JSON_STREAM_TEXT, JSON_STREAM_BASE64, JSON_STREAM_RAW };
int json_stream_note(
	struct json_stream *s, enum json_stream_kind kind, const void *data, size_t len);
