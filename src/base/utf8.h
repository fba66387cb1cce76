/* UTF-8, one character at a time, shared by json and text. */
#pragma once

#include <stddef.h>

enum utf8 {
	UTF8_VALID,
	UTF8_INVALID, /* the bytes are the longest start of a character that goes wrong after them, or
			      one stray byte */
	UTF8_CUT      /* valid so far, but the text ends inside the character */
};

/* Looks at the character at s (left > 0) and says how many bytes it, or its invalid part, has. */
static inline enum utf8 utf8_step(const unsigned char *s, size_t left, size_t *ret_len)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t want;
	*ret_len = 1;
	if (s[0] < 0x80)
		return UTF8_VALID;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return UTF8_INVALID;
	want = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	/*
	 * The second byte is where overlong forms, surrogates and what lies beyond U+10FFFF show.
	 */
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
			return UTF8_CUT;
		if (s[i] < low || s[i] > high)
			return UTF8_INVALID;
		low = 0x80;
		high = 0xbf;
	}
	*ret_len = want;
	return UTF8_VALID;
}

/* How many bytes at the end of the data begin a character that is not complete (0 to 3). */
static inline size_t utf8_unfinished(const char *data, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)data[len - back];
		if (c < 0x80)
			return 0;
		if (c >= 0xc0) {
			size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
			return need > back ? back : 0;
		}
	}
	return 0;
}
