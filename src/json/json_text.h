/* What reader and writer share about the inside of a JSON string: runs of plain bytes, and UTF-8 one
 * character at a time. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline int json_byte_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* How many of the first bytes stand for themselves in a JSON string: printable ASCII but for quote and
 * backslash. */
static inline size_t json_plain_run(const char *s, size_t len)
{
	const uint64_t ones = 0x0101010101010101ULL, tops = ones * 0x80;
	size_t i = 0;
	/* Eight at a time. `v - k * ones` with a clear top bit in v sets the top bit of bytes below k; a
	 * borrow can only mark bytes above one that is marked anyway, and those are looked at singly. */
	for (; len - i >= 8; i += 8) {
		uint64_t v;
		memcpy(&v, s + i, 8);
		uint64_t quote = v ^ ones * '"', slash = v ^ ones * '\\';
		if ((v | (v - ones * 0x20) | (quote - ones) | (slash - ones)) & tops)
			break;
	}
	while (i < len && json_byte_is_plain((unsigned char)s[i]))
		i++;
	return i;
}

enum json_utf8 {
	JSON_UTF8_VALID,
	JSON_UTF8_INVALID, /* the bytes are the longest start of a character that goes wrong after them, or
			      one stray byte */
	JSON_UTF8_CUT      /* valid so far, but the text ends inside the character */
};

/* Looks at the character at s (left > 0) and says how many bytes it, or its invalid part, has. */
static inline enum json_utf8 json_utf8_step(const unsigned char *s, size_t left, size_t *ret_len)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t want;
	*ret_len = 1;
	if (s[0] < 0x80)
		return JSON_UTF8_VALID;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return JSON_UTF8_INVALID;
	want = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	/* The second byte is where overlong forms, surrogates and what lies beyond U+10FFFF show. */
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < want; i++) {
		*ret_len = i;
		if (i == left)
			return JSON_UTF8_CUT;
		if (s[i] < low || s[i] > high)
			return JSON_UTF8_INVALID;
		low = 0x80;
		high = 0xbf;
	}
	*ret_len = want;
	return JSON_UTF8_VALID;
}
