#include "base/buffer.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deferred.h"
#include "base/memory_account.h"

enum { BUFFER_FIRST_CAP = 256 };

void buffer_init(struct buffer *b, size_t max)
{
	*b = (struct buffer){ .max = max };
}

void buffer_count(struct buffer *b)
{
	assert(!b->cap);
	b->counted = true;
}

/* Counted buffers hold as much as their capacity. */
static int count(const struct buffer *b, size_t cap)
{
	struct hold h = { b->cap };
	return b->counted ? hold_set(&h, cap) : 0;
}

void buffer_finish(struct buffer *b)
{
	count(b, 0);
	deferred_free(b->data, b->cap);
	b->data = NULL;
	b->len = b->cap = 0;
}

/* Grows the buffer to `cap` bytes, or only to `need` if `cap` would exceed the memory limit. */
static int grow(struct buffer *b, size_t need, size_t cap)
{
	if (count(b, cap) < 0) {
		cap = need;
		if (count(b, cap) < 0)
			return -ENOBUFS;
	}

	char *data = realloc(b->data, cap);
	if (!data) {
		struct hold h = { b->counted ? cap : 0 };
		hold_set(&h, b->counted ? b->cap : 0);
		return -ENOMEM;
	}

	b->data = data;
	b->cap = cap;
	return 0;
}

int buffer_reserve(struct buffer *b, size_t more)
{
	if (more > SIZE_MAX / 4 - b->len)
		return -ENOBUFS;
	size_t need = b->len + more;
	if (b->max && need > b->max)
		return -ENOBUFS;
	if (need <= b->cap)
		return 0;
	size_t cap = b->cap ? b->cap : BUFFER_FIRST_CAP;
	while (cap < need)
		cap *= 2;
	if (b->max && cap > b->max)
		cap = b->max;
	return grow(b, need, cap);
}

int buffer_append(struct buffer *b, const void *data, size_t len)
{
	int r = buffer_reserve(b, len);
	if (r < 0)
		return r;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	return 0;
}

int buffer_append_str(struct buffer *b, const char *s)
{
	return buffer_append(b, s, strlen(s));
}

int buffer_append_char(struct buffer *b, char c)
{
	return buffer_append(b, &c, 1);
}

int buffer_vprintf(struct buffer *b, const char *fmt, va_list ap)
{
	char small[512];
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(small, sizeof(small), fmt, ap);
	int r;
	if (n < 0) {
		r = -EINVAL;
	} else if ((size_t)n < sizeof(small)) {
		r = buffer_append(b, small, (size_t)n);
	} else {
		char *big = malloc((size_t)n + 1);
		r = -ENOMEM;
		if (big) {
			vsnprintf(big, (size_t)n + 1, fmt, again);
			r = buffer_append(b, big, (size_t)n);
			free(big);
		}
	}

	va_end(again);
	return r;
}

int buffer_printf(struct buffer *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = buffer_vprintf(b, fmt, ap);
	va_end(ap);
	return r;
}

void buffer_consume(struct buffer *b, size_t n)
{
	assert(n <= b->len);
	b->len -= n;
	if (b->len && n)
		memmove(b->data, b->data + n, b->len);
}

const char *buffer_cstr(struct buffer *b)
{
	if (buffer_append_char(b, '\0') < 0)
		return NULL;
	b->len--;
	return b->data;
}

int buffer_move(struct buffer *to, struct buffer *from)
{
	if (to->max && from->cap > to->max)
		return -ENOBUFS;
	struct hold both = { (to->counted ? to->cap : 0) + (from->counted ? from->cap : 0) };
	if (hold_set(&both, to->counted ? from->cap : 0) < 0)
		return -ENOBUFS;

	deferred_free(to->data, to->cap);
	to->data = from->data;
	to->len = from->len;
	to->cap = from->cap;
	from->data = NULL;
	from->len = from->cap = 0;
	return 0;
}

char *buffer_take(struct buffer *b, size_t *ret_len)
{
	char *data = b->data;
	count(b, 0);
	if (ret_len)
		*ret_len = b->len;
	b->data = NULL;
	b->len = b->cap = 0;
	return data;
}
