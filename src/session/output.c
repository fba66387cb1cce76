#include "session/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void output_init(struct output *o, uint64_t cap)
{
	*o = (struct output){ .cap = cap };
	buffer_init(&o->head, cap / 2);
	buffer_init(&o->joined, 0);
}

void output_finish(struct output *o)
{
	uint64_t cap = o->cap;
	buffer_finish(&o->head);
	buffer_finish(&o->joined);
	free(o->tail);
	output_init(o, cap);
}

static size_t tail_size(const struct output *o)
{
	return (size_t)(o->cap - o->cap / 2);
}

/* Only the last tail_size bytes can survive, so longer input is skipped, not copied round and round. */
static int add_to_tail(struct output *o, const char *data, size_t len)
{
	size_t size = tail_size(o);
	o->tail_total += len;
	if (!size)
		return 0;
	if (!o->tail && !(o->tail = malloc(size)))
		return -ENOMEM;
	if (len >= size) {
		memcpy(o->tail, data + len - size, size);
		o->tail_at = 0;
		return 0;
	}
	size_t first = size - o->tail_at < len ? size - o->tail_at : len;
	memcpy(o->tail + o->tail_at, data, first);
	memcpy(o->tail, data + first, len - first);
	o->tail_at = (o->tail_at + len) % size;
	return 0;
}

int output_add(struct output *o, const char *data, size_t len, size_t *ret_in_head)
{
	size_t room = (size_t)(o->cap / 2) - o->head.len;
	size_t first = o->tail_total ? 0 : len < room ? len : room;
	int r = buffer_append(&o->head, data, first);
	if (r < 0)
		return r;
	if (first < len && (r = add_to_tail(o, data + first, len - first)) < 0)
		return r;
	*ret_in_head = first;
	return 0;
}

size_t output_unfinished(const char *data, size_t len)
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

static size_t leading_continuation(const char *data, size_t len)
{
	size_t n = 0;
	while (n < 3 && n < len && ((unsigned char)data[n] & 0xc0) == 0x80)
		n++;
	return n;
}

void output_view(struct output *o, struct captured *ret)
{
	size_t size = tail_size(o), kept = o->tail_total < size ? (size_t)o->tail_total : size;
	*ret = (struct captured){ .head = o->head.data ? o->head.data : "", .head_len = o->head.len, .tail = "" };
	if (!kept || !o->tail)
		return;
	o->joined.len = 0;
	size_t start = (o->tail_at + size - kept) % size, first = size - start < kept ? size - start : kept;
	if (buffer_append(&o->joined, o->tail + start, first) < 0 || buffer_append(&o->joined, o->tail, kept - first) < 0) {
		ret->left_out = o->tail_total;
		return;
	}
	ret->tail = o->joined.data;
	ret->tail_len = kept;
	ret->left_out = o->tail_total - kept;
	if (!ret->left_out)
		return; /* head and tail touch: nothing was cut */
	size_t loose = leading_continuation(ret->tail, ret->tail_len), open = output_unfinished(ret->head, ret->head_len);
	ret->tail += loose;
	ret->tail_len -= loose;
	ret->head_len -= open;
	ret->left_out += loose + open;
}
