#include "session/processes/kept_output.h"

#include <stdlib.h>
#include <string.h>

/* Small writes are joined in one piece of this size. */
enum { PIECE_BYTES = 4096 };

struct kept_piece {
	TAILQ_ENTRY(kept_piece) link;
	uint64_t start;
	enum stream stream;
	size_t len, cap;
	char data[];
};

void kept_output_init(struct kept_output *k, size_t max)
{
	*k = (struct kept_output){ .max = max };
	TAILQ_INIT(&k->pieces);
}

static void drop_first(struct kept_output *k)
{
	struct kept_piece *p = TAILQ_FIRST(&k->pieces);
	TAILQ_REMOVE(&k->pieces, p, link);
	k->bytes -= p->cap;
	k->first = p->start + p->len;
	free(p);
}

void kept_output_finish(struct kept_output *k)
{
	while (!TAILQ_EMPTY(&k->pieces))
		drop_first(k);
	hold_set(&k->held, 0);
}

static struct kept_piece *new_piece(struct kept_output *k, enum stream stream, size_t len)
{
	size_t cap = len > PIECE_BYTES ? len : PIECE_BYTES;
	if (hold_set(&k->held, k->bytes + cap) < 0)
		return NULL;

	struct kept_piece *p = malloc(sizeof(*p) + cap);
	if (!p)
		return NULL;

	*p = (struct kept_piece){ .start = k->end, .stream = stream, .cap = cap };
	k->bytes += cap;
	if (TAILQ_EMPTY(&k->pieces))
		k->first = k->end;
	TAILQ_INSERT_TAIL(&k->pieces, p, link);
	return p;
}

void kept_output_add(struct kept_output *k, enum stream stream, const char *data, size_t len)
{
	struct kept_piece *last = TAILQ_LAST(&k->pieces, kept_pieces);
	bool joins = last && last->stream == stream && last->start + last->len == k->end &&
		     last->cap - last->len >= len;
	struct kept_piece *p = joins ? last : new_piece(k, stream, len);

	if (p) {
		memcpy(p->data + p->len, data, len);
		p->len += len;
	}

	k->end += len;
	if (TAILQ_EMPTY(&k->pieces))
		k->first = k->end;
}

void kept_output_trim(struct kept_output *k, uint64_t keep_from)
{
	struct kept_piece *p;
	while (k->bytes > k->max && (p = TAILQ_FIRST(&k->pieces)) && TAILQ_NEXT(p, link) &&
		p->start + p->len <= keep_from)
		drop_first(k);
	hold_set(&k->held, k->bytes);
}

bool kept_output_is_full(const struct kept_output *k)
{
	return k->bytes > k->max;
}

bool kept_output_read(const struct kept_output *k, uint64_t position, struct kept_view *ret)
{
	const struct kept_piece *p;
	TAILQ_FOREACH (p, &k->pieces, link) {
		if (p->start + p->len <= position)
			continue;
		size_t skip = position > p->start ? (size_t)(position - p->start) : 0;
		*ret = (struct kept_view){ .stream = p->stream,
			.data = p->data + skip,
			.len = p->len - skip,
			.next = p->start + p->len,
			.missed = position < p->start ? p->start - position : 0 };
		return true;
	}
	return false;
}
