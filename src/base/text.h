/*
 * Text: bounded parsing of numbers, sizes and durations; ids; base64; comparisons that do not leak
 * time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer;

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

bool text_eq(const char *a, const char *b); /* NULL equals only NULL */
bool text_starts(const char *s, const char *prefix);

/*
 * The whole text must be a number in range: -EINVAL when it is not one, -ERANGE when it is out of
 * range.
 */
int text_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);
int text_parse_double(const char *s, double min, double max, double *ret);

/* "512", "64k", "16M", "2G", "1.5GiB": bytes, powers of 1024. */
int text_parse_size(const char *s, uint64_t *ret);

/* "1", "on", "yes", "true" / "0", "off", "no", "false". */
int text_parse_bool(const char *s, bool *ret);

/* Equal or not in time that depends on the lengths only. */
bool text_eq_secret(const char *a, size_t a_len, const char *b, size_t b_len);

/* True when the bytes are valid UTF-8 (no surrogates, no overlong forms). */
bool text_is_utf8(const char *s, size_t len);

/*
 * Fills out with `len` characters of [a-z2-7] (5 random bits each) and a NUL; out holds len + 1
 * bytes.
 */
void text_random_id(char *out, size_t len);

/* Appends standard base64 with padding. */
int text_base64(struct buffer *out, const void *data, size_t len);

/*
 * Appends the bytes behind standard base64 with padding. -EINVAL (nothing appended) for anything
 * else.
 */
int text_base64_decode(struct buffer *out, const char *s, size_t len);

/*
 * How many of the bytes, whose number is a multiple of four, are digits of base64 without padding:
 * for a text that is checked in pieces, of which only the last one has padding.
 */
size_t text_base64_digits(const char *s, size_t len);
