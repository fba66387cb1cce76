/*
 * The streaming JSON writer: appends compact JSON to a struct buffer.
 *
 * 	struct json_writer w;
 * 	json_writer_init(&w, &buffer);
 * 	json_open_object(&w);
 * 	json_field_cstr(&w, "status", "ok");
 * 	json_key(&w, "files");
 * 	json_open_array(&w);
 * 	…
 * 	json_close(&w);
 * 	json_close(&w);
 * 	r = json_writer_end(&w);
 *
 * Commas, colons and nesting are the writer's. Its error is sticky: after the first failed append
 * every call does nothing, and json_writer_end() reports it, so callers check once. What was
 * appended before the failure stays in the buffer; throw it away. Misuse (a value without a key
 * inside an object, a close too many) is an assertion.
 *
 * Strings come out as valid UTF-8 whatever goes in: each maximal invalid part becomes U+FFFD,
 * control characters are escaped. Depth is at most JSON_WRITER_DEPTH.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer;
struct json_stream;

enum { JSON_WRITER_DEPTH = 64 };

struct json_writer {
	/* private */
	struct buffer *out;
	int err;
	unsigned depth;
	uint64_t is_object; /* a bit per level */
	bool need_comma, after_key, in_string;
	/* the start of a character that the next piece of a split string completes */
	unsigned char carry[4];
	unsigned carry_len;
	/* where large values are noted; NULL: they are written (json_stream.h) */
	struct json_stream *stream;
};

void json_writer_init(struct json_writer *w, struct buffer *out); /* out stays the caller's */

/* 0 when everything was written (all levels must be closed), else -ENOBUFS or -ENOMEM. */
int json_writer_end(const struct json_writer *w);

void json_open_object(struct json_writer *w);
void json_open_array(struct json_writer *w);
void json_close(struct json_writer *w); /* the innermost open object or array */

/*
 * The name of the next value of an object: plain ASCII of ours (no quote, backslash or control
 * character).
 */
void json_key(struct json_writer *w, const char *key);
/* The same for a name that comes from outside. */
void json_key_text(struct json_writer *w, const char *key, size_t len);

void json_put_text(struct json_writer *w, const char *s, size_t len);
void json_put_cstr(struct json_writer *w, const char *s); /* NULL: null */
void json_put_int(struct json_writer *w, int64_t v);
void json_put_uint(struct json_writer *w, uint64_t v);
void json_put_double(
	struct json_writer *w, double v); /* whole numbers without a fraction; not finite: null */
void json_put_bool(struct json_writer *w, bool v);
void json_put_null(struct json_writer *w);
void json_put_base64(struct json_writer *w, const void *data, size_t len); /* as a string */
/* a whole valid JSON value */
void json_put_raw(struct json_writer *w, const char *json, size_t len);

/*
 * One string value in pieces. A character may be split between two pieces. Nothing else may be put
 * in between.
 */
void json_string_begin(struct json_writer *w);
void json_string_append(struct json_writer *w, const char *s, size_t len);
void json_string_end(struct json_writer *w);
/*
 * The text so far is all of its part: a character that is cut at its end is not completed by what
 * follows.
 */
void json_string_flush(struct json_writer *w);

/* Key and value in one call. */
void json_field_text(struct json_writer *w, const char *key, const char *s, size_t len);
void json_field_cstr(struct json_writer *w, const char *key, const char *s);
void json_field_int(struct json_writer *w, const char *key, int64_t v);
void json_field_uint(struct json_writer *w, const char *key, uint64_t v);
void json_field_double(struct json_writer *w, const char *key, double v);
void json_field_bool(struct json_writer *w, const char *key, bool v);
void json_field_null(struct json_writer *w, const char *key);
void json_field_base64(struct json_writer *w, const char *key, const void *data, size_t len);
void json_field_raw(struct json_writer *w, const char *key, const char *json, size_t len);

/*
 * How many of the bytes can be written now so that no character is cut: len, or up to 3 less when
 * the bytes end inside a character that is valid so far. For output that arrives in arbitrary
 * pieces and goes out as separate messages.
 */
size_t json_utf8_whole(const char *s, size_t len);
