#include "session/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void output_init(struct output *o, uint64_t cap)
{
	*o = (struct output){ .cap = cap, .tail_max = (size_t)(cap - cap / 2) };
	buffer_init(&o->head, cap / 2);
	buffer_init(&o->tail, o->tail_max);
	buffer_count(&o->head);
	buffer_count(&o->tail);
}

void output_finish(struct output *o)
{
	uint64_t cap = o->cap;
	buffer_finish(&o->head);
	buffer_finish(&o->tail);
	output_init(o, cap);
}

/* As much as there is room for. What the daemon may not hold is left out from here on. */
static size_t add_some(struct output *o, struct buffer *b, const char *data, size_t len)
{
	if (buffer_append(b, data, len) == 0)
		return len;
	size_t room = b->cap - b->len < len ? b->cap - b->len : len;
	buffer_append(b, data, room);
	o->is_short = true;
	return room;
}

/*
 * The tail grows until it is a ring; then only the last tail_max bytes can survive, so longer input
 * is skipped, not copied round and round.
 */
static void add_to_tail(struct output *o, const char *data, size_t len)
{
	o->tail_total += len;
	if (o->tail.len < o->tail_max) {
		size_t want = o->tail_max - o->tail.len < len ? o->tail_max - o->tail.len : len;
		size_t took = add_some(o, &o->tail, data, want);
		if (took < want)
			o->tail_max = o->tail.len;
		data += took;
		len -= took;
	}

	size_t size = o->tail_max;
	if (!len || !size)
		return;

	if (len >= size) {
		memcpy(o->tail.data, data + len - size, size);
		o->tail_at = 0;
		return;
	}

	size_t first = size - o->tail_at < len ? size - o->tail_at : len;
	memcpy(o->tail.data + o->tail_at, data, first);
	memcpy(o->tail.data, data + first, len - first);
	o->tail_at = (o->tail_at + len) % size;
}

size_t output_add(struct output *o, const char *data, size_t len)
{
	size_t room = (size_t)(o->cap / 2) - o->head.len, want = o->tail_total ? 0
								 : len < room  ? len
									       : room;
	size_t first = want ? add_some(o, &o->head, data, want) : 0;
	if (first < len)
		add_to_tail(o, data + first, len - first);
	return first;
}

static size_t leading_continuation(const char *data, size_t len)
{
	size_t n = 0;
	while (n < 3 && n < len && ((unsigned char)data[n] & 0xc0) == 0x80)
		n++;
	return n;
}

static void reverse(char *data, size_t len)
{
	for (size_t i = 0; i < len / 2; i++) {
		char c = data[i];
		data[i] = data[len - 1 - i];
		data[len - 1 - i] = c;
	}
}

/* Turns the ring so that its oldest byte comes first, without memory for a copy. */
static void straighten(struct output *o)
{
	if (!o->tail_at)
		return;
	reverse(o->tail.data, o->tail_at);
	reverse(o->tail.data + o->tail_at, o->tail.len - o->tail_at);
	reverse(o->tail.data, o->tail.len);
	o->tail_at = 0;
}

void output_view(struct output *o, struct captured *ret)
{
	straighten(o);
	*ret = (struct captured){ .head = o->head.data ? o->head.data : "",
		.head_len = o->head.len,
		.tail = o->tail.data ? o->tail.data : "",
		.tail_len = o->tail.len,
		.left_out = o->tail_total - o->tail.len,
		.is_short = o->is_short };
	if (!ret->left_out)
		return; /* head and tail touch: nothing was cut */
	size_t loose = leading_continuation(ret->tail, ret->tail_len),
	       open = utf8_unfinished(ret->head, ret->head_len);
	ret->tail += loose;
	ret->tail_len -= loose;
	ret->head_len -= open;
	ret->left_out += loose + open;
}
