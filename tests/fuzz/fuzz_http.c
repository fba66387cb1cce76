/*
 * The request parser: however the bytes are cut into reads, the same events come out, and what
 * passes keeps the promises of http_parser.h. The first byte of the input chooses the size of the
 * reads.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/http_parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What came out, as a hash of events that does not depend on how bodies were cut. */
struct outcome {
	uint64_t hash;
	unsigned messages;
	int status;
};

static void mix(struct outcome *o, const void *data, size_t len)
{
	const unsigned char *p = data;
	for (size_t i = 0; i < len; i++)
		o->hash = (o->hash ^ p[i]) * 1099511628211ULL;
}

static void check_head(const struct http_head *h)
{
	const char *target = http_head_target(h), *path = http_head_path(h);
	assert(h->method < HTTP_METHOD_COUNT && h->minor <= 1 &&
		h->n_headers <= LIMIT_HEADER_COUNT);
	assert(*target == '/' || !strcmp(target, "*"));
	assert(strlen(path) == h->path_len && !strchr(path, '?'));
	assert(h->minor == 0 || http_head_find(h, "host"));
	assert(!(http_head_find(h, "content-length") && http_head_find(h, "transfer-encoding")));
	for (unsigned i = 0; i < h->n_headers; i++) {
		const char *value = h->bytes.data + h->header[i].value;
		assert(h->bytes.data[h->header[i].name] && !strpbrk(value, "\r\n"));
	}
}

static void take(struct outcome *o, struct http_parser *p, enum http_event event)
{
	if (event == HTTP_EVENT_HEAD) {
		check_head(&p->head);
		mix(o, "H", 1);
		mix(o, p->head.bytes.data, p->head.bytes.len);
	} else if (event == HTTP_EVENT_BODY) {
		assert(p->body_len > 0);
		mix(o, p->body, p->body_len);
	} else if (event == HTTP_EVENT_DONE) {
		mix(o, "D", 1);
		o->messages++;
	} else {
		o->status = p->bad.status;
		assert(p->bad.status >= 400 && p->bad.code && p->bad.detail);
	}
}

static struct outcome run(const uint8_t *data, size_t size, size_t step)
{
	struct outcome o = { .hash = 14695981039346656037ULL };
	struct http_parser p;
	http_parser_init(&p);
	for (size_t at = 0; at < size && !o.status; at += step) {
		size_t n = size - at < step ? size - at : step;
		char *copy = malloc(n);
		memcpy(copy, data + at, n);
		struct http_input in = { copy, n };
		enum http_event event;
		while (!o.status && (event = http_parser_next(&p, &in)) != HTTP_EVENT_MORE)
			take(&o, &p, event);
		free(copy);
	}
	http_parser_finish(&p);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct outcome whole = run(data + 1, size - 1, size),
		       cut = run(data + 1, size - 1, 1 + data[0] % 16);
	assert(whole.messages == cut.messages && !whole.status == !cut.status);
	/*
	 * The bytes of a body before the error may have been given out or not, depending on the
	 * cut; without one all are.
	 */
	assert(whole.status || whole.hash == cut.hash);
	return 0;
}
