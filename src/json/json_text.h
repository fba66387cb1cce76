/*
 * What reader and writer share about the inside of a JSON string: runs of plain bytes, and UTF-8
 * one character at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

static inline int json_byte_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/*
 * The number of leading bytes that need no escape in a JSON string: printable ASCII without quote
 * and backslash.
 */
static inline size_t json_plain_run(const char *s, size_t len)
{
	const uint64_t ones = 0x0101010101010101ULL, tops = ones * 0x80;
	size_t i = 0;
	/*
	 * Eight at a time. `v - k * ones` with a clear top bit in v sets the top bit of bytes below
	 * k; a borrow can only mark bytes above one that is marked anyway, and those are looked at
	 * singly.
	 */
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
