/*
 * A byte buffer that grows up to a maximum with a name.
 *
 * Invariants: len <= cap; cap <= max (max 0 stands for no limit but memory); data is NULL while cap
 * is 0. The content is not NUL-terminated unless buffer_cstr() was called after the last change.
 * All appends are all-or-nothing: on -ENOBUFS (max reached) or -ENOMEM the buffer is as before.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buffer {
	char *data;
	size_t len, cap, max;
	bool counted;
};

#define BUFFER_INIT(maximum)     \
	{                        \
		.max = (maximum) \
	}
/*
 * Its memory counts against what the daemon holds for others (memory_account.h): appends fail with
 * -ENOBUFS when that is too much.
 */
#define BUFFER_COUNTED(maximum)                   \
	{                                         \
		.max = (maximum), .counted = true \
	}
#define _cleanup_buffer_ __attribute__((cleanup(buffer_finish)))

void buffer_init(struct buffer *b, size_t max);
void buffer_finish(struct buffer *b); /* frees; the buffer is empty and usable again */

int buffer_reserve(struct buffer *b, size_t more); /* room for `more` bytes behind len */
int buffer_append(struct buffer *b, const void *data, size_t len);
int buffer_append_str(struct buffer *b, const char *s);
int buffer_append_char(struct buffer *b, char c);
int buffer_printf(struct buffer *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buffer_vprintf(struct buffer *b, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* Drops the first n bytes (n <= len); keeps the memory. */
void buffer_consume(struct buffer *b, size_t n);

/*
 * NUL-terminates without counting the NUL and returns the data; NULL when there is no room for it.
 */
const char *buffer_cstr(struct buffer *b);

/* From now on its memory, which must be none yet, is counted as BUFFER_COUNTED says. */
void buffer_count(struct buffer *b);

/*
 * Moves the content to another buffer, whose own content is freed; `from` is empty after. -ENOBUFS:
 * more than `to` may have; nothing changes.
 */
int buffer_move(struct buffer *to, struct buffer *from);

/*
 * Moves the content out (malloc'd, the caller frees it, and counts it where it must be); the buffer
 * is empty after.
 */
char *buffer_take(struct buffer *b, size_t *ret_len);
